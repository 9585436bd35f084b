"""Endpoints for agents in ramdisks, and for Neutron.

/v1/lookup, /v1/heartbeat/<node> and /v1/continue_inspection need no login, except for a heartbeat
that names its node in the body.  Neutron sends events of network ports to /v1/events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, Schema
from bloomery.api.views import projection
from bloomery.model.fields import MAC, UUID
from bloomery.operations import agents, records

TOKEN_SINCE: Final = 62
LOOKUP: Final[arguments.Args] = {
    "addresses": Arg(arguments.comma_list),
    "node_uuid": Arg(arguments.uuid),
}
HEARTBEAT: Final[dict[str, Arg]] = {
    "callback_url": Arg(arguments.text, required=True),
    "agent_version": Arg(arguments.text_or_null),
    "agent_token": Arg(arguments.text_or_null),
    "agent_verify_ca": Arg(arguments.text_or_null),
    "agent_status": Arg(arguments.text_or_null),
    "agent_status_message": Arg(arguments.text_or_null),
}
# The microversion of each argument of a heartbeat; older clients that send it get 400.
FIELDS_SINCE: Final[Mapping[str, int]] = {
    "agent_version": 36, "agent_verify_ca": 68, "agent_status": 72, "agent_status_message": 72,
}  # fmt: skip
INSPECTION_SINCE: Final = 84
MOST_INTERFACES: Final = 1000  # far above the interfaces of any machine
INSPECTOR: Final = 1  # the version of clients that still call as for ironic-inspector
INVENTORY: Final = Schema(
    thing="inventory",
    source={
        "type": "object",
        "properties": {
            "inventory": {
                "type": "object",
                "properties": {
                    "bmc_address": {"type": ["string", "null"]},
                    "bmc_v6address": {"type": ["string", "null"]},
                    "interfaces": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": MOST_INTERFACES,
                        "items": {
                            "type": "object",
                            "properties": {"mac_address": {"type": "string"}},
                            "required": ["mac_address"],
                        },
                    },
                },
                "required": ["interfaces"],
            },
        },
        "required": ["inventory"],
    },
)
# Interfaces with a BMC address, so that agents need not detect it.
KNOW_THE_BMC: Final = frozenset({"redfish", "idrac-redfish"})
_OBJECTS: Final = ("properties", "instance_info", "driver_internal_info")
_TEXT: Final[dict[str, Any]] = {"type": "string"}
_TEXT_OR_NULL: Final[dict[str, Any]] = {"type": ["string", "null"]}


def _events(address: Mapping[str, Any]) -> dict[str, Any]:
    event = {
        "type": "object",
        "properties": {
            "event": {"enum": list(records.PORT_EVENTS)},
            "port_id": _TEXT | UUID,
            "mac_address": address,
            "status": _TEXT,
            "device_id": _TEXT_OR_NULL | UUID,
            "binding:host_id": _TEXT_OR_NULL | UUID,
            "binding:vnic_type": _TEXT_OR_NULL,
        },
        "required": ["event", "port_id", "mac_address", "status"],
        "additionalProperties": False,
    }
    return {"events": {"type": "array", "minItems": 1, "items": event}}


EVENTS: Final = Schema(
    thing="events",
    source={
        "type": "object",
        "properties": _events(_TEXT),
        "required": ["events"],
        "additionalProperties": False,
    },
    document={"properties": _events(_TEXT | MAC)},
)


def lookup(
    call: Call, *, addresses: tuple[str, ...] = (), node_uuid: str | None = None
) -> dict[str, Any]:
    """Return the agent's node, its configuration and, once, the agent token."""
    makes_token = call.version >= TOKEN_SINCE
    node = agents.lookup(call.context, call.caller, addresses, node_uuid, makes_token=makes_token)
    return _lookup_document(call, node)


def _lookup_document(call: Call, node: agents.AgentNode) -> dict[str, Any]:
    """Return the document of lookup: secrets are masked, except the token in ``config``."""
    row = node.row
    objects = {name: projection.masked(name, getattr(row, name)) for name in _OBJECTS}
    links = projection.links(call.url, f"nodes/{row.uuid}")
    conf = call.context.services.conf
    containers, metrics, statsd = conf.agent_containers, conf.metrics, conf.metrics_statsd
    config = {
        "metrics": {
            "backend": metrics.agent_backend,
            "prepend_host": metrics.agent_prepend_host,
            "prepend_uuid": metrics.agent_prepend_uuid,
            "prepend_host_reverse": metrics.agent_prepend_host_reverse,
            "global_prefix": metrics.agent_global_prefix,
        },
        "metrics_statsd": {
            "statsd_host": statsd.agent_statsd_host,
            "statsd_port": statsd.agent_statsd_port,
        },
        "heartbeat_timeout": conf.api.ramdisk_heartbeat_timeout,
        "agent_containers": {
            "allow_arbitrary_containers": containers.allow_arbitrary_containers,
            "allowed_containers": containers.allowed_containers,
            "container_steps_file": containers.container_steps_file,
            "runner": containers.runner,
            "pull_options": containers.pull_options,
            "run_options": containers.run_options,
        },
        "agent_token": node.token,
        "agent_token_required": True,
        "agent_md5_checksum_enable": conf.agent.allow_md5_checksum,
        "disable_deep_image_inspection": conf.conductor.disable_deep_image_inspection,
        "permitted_image_formats": conf.conductor.permitted_image_formats,
        "agent_skip_bmc_detect": row.management_interface in KNOW_THE_BMC,
        "enable_bios_bootloader_install": conf.agent.enable_bios_bootloader_install,
        "tls_min_version": conf.agent.tls_minimum_version,
        "tls_cipher_suites": conf.agent.tls_ciphers,
    }
    return {
        "node": {"uuid": row.uuid, **objects, "links": links},
        "config": config,
    }


def heartbeat_in_body(call: Call, *, node_ident: str, **fields: str | None) -> None:
    """Record a heartbeat of the node in the body."""
    heartbeat(call, node_ident, **fields)


def heartbeat(call: Call, node: str, **fields: str | None) -> None:
    """Record a heartbeat and the URL of the agent's API."""
    for name, since in FIELDS_SINCE.items():
        if fields.get(name) and call.version < since:
            raise errors.InvalidParameterValue(reason=f'Field "{name}" not recognised')
    beat = agents.HeartbeatRequest(**fields)  # type: ignore[arg-type]
    agents.heartbeat(call.context, call.caller, node, beat, is_forwarded=call.is_forwarded)


def continue_inspection(
    call: Call, *, body: dict[str, Any], node_uuid: str | None = None
) -> dict[str, Any]:
    """Store inspection data and resume the waiting inspection.

    Since 1.84, and in 1.1 for clients of ironic-inspector.
    """
    is_new = call.version >= INSPECTION_SINCE
    if not is_new and node_uuid is not None:
        raise errors.NotFound(reason=f"API version 1.{INSPECTION_SINCE} or newer is required")
    node = agents.continue_inspection(
        call.context, call.caller, body, node_uuid, makes_token=is_new
    )
    return _lookup_document(call, node) if is_new else {"uuid": node.row.uuid}


def post_events(call: Call, *, body: dict[str, Any]) -> None:
    """Accept events; as in Ironic, no action follows yet."""
    records.log_port_events(call.context, body["events"])
