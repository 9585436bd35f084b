"""Event rows about a node, written by a conductor; the relay makes notifications of them.

Each ``emit_...`` returns a write: the caller puts it into the transaction that makes it true.

    task.save(announce.emit_power_state_corrected_notification(task, from_power="power on"))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import sqlalchemy as sa

from bloomery import secrets
from bloomery.conductor.runtime import Context
from bloomery.db import events, rows
from bloomery.events import snapshots
from bloomery.model.node import Node

if TYPE_CHECKING:
    from bloomery.conductor.task_manager import TaskManager

Write: TypeAlias = Callable[[sa.Connection], None]


def emit_provision_set_notification(
    task: TaskManager,
    level: str,
    status: str,
    prev_state: str | None,
    prev_target: str | None,
    event: str | None,
) -> Write:
    """``baremetal.node.provision_set.<status>``: the node has moved along one edge."""
    facts = {
        "event": event,
        "previous_provision_state": prev_state,
        "previous_target_provision_state": prev_target,
        "provision_state": task.node.provision_state,
        "target_provision_state": task.node.target_provision_state,
        "last_error": task.node.last_error,
    }
    return _emit_conductor_node_notification(task, "provision_set", status, facts, level)


def emit_power_set_notification(task: TaskManager, status: str, to_power: str | None) -> Write:
    """``baremetal.node.power_set.<status>``: somebody asks for ``to_power``."""
    facts = _power_of(task.node) | {"to_power": to_power}
    return _emit_conductor_node_notification(task, "power_set", status, facts)


def emit_power_state_corrected_notification(task: TaskManager, from_power: str | None) -> Write:
    """``baremetal.node.power_state_corrected.success``: the hardware was found elsewhere.

    ``from_power`` is what was recorded before; the node shows what is recorded now.
    """
    facts = _power_of(task.node) | {"from_power": from_power}
    return _emit_conductor_node_notification(task, "power_state_corrected", "success", facts)


def emit_console_notification(task: TaskManager, action: str, status: str) -> Write:
    """``action``: console_set, console_restore or console_stop; ``status``: start, end, error."""
    facts = {"console_enabled": task.node.console_enabled, "last_error": task.node.last_error}
    return _emit_conductor_node_notification(task, action, status, facts)


def _power_of(node: Node) -> dict[str, Any]:
    return {
        "power_state": node.power_state,
        "target_power_state": node.target_power_state,
        "last_error": node.last_error,
    }


def _emit_conductor_node_notification(
    task: TaskManager,
    action: str,
    status: str,
    facts: Mapping[str, Any],
    level: str | None = None,
) -> Write:
    row = node_row(task.context, task.node, action, status, facts, level)
    return lambda conn: events.insert(conn, [row])


def _masked(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Mask the one fact that is free text; the others are words of ours."""
    said = facts.get("last_error")
    return facts if said is None else {**facts, "last_error": secrets.mask(said)}


def node_row(
    context: Context,
    node: Node,
    action: str,
    status: str,
    facts: Mapping[str, Any],
    level: str | None = None,
) -> dict[str, Any]:
    """Return the encoded row of a conductor's event about ``node`` as it will be committed."""
    runtime = context.runtime
    shot = None
    if runtime.snapshots:
        shot = snapshots.node_snapshot(node) | {"updated_at": rows.now()}
    return events.encode(
        events.Event(
            object="node",
            object_uuid=node.uuid,
            action=action,
            status=status,
            level=level or ("error" if status == "error" else "info"),
            publisher=f"ironic-conductor.{runtime.host}",
            request_id=context.request.request_id,
            facts=_masked(facts),
            snapshot=shot,
        ),
    )
