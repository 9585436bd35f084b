"""Event rows about a node; the relay turns them into notifications.

Each ``emit_...`` returns a write for the transaction that makes the event true.

    emit = notification_utils.emit_power_state_corrected_notification
    task.save(emit(context, node, from_power="power on"))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import secrets
from bloomery.conductor.runtime import Context
from bloomery.conductor.writes import EncodedWrite, NodeEvent
from bloomery.db import events, rows
from bloomery.events import snapshots
from bloomery.model.node import Node
from bloomery.model.rules import nodes as rules
from bloomery.model.step import StepRun

# What lists show of a node's condition: in the facts of each event, with what is wrong with the
# node (``cause_code``, ``cause``), so that lists need not read the row.
CONDITION: Final = (
    "provision_state", "target_provision_state", "provision_updated_at", "power_state",
    "maintenance", "maintenance_reason", "fault", "last_error",
)  # fmt: skip
# What else lists show; a move may change it, too (inspection).
DESCRIPTION: Final = frozenset({"properties", "extra", "driver_info", "resource_class"})


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
    }
    return _emit_conductor_node_notification(context, node, "provision_set", status, facts, level)


def emit_power_set_notification(
    context: Context, node: Node, status: str, to_power: str | None
) -> EncodedWrite:
    """Emit ``baremetal.node.power_set.<status>``: a request for ``to_power``."""
    facts = {"target_power_state": node.target_power_state, "to_power": to_power}
    return _emit_conductor_node_notification(context, node, "power_set", status, facts)


def emit_power_state_corrected_notification(
    context: Context, node: Node, from_power: str | None
) -> EncodedWrite:
    """Emit ``baremetal.node.power_state_corrected.success``: the machine's power state differed.

    ``from_power``: the state recorded before; the node has the corrected one.
    """
    facts = {"target_power_state": node.target_power_state, "from_power": from_power}
    return _emit_conductor_node_notification(
        context, node, "power_state_corrected", "success", facts
    )


def emit_console_notification(
    context: Context, node: Node, action: str, status: str
) -> EncodedWrite:
    """Emit a console event.

    ``action``: console_set, console_restore or console_stop.  ``status``: start, end or error.
    """
    facts = {"console_enabled": node.console_enabled}
    return _emit_conductor_node_notification(context, node, action, status, facts)


def emit_changed(context: Context, node: Node, columns: list[str]) -> NodeEvent:
    """Emit ``baremetal.node.changed.success``: columns changed without any other event."""
    facts = _condition(context, node) | {"columns": columns}
    event = _event(context, node, "changed", "success", facts)
    return NodeEvent(events.encode(event))


def emit_step(context: Context, node: Node, run: StepRun, status: str, of: int) -> EncodedWrite:
    """Emit ``baremetal.node.step.<status>``: a step that clients see; ``of``: steps of its flow."""
    facts = {
        "flow": run.phase, "flow_id": run.flow, "step": run.step.name, "position": run.position + 1,
        "of": of, "child_node": run.step.child,
    }  # fmt: skip
    row = events.encode(_event(context, node, "step", status, facts))
    return lambda conn: events.insert(conn, [row])


def _emit_conductor_node_notification(
    context: Context,
    node: Node,
    action: str,
    status: str,
    facts: Mapping[str, Any],
    level: str | None = None,
) -> EncodedWrite:
    """Return the write of a conductor's event about ``node`` as it will be committed."""
    snapshot = None
    if context.runtime.wants_snapshots():
        snapshot = snapshots.node_snapshot(node) | {"updated_at": rows.now()}
    facts = {**facts, **_condition(context, node)}
    event = _event(context, node, action, status, facts, level, snapshot)
    return NodeEvent(events.encode(event))


def _condition(context: Context, node: Node) -> dict[str, Any]:
    condition = {name: getattr(node, name) for name in CONDITION}
    texts = ("last_error", "maintenance_reason")
    masked = {name: secrets.mask(condition[name]) for name in texts if condition[name]}
    return condition | masked | rules.describe_problem(node, context.runtime.host, secrets.mask)


def _event(
    context: Context,
    node: Node,
    action: str,
    status: str,
    facts: Mapping[str, Any],
    level: str | None = None,
    snapshot: Mapping[str, Any] | None = None,
) -> events.Event:
    return events.Event(
        object="node",
        object_uuid=node.uuid,
        action=action,
        status=status,
        level=level or ("error" if status == "error" else "info"),
        publisher=f"ironic-conductor.{context.runtime.host}",
        request_id=context.request.request_id,
        facts=facts,
        snapshot=snapshot,
        owner=node.owner,
        lessee=node.lessee,
    )
