"""JSON schemas of request bodies: made from the field tables of ``model``, and of single calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from bloomery.api.declare import Schema
from bloomery.conductor.states import FAILURE_STATES, STABLE_STATES
from bloomery.model import node as model
from bloomery.model.fields import BOOLEAN_TEXT, FieldTable, documented, schema_of
from bloomery.model.noun import Noun
from bloomery.model.rules import firmware, patches

Json = dict[str, Any]

_OPERATION: Final[Json] = {
    "type": "object",
    "properties": {
        "op": {"enum": ["add", "replace", "remove"]},
        "path": {"type": "string"},
        "value": {},
    },
    "required": ["op", "path"],
    "additionalProperties": False,
}


def creation(
    thing: str,
    fields: FieldTable,
    *,
    required: list[str],
    also: Mapping[str, Json],
    forms: Mapping[str, Mapping[str, Any]] | None = None,
    secret: frozenset[str] = frozenset(),
    rules: Mapping[str, Any] | None = None,
) -> Schema:
    """Return the schema of a POST body: the table's writable fields, and ``also``.

    ``forms``: what operations check of ``also``; ``rules``: of the body as a whole.
    """
    writable = [field for field in fields.values() if field.access in ("RW", "C")]
    others = {name: {**shape, **(forms or {}).get(name, {})} for name, shape in also.items()}
    return Schema(
        thing=thing,
        source={
            "type": "object",
            "properties": {field.name: schema_of(field) for field in writable} | dict(also),
            "required": required,
            "additionalProperties": False,
        },
        secret=secret,
        document={
            "properties": {f.name: documented(f) for f in writable} | others,
            **(rules or {}),
        },
    )


def patch_of(names: Iterable[str], objects: Iterable[str] = ()) -> Schema:
    """Return the schema of a patch of these attributes, of which ``objects`` have members.

    ``patches`` checks paths and values in Ironic's words; the document has them in the schema.
    """
    whole = f"/({'|'.join(sorted(names))})"
    members = f"/({'|'.join(sorted(objects))}){patches.PATH.pattern}"
    path = f"^({whole}|{members})$" if objects else f"^{whole}$"
    operation = _OPERATION | {
        "properties": _OPERATION["properties"] | {"path": {"type": "string", "pattern": path}},
        "if": {"properties": {"op": {"enum": ["add", "replace"]}}},
        "then": {"required": ["value"]},
    }
    document = {"items": operation, "maxItems": patches.MOST_OPERATIONS}
    return Schema(thing="patch", source={"type": "array", "items": _OPERATION}, document=document)


def patch_of_noun(noun: Noun) -> Schema:
    return patch_of(noun.patchable, noun.objects & noun.patchable)


# ----------------------------------------------------------------------------------------- one node

NODE: Final = creation(
    "node",
    model.FIELDS,
    required=["driver"],
    also={
        "boot_mode": {"type": ["string", "null"]},
        "secure_boot": {"type": ["boolean", "string", "null"]},
        "retired": {"type": ["boolean", "string", "null"]},
        "disable_power_off": {"type": ["boolean", "string", "null"]},
    },
    forms={name: {"pattern": BOOLEAN_TEXT} for name in ("retired", "disable_power_off")},
    secret=model.SECRET_OBJECTS,
)

VIF: Final = Schema(
    thing="vif",
    source={
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "port_uuid": {"type": ["string", "null"]},
            "portgroup_uuid": {"type": ["string", "null"]},
        },
        "required": ["id"],
    },
)

RAID: Final = Schema(
    thing="raid config",
    source={
        "type": "object",
        "properties": {"logical_disks": {}},  # the node's RAID interface validates the rest
        "required": [],
    },
)

VMEDIA: Final = Schema(
    thing="vmedia",
    secret=frozenset({"image_url"}),
    source={
        "type": "object",
        "properties": {
            "device_type": {"enum": ["cdrom", "disk", "floppy"]},
            "image_url": {"type": "string"},
            "image_download_source": {"enum": ["http", "local", "swift"]},
        },
        "required": ["device_type", "image_url"],
        "additionalProperties": False,
    },
)


# -------------------------------------------------------------------- many nodes, and imported ones

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
            "firmware": {
                "type": "object",
                "properties": {
                    "catalogue": {"type": "string"},
                    "components": {
                        "type": "array", "minItems": 1,
                        "items": {"enum": list(firmware.COMPONENTS)},
                    },
                    "rollback": {
                        "type": "object",
                        "properties": {
                            "component": {"enum": list(firmware.COMPONENTS[:2])},
                            "version": {"type": "string"},
                        },
                        "required": ["component"],
                        "additionalProperties": False,
                    },
                },
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
