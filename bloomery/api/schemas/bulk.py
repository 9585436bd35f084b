"""Schemas of bodies about many nodes, and about imported ones."""

from __future__ import annotations

from typing import Final

from bloomery.api.declare import Schema
from bloomery.conductor.states import FAILURE_STATES, STABLE_STATES

_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
_IMPORTED: Final = {
    "type": "object",
    "description": "what another service has left; the node begins in maintenance",
    "properties": {
        "provision_state": {"enum": sorted(STABLE_STATES | FAILURE_STATES)},
        "power_state": {"enum": ["power on", "power off", None]},
        "last_error": _TEXT_OR_NULL,
        "maintenance_reason": {"type": ["string", "null"], "maxLength": 4096},
        "raid_config": {"type": "object"},
        "target_raid_config": {"type": "object"},
    },
    "required": ["provision_state"],
    "additionalProperties": False,
}
_STEPS: Final = {"type": ["array", "null"], "items": {}}

ENROL: Final = Schema(
    thing="nodes",
    source={
        "type": "object",
        "properties": {
            "nodes": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "description": "as POST /v1/nodes takes it, and ports, as POST /v1/ports",
                    "properties": {
                        "ports": {"type": "array", "items": {"type": "object"}},
                        "imported": _IMPORTED,
                    },
                },
            },
        },
        "required": ["nodes"],
        "additionalProperties": False,
    },
    secret=frozenset({"nodes"}),
)

_SHORT_OR_NULL: Final = _TEXT_OR_NULL | {"maxLength": 255}
_STATE: Final = _TEXT_OR_NULL | {"maxLength": 15}
PAST: Final = Schema(
    thing="past of a node",
    source={
        "type": "object",
        "properties": {
            "history": {
                "type": "array",
                "items": {
                    "type": "object",
                    "description": "an entry as GET /v1/nodes/{ident}/history shows it in detail",
                    "properties": {
                        "uuid": {"type": "string", "format": "uuid"},
                        "created_at": {"type": "string"},
                        "severity": {"type": "string", "maxLength": 10},
                        "event": {"type": "string"},
                        "event_type": _SHORT_OR_NULL,
                        "conductor": _SHORT_OR_NULL,
                        "user": _SHORT_OR_NULL,
                        "project": _SHORT_OR_NULL,
                        "state": _STATE,
                        "target_provision_state": _STATE,
                        "duration_seconds": {"type": ["number", "null"]},
                    },
                    "required": ["uuid", "created_at", "severity", "event"],
                    "additionalProperties": False,
                },
            },
            "inspected": {
                "type": ["object", "null"],
                "description": "as GET /v1/nodes/{ident}/inventory shows it",
                "properties": {
                    "inventory": {"type": "object"}, "plugin_data": {"type": "object"},
                },
                "required": ["inventory"],
                "additionalProperties": False,
            },
        },
        "required": ["history"],
        "additionalProperties": False,
    },
)  # fmt: skip

ACT: Final = Schema(
    thing="order",
    source={
        "type": "object",
        "properties": {
            "nodes": {
                "type": "array", "minItems": 1, "uniqueItems": True,
                "items": {"type": "string", "minLength": 1},
            },
            "provision": {
                "type": "object",
                "properties": {
                    "target": {"type": "string"},
                    "configdrive": {"type": ["string", "object", "null"]},
                    "clean_steps": _STEPS,
                    "deploy_steps": _STEPS,
                    "service_steps": _STEPS,
                    "rescue_password": _TEXT_OR_NULL,
                    "disable_ramdisk": {"type": ["boolean", "null"]},
                    "runbook": _TEXT_OR_NULL,
                },
                "required": ["target"],
                "additionalProperties": False,
            },
            "power": {
                "type": "object",
                "properties": {
                    "target": {"type": "string"},
                    "timeout": {"type": ["integer", "null"]},
                },
                "required": ["target"],
                "additionalProperties": False,
            },
            "maintenance": {
                "type": "object",
                "properties": {"on": {"type": "boolean"}, "reason": _TEXT_OR_NULL},
                "required": ["on"],
                "additionalProperties": False,
            },
        },
        "required": ["nodes"],
        "additionalProperties": False,
    },
    secret=frozenset({"provision"}),
    document={"minProperties": 2, "maxProperties": 2},  # the nodes, and exactly one action
)  # fmt: skip
