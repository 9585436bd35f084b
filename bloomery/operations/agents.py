"""Calls of agents in ramdisks: lookup, heartbeat, inspection data.

Any host in [api]agent_networks may call.  An agent proves its identity by its token, from its
kernel parameters or its first lookup.
"""

from __future__ import annotations

import contextlib
import logging
import uuid as uuids
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from bloomery import errors, secrets
from bloomery.conductor import states
from bloomery.db import nodes as db
from bloomery.model.rules import agents as rules
from bloomery.operations import agent_callers, policy
from bloomery.operations import lookup as nodes
from bloomery.operations.context import Context

LOG = logging.getLogger(__name__)

Json = dict[str, Any]

AUTO_DISCOVERED: Final = "auto_discovered"  # key in plugin_data, as in Ironic
SHOWN: Final = ("uuid", "properties", "instance_info", "driver_internal_info")
_SHOWN_ADDRESSES: Final = 8  # in a log line
_COLUMNS: Final = (
    *SHOWN, "driver", "conductor_group", "provision_state", "driver_info", "management_interface",
)  # fmt: skip
_OF_CALLERS: Final = ("uuid", "driver", "conductor_group", "driver_internal_info")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNode:
    """An agent's node: a row of ``SHOWN`` and more, and its token, if any."""

    row: Any
    token: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRequest:
    """The arguments of a heartbeat; see ``rpc.contract``."""

    callback_url: str
    agent_version: str | None = None
    agent_token: str | None = None
    agent_verify_ca: str | None = None
    agent_status: str | None = None
    agent_status_message: str | None = None


def lookup(
    ctx: Context, caller: str, addresses: Sequence[str], node_uuid: str | None, *, makes_token: bool
) -> AgentNode:
    """Return the node of an agent, by UUID, else by the MAC addresses of its ports.

    ``caller``: the address of the client, here and below. ``makes_token``: the agent supports
    tokens; its first lookup gets one, later lookups a mask. Raises IncompleteLookup (400);
    NotFound, which does not reveal whether the node exists.
    """
    policy.authorize(ctx, "baremetal:driver:ipa_lookup")
    _admit(ctx, caller)
    macs = rules.valid_addresses(addresses)
    if not macs and node_uuid is None:
        raise errors.IncompleteLookup
    uuids = [node_uuid] if node_uuid is not None else _uuids_with(ctx, macs)
    if len(uuids) != 1:
        LOG.warning("a lookup by %s finds %s nodes", _few(macs), len(uuids))
        raise _not_found()
    with ctx.services.db.read() as conn:
        row = db.find_row(conn, uuids[0], _COLUMNS)
    if row is None:
        LOG.warning("a lookup finds no node %s", node_uuid)
        raise _not_found()
    fast_track = ctx.services.conf.deploy.fast_track
    is_fast = rules.is_fast_track(orjson.loads(row.driver_info), fast_track)
    allowed = states.FASTTRACK_LOOKUP_ALLOWED_STATES if is_fast else states.LOOKUP_ALLOWED_STATES
    if ctx.services.conf.api.restrict_lookup and row.provision_state not in allowed:
        LOG.warning("node %s: a lookup in %s is refused", row.uuid, row.provision_state)
        raise _not_found()
    return _show(ctx, caller, row, makes_token=makes_token)


def _show(ctx: Context, caller: str, row: Any, *, makes_token: bool) -> AgentNode:
    """Return the node for its agent, with a new token if it has none."""
    if not makes_token:
        has_token = f'"{db.AGENT_TOKEN}"' in row.driver_internal_info
        return AgentNode(row=row, token=secrets.MASK if has_token else None)
    with nodes.no_host_is_a_bad_request():
        conductor = nodes.conductor_of(ctx, row)
    token = conductor.get_node_with_token(ctx.request, row.uuid, caller)["agent_token"]
    if token != secrets.MASK:
        LOG.info("node %s: %s gets the agent's token", row.uuid, caller)
    elif f'"{db.KERNEL_HAS_TOKEN}"' in row.driver_internal_info:
        LOG.info("node %s: %s gets no token: the agent's kernel has it", row.uuid, caller)
    else:  # an agent that lost its token, or another caller
        LOG.warning("node %s: %s asks for a token that the agent has already", row.uuid, caller)
    return AgentNode(row=nodes.row(ctx, row.uuid, _COLUMNS), token=token)


