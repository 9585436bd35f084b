"""What joins the transaction of a node's row: an entry of its history, events that tell of it.

    emit = writes.emit_power_state_corrected_notification
    task.save(emit(context, node, from_power="power on"))

The relay makes notifications of event rows.  Nothing but SQL runs inside a transaction: so an
``EncodedWrite`` holds its rows ready, and a ``DeferredWrite``, which tells of the node as it will
be, is encoded by ``TaskManager.save`` just before the transaction begins.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

import sqlalchemy as sa

from bloomery import secrets
from bloomery.conductor.runtime import Context
from bloomery.db import events, history, rows
from bloomery.events import snapshots
from bloomery.model.history import HistoryEntry
from bloomery.model.node import Node

EncodedWrite: TypeAlias = Callable[[sa.Connection], None]


@dataclass(frozen=True, slots=True)
class DeferredWrite:
    """A write that tells of the node as it will be; it is encoded once its fields are set."""

    encode: Callable[[], EncodedWrite]


Write: TypeAlias = EncodedWrite | DeferredWrite


def encoded(writes: Iterable[Write]) -> list[EncodedWrite]:
    """Return the writes with the deferred ones encoded: for the moment before the transaction."""
    return [write.encode() if isinstance(write, DeferredWrite) else write for write in writes]


# ------------------------------------------------------------------------------------- history


def history_entry(
    context: Context,
    node: Node,
    text: str,
    *,
    event_type: str,
    failed: bool = False,
    since: datetime | None = None,
) -> EncodedWrite:
    """Return the write of an entry in the history of the node as it is now; ``text`` is masked.

    The time since the node's last change is counted, or since ``since``, if it was just moved.
    """
    runtime, request, at = context.runtime, context.request, rows.now()
    if not runtime.conf.conductor.node_history:
        return lambda conn: None
    since = since or node.provision_updated_at
    entry = HistoryEntry(
        uuid=str(uuids.uuid4()),
        node_uuid=node.uuid,
        created_at=at,
        severity="ERROR" if failed else "INFO",
        event=str(secrets.mask(text)),
        event_type=event_type,
        conductor=runtime.host,
        user=request.user,
        project=request.project,
        state=node.provision_state,
        target_provision_state=node.target_provision_state,
        duration_seconds=(at - since).total_seconds() if since else None,
        request_id=request.request_id,
    )
    return partial(history.insert, entry=entry)


# -------------------------------------------------------------------------------------- events


def emit_provision_set_notification(
    context: Context,
    node: Node,
    level: str,
    status: str,
    prev_state: str | None,
    prev_target: str | None,
    event: str | None,
) -> EncodedWrite:
    """``baremetal.node.provision_set.<status>``: the node has moved along one edge."""
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
    """``baremetal.node.power_set.<status>``: somebody asks for ``to_power``."""
    facts = _power_of(node) | {"to_power": to_power}
    return _emit_conductor_node_notification(context, node, "power_set", status, facts)


def emit_power_state_corrected_notification(
    context: Context, node: Node, from_power: str | None
) -> EncodedWrite:
    """``baremetal.node.power_state_corrected.success``: the hardware was found elsewhere.

    ``from_power`` is what was recorded before; the node shows what is recorded now.
    """
    facts = _power_of(node) | {"from_power": from_power}
    return _emit_conductor_node_notification(
        context, node, "power_state_corrected", "success", facts
    )


def emit_console_notification(
    context: Context, node: Node, action: str, status: str
) -> EncodedWrite:
    """``action``: console_set, console_restore or console_stop; ``status``: start, end, error."""
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
    """Mask the one fact that is free text; the others are words of ours."""
    last_error = facts.get("last_error")
    return facts if last_error is None else {**facts, "last_error": secrets.mask(last_error)}
