"""A transition: a node moves along one edge of the state machine, with history and event rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bloomery import errors
from bloomery.conductor import notification_utils, states, writes
from bloomery.conductor.runtime import Context
from bloomery.conductor.states import State
from bloomery.conductor.writes import EncodedWrite
from bloomery.db import rows
from bloomery.model.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """One move: its event, and the node's state before it."""

    event: str
    previous_provision_state: str | None
    previous_target_provision_state: str | None
    previous_updated_at: datetime | None
    last_error: str | None


def machine_at(node: Node) -> states.Machine:
    """Return the state machine in the node's state."""
    return states.at(node.provision_state or State.AVAILABLE, node.target_provision_state)


def apply(
    context: Context,
    node: Node,
    event: str,
    *,
    target_state: str | None,
    last_error: str | None,
    has_worker: bool,
) -> StateChange:
    """Set the fields of a transition on the node; nothing is written yet.

    ``has_worker``: a worker follows, so the target stays and last_error is replaced.  Raises
    InvalidState with the node untouched.
    """
    change = StateChange(
        event=event,
        previous_provision_state=node.provision_state,
        previous_target_provision_state=node.target_provision_state,
        previous_updated_at=node.provision_updated_at,
        last_error=last_error,
    )
    fsm = machine_at(node)
    try:
        fsm.process_event(event, target_state=target_state)
    except states.InvalidState as exc:
        raise errors.InvalidState(
            reason=f"cannot {event} node {errors.name_of(node)} in state "
            f'"{node.provision_state}": it answers to '
            f"{', '.join(states.events_from(node.provision_state)) or 'nothing'}",
        ) from exc
    arrived = not has_worker and fsm.is_stable(fsm.current_state)
    node.provision_state = fsm.current_state
    node.target_provision_state = states.NOSTATE if arrived else fsm.target_state
    if has_worker or last_error is not None:
        node.last_error = fit(context, node, last_error)
    node.provision_updated_at = now = rows.now()
    was_inspecting = change.previous_provision_state in (State.INSPECTING, State.INSPECTWAIT)
    if node.provision_state == State.INSPECTING:
        node.inspection_started_at, node.inspection_finished_at = now, None
    elif was_inspecting and node.provision_state == State.MANAGEABLE:
        node.inspection_started_at, node.inspection_finished_at = None, now
    elif was_inspecting and node.provision_state == State.INSPECTFAIL:
        node.inspection_started_at = None
    return change


def fit(context: Context, node: Node, text: str | None) -> str | None:
    """Return an error as last_error: without the node's name, cut to the column's size."""
    most = context.runtime.conf.default.log_in_db_max_size
    return None if text is None else writes.own_sentence(node, text)[:most]


def record(context: Context, node: Node, change: StateChange) -> list[EncodedWrite]:
    """Return the history row and the event row of a transition that ``node`` shows already."""
    level, status = level_and_status(node, change)
    walked = f"{change.previous_provision_state} -> {node.provision_state} on {change.event}"
    return [
        writes.history_entry(
            context,
            node,
            change.last_error or walked,
            event_type="transition",
            failed=change.last_error is not None,
            since=change.previous_updated_at,
        ),
        notification_utils.emit_provision_set_notification(
            context, node, level, status, change.previous_provision_state,
            change.previous_target_provision_state, change.event,
        ),
    ]  # fmt: skip


def level_and_status(node: Node, change: StateChange) -> tuple[str, str]:
    """Return level and status of the transition's notification."""
    if change.event in ("fail", "error"):
        return "error", "error"
    leaves = change.previous_provision_state in states.UNSTABLE_STATES
    enters = node.provision_state in states.UNSTABLE_STATES
    return "info", {(False, True): "start", (True, False): "end"}.get((leaves, enters), "success")


def undo(
    context: Context, node: Node, previous: str | None, previous_target: str | None, reason: str
) -> list[EncodedWrite]:
    """Put a node back whose worker did not start; return the history row and the event row."""
    moved = node.provision_state, node.target_provision_state
    node.provision_state, node.target_provision_state = previous, previous_target
    node.provision_updated_at, node.last_error = rows.now(), reason
    return [
        writes.history_entry(context, node, reason, event_type="transition", failed=True),
        notification_utils.emit_provision_set_notification(
            context, node, "error", "error", *moved, "fail"
        ),
    ]