def _admit(ctx: Context, caller: str) -> None:
    """Raise NotAuthorized where agents are disabled, or for this address."""
    conf = ctx.services.conf.api
    if not conf.enable_ramdisk_endpoints:
        raise errors.NotAuthorized(
            reason="cannot answer agents here: [api]enable_ramdisk_endpoints is false"
        )
    agent_callers.require_inside(conf, caller)


def _uuids_with(ctx: Context, macs: Sequence[str]) -> list[str]:
    with ctx.services.db.read() as conn:
        return db.list_with_addresses(conn, macs)


def _few(addresses: Sequence[str]) -> str:
    """Return the first addresses for a log line."""
    rest = len(addresses) - _SHOWN_ADDRESSES
    listed = ", ".join(address[:64] for address in addresses[:_SHOWN_ADDRESSES])
    return f"{listed} and {rest} more" if rest > 0 else listed


def _not_found() -> errors.NotFound:
    return errors.NotFound(reason="cannot find a node that waits for this agent")


def heartbeat(
    ctx: Context, caller: str, ident: str, call: HeartbeatRequest, *, is_forwarded: bool
) -> None:
    """Forward a heartbeat to the node's conductor.

    ``is_forwarded``: a proxy stands between, so that ``caller`` is not the agent's proven address.
    Raises NodeNotFound; Invalid (400): a missing, changed or foreign URL, no token, an unknown
    status; and the conductor's errors.
    """
    policy.authorize(ctx, "baremetal:node:ipa_heartbeat")
    _admit(ctx, caller)
    node = nodes.row(ctx, ident, _OF_CALLERS)
    own = "" if is_forwarded else caller
    callback = agent_callers.checked_callback_url(ctx.services.conf.api, call.callback_url, own)
    rules.require_same_url(orjson.loads(node.driver_internal_info), callback)
    if call.agent_token is None:
        raise errors.InvalidParameterValue(
            reason="cannot take a heartbeat without agent_token: lookup gives it out",
        )
    if call.agent_status not in (None, *rules.STATUSES):
        raise errors.InvalidParameterValue(
            reason=f"cannot take this agent_status: it is one of {', '.join(rules.STATUSES)}",
        )
    with nodes.no_host_is_a_bad_request():
        conductor = nodes.conductor_of(ctx, node)
    conductor.heartbeat(
        ctx.request, node.uuid, callback, call.agent_version, call.agent_token,
        call.agent_verify_ca, call.agent_status, call.agent_status_message,
    )  # fmt: skip


# --------------------------------------------------------------------------------- inspection


