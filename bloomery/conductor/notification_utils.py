"""Event rows about a node; the relay turns them into notifications.

Each ``emit_...`` returns a write for the transaction that makes the event true.

    emit = notification_utils.emit_power_state_corrected_notification
    task.save(emit(context, node, from_power="power on"))
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from bloomery import secrets
from bloomery.conductor.runtime import Context
from bloomery.conductor.writes import EncodedWrite
from bloomery.db import events, rows
from bloomery.events import snapshots
from bloomery.model.node import Node


def emit_provision_set_notification(
    context: Context,
    node: Node,
    level: str,
    status: str,
    prev_state: str | None,
    prev_target: str | None,
    event: str | None,
) -> EncodedWrite:
    """Emit ``baremetal.node.provision_set.<status>``: the node has moved along one edge."""
    facts = {
        "event": event,
        "previous_provision_state": prev_state,
        "previous_target_provision_state": prev_target,
        "provision_state": node.provision_state,
        "target_provision_state": node.target_provision_state,
        "last_error": node.last_error,
    }
    return _emit_conductor_node_notification(context, node, "provision_set", status, facts, level)


def emit_power_set_notification(
    context: Context, node: Node, status: str, to_power: str | None
) -> EncodedWrite:
    """Emit ``baremetal.node.power_set.<status>``: a request for ``to_power``."""
    facts = _power_of(node) | {"to_power": to_power}
    return _emit_conductor_node_notification(context, node, "power_set", status, facts)


def emit_power_state_corrected_notification(
    context: Context, node: Node, from_power: str | None
) -> EncodedWrite:
    """Emit ``baremetal.node.power_state_corrected.success``: the machine's power state differed.

    ``from_power``: the state recorded before; the node has the corrected one.
    """
    facts = _power_of(node) | {"from_power": from_power}
    return _emit_conductor_node_notification(
        context, node, "power_state_corrected", "success", facts
    )


def emit_console_notification(
    context: Context, node: Node, action: str, status: str
) -> EncodedWrite:
    """Emit a console event.

    ``action``: console_set, console_restore or console_stop.  ``status``: start, end or error.
    """
    facts = {"console_enabled": node.console_enabled, "last_error": node.last_error}
    return _emit_conductor_node_notification(context, node, action, status, facts)


def _power_of(node: Node) -> dict[str, Any]:
    return {
        "power_state": node.power_state,
        "target_power_state": node.target_power_state,
        "last_error": node.last_error,
    }


def _emit_conductor_node_notification(
    context: Context,
    node: Node,
    action: str,
    status: str,
    facts: Mapping[str, Any],
    level: str | None = None,
) -> EncodedWrite:
    """Return the write of a conductor's event about ``node`` as it will be committed."""
    runtime, snapshot = context.runtime, None
    if runtime.wants_snapshots():
        snapshot = snapshots.node_snapshot(node) | {"updated_at": rows.now()}
    event = events.Event(
        object="node",
        object_uuid=node.uuid,
        action=action,
        status=status,
        level=level or ("error" if status == "error" else "info"),
        publisher=f"ironic-conductor.{runtime.host}",
        request_id=context.request.request_id,
        facts=_masked(facts),
        snapshot=snapshot,
        owner=node.owner,
        lessee=node.lessee,
    )
    return partial(events.insert, encoded=[events.encode(event)])


def _masked(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    last_error = facts.get("last_error")
    return facts if last_error is None else {**facts, "last_error": secrets.mask(last_error)}