def continue_inspection(
    ctx: Context, caller: str, data: Json, node_uuid: str | None, *, makes_token: bool
) -> AgentNode:
    """Send the inventory in ``data`` to the waiting node's conductor; return that node.

    ``data``: {"inventory": {...}} and plugin data.  The node is found by UUID and by the MAC
    addresses of its ports, or by its BMC; an unknown one may be enrolled ([auto_discovery]). Raises
    Invalid (400): no lookup key; NotFound, without the reason.
    """
    policy.authorize(ctx, "baremetal:driver:ipa_continue_inspection")
    _admit(ctx, caller)
    inventory = data["inventory"]
    plugin_data = {name: value for name, value in data.items() if name != "inventory"}
    macs = rules.valid_addresses(nic["mac_address"] for nic in inventory["interfaces"])
    bmcs = [inventory[name] for name in ("bmc_address", "bmc_v6address") if inventory.get(name)]
    if not macs and not bmcs and node_uuid is None:
        raise errors.Invalid(
            reason="cannot look the node up: the inventory has no MAC address and no BMC address"
        )
    uuid = _find_inspected(ctx, macs, bmcs, node_uuid)
    discovered = uuid is None
    if uuid is None:
        uuid, plugin_data[AUTO_DISCOVERED] = _discover(ctx), True
    row = nodes.row(ctx, uuid, _COLUMNS)
    node = _show(ctx, caller, row, makes_token=makes_token)
    with nodes.no_host_is_a_bad_request():
        conductor = nodes.conductor_of(ctx, node.row)
    try:
        conductor.continue_inspection(ctx.request, uuid, inventory, plugin_data)
    except errors.Failure:
        if discovered:
            with contextlib.suppress(errors.Failure):
                conductor.destroy_node(ctx.request, uuid)
        raise
    return node


def _find_inspected(
    ctx: Context, macs: Sequence[str], bmcs: Sequence[str], node_uuid: str | None
) -> str | None:
    """Return the UUID of the one node that matches all keys, or None."""
    by_mac = _uuids_with(ctx, macs) if macs else []
    query = db.Query(
        columns=("uuid", "driver_internal_info"),
        equal={"provision_state": states.State.INSPECTWAIT},
    )
    with ctx.services.db.read() as conn:
        rows = db.list_rows(conn, query)
    waiting, by_bmc = {row.uuid for row in rows}, set()
    for row in rows:
        own = orjson.loads(row.driver_internal_info).get("lookup_bmc_addresses") or ()
        if not set(own).isdisjoint(bmcs):
            by_bmc.add(row.uuid)
    candidates = set(by_mac) | ({node_uuid} if node_uuid is not None else set())
    if not candidates:
        candidates = by_bmc
    elif by_bmc and candidates.isdisjoint(by_bmc):
        candidates |= by_bmc
    if not candidates:
        return None
    uuid = candidates.pop()
    if candidates or uuid not in waiting:
        LOG.warning("an inventory of %s, %s is refused: node %s does not wait for it, or others "
                    "fit as well", _few(macs), _few(bmcs), uuid)  # fmt: skip
        raise _not_found()
    return uuid


def _discover(ctx: Context) -> str:
    """Enrol a node for an unknown agent, which does not learn the reason of a refusal."""
    conf = ctx.services.conf
    if not conf.auto_discovery.enabled:
        LOG.warning("an inventory fits no node, and [auto_discovery]enabled is false")
        raise _not_found()
    most = conf.auto_discovery.most_enrolled
    with ctx.services.db.read() as conn:
        is_full = most and db.count_in_states(conn, "", [states.State.ENROLL]) >= most
    if is_full:
        LOG.warning(
            "an unknown machine is not enrolled: %d nodes or more are in enroll "
            "([auto_discovery]most_enrolled); manage or delete some, or raise it", most,
        )  # fmt: skip
        raise _not_found()
    values = {
        "uuid": str(uuids.uuid4()), "driver": conf.auto_discovery.driver,
        "inspect_interface": "agent", "provision_state": states.State.ENROLL,
        "conductor_group": conf.default.default_conductor_group,
        "resource_class": conf.default.default_resource_class,
    }  # fmt: skip
    try:
        conductor = ctx.services.rpc.conductor_for_node(
            driver=str(values["driver"]), group=str(values["conductor_group"]),
            uuid=str(values["uuid"]),
        )  # fmt: skip
        conductor.create_node(ctx.request, values)
    except errors.Failure as exc:
        LOG.warning("cannot enrol the node of an agent ([auto_discovery]): %s", secrets.brief(exc))
        raise _not_found() from exc
    LOG.info("node %s: enrolled for an agent that nobody knew", values["uuid"])
    return str(values["uuid"])
