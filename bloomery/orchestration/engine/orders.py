"""The effect of each kind of order on a stack: one function per kind, in one table.

The acceptance of an order stores the state that clients see.  The row is therefore IN_PROGRESS
already, with a new traversal number and its event.  Of several orders for a new traversal only the
last one counts, because the row describes that one alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from bloomery.model import stacks as model
from bloomery.model.stacks import Order, OrderKind
from bloomery.orchestration.engine import events
from bloomery.orchestration.engine.resource import EngineResource
from bloomery.orchestration.engine.stack_actions import StackActions, clear_hook
from bloomery.orchestration.engine.stacks import EngineStack
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.stack import Stack

Apply = Callable[[StackActions, EngineStack, Mapping[str, Any]], None]


def _create(actions: StackActions, stack: EngineStack, payload: Mapping[str, Any]) -> None:
    actions.create(stack)


def _adopt(actions: StackActions, stack: EngineStack, payload: Mapping[str, Any]) -> None:
    actions.adopt(stack, payload.get("data") or {})


def _update(actions: StackActions, stack: EngineStack, payload: Mapping[str, Any]) -> None:
    actions.update(stack, converge=bool(payload.get("converge")))


def _restore(actions: StackActions, stack: EngineStack, payload: Mapping[str, Any]) -> None:
    actions.update(stack)


def _delete(actions: StackActions, stack: EngineStack, payload: Mapping[str, Any]) -> None:
    actions.delete(stack, abandon=bool(payload.get("abandon")))


def _perform(actions: StackActions, stack: EngineStack, payload: Mapping[str, Any]) -> None:
    actions.stack_task(stack, **payload)


def _cancel(actions: StackActions, stack: EngineStack, payload: Mapping[str, Any]) -> None:
    """Roll back, or set the stack to FAILED; running actions go on in both cases."""
    if not payload.get("rollback"):
        actions.cancel(stack)
    elif stack.action is Action.ROLLBACK:
        actions.update(stack)
    else:
        actions.roll_back(stack)


TRAVERSALS: Final[Mapping[OrderKind, Apply]] = {
    OrderKind.CREATE: _create,
    OrderKind.ADOPT: _adopt,
    OrderKind.UPDATE: _update,
    OrderKind.RESTORE: _restore,
    OrderKind.DELETE: _delete,
    OrderKind.SUSPEND: _perform,
    OrderKind.RESUME: _perform,
    OrderKind.CHECK: _perform,
    OrderKind.SNAPSHOT: _perform,
    OrderKind.CANCEL: _cancel,
}

# ------------------------------------------------------------------------ orders for one resource


def _signal(stack: EngineStack, row: EngineResource, payload: Mapping[str, Any]) -> None:
    """Hand a posted signal to its resource; an exception leaves no trace, as in Heat."""
    details = payload.get("details")
    try:
        text = row.resource().handle_signal(details)  # type: ignore[attr-defined]  # optional
    except base.NoActionRequired:
        text = None
    except Exception:  # noqa: BLE001  # kinds are plug-ins; the caller was answered already
        return
    else:
        text = text if isinstance(text, str) and text else json.dumps(details, default=str)
        stack.emit_event(row, "SIGNAL", Status.COMPLETE, events.signalled(text))
    stack.changes.change_row(row)
    stack.schedule.wake(row.uuid)


def _unset_hook(stack: EngineStack, row: EngineResource, payload: Mapping[str, Any]) -> None:
    hook = str(payload["hook"])
    if row.data.get(hook) is not True:
        return
    clear_hook(stack, row, hook)
    if stack.open_traversal is not None:
        stack.open_traversal.unset(row, hook)


def _mark(stack: EngineStack, row: EngineResource, payload: Mapping[str, Any]) -> None:
    """Set a resource to CHECK_FAILED, to be replaced or repaired next, or to CHECK_COMPLETE.

    A mark by hand is kept, because it replaces a resource that a check's finding repairs.
    """
    if row.pending_action is not None:
        return
    row.data.pop(model.MARKED_UNHEALTHY, None)
    if payload.get("by_hand") and payload.get("unhealthy", True):
        row.data[model.MARKED_UNHEALTHY] = True
    row.action = Action.CHECK
    row.status = Status.FAILED if payload.get("unhealthy", True) else Status.COMPLETE
    row.reason = stack.changes.redaction.masked(str(payload.get("reason") or events.CHANGED))
    stack.changes.change_row(row)
    stack.emit_event(row, row.action, row.status, row.reason)


RESOURCES: Final = {
    OrderKind.SIGNAL: _signal,
    OrderKind.UNSET_HOOK: _unset_hook,
    OrderKind.MARK_UNHEALTHY: _mark,
}


# ------------------------------------------------------------------------------------- all orders


def split(orders: Sequence[Order]) -> tuple[list[Order], list[Order]]:
    """Return the orders for the rows as they are, and the signals, which go to actions at work."""
    return (
        [each for each in orders if each.kind is not OrderKind.SIGNAL],
        [each for each in orders if each.kind is OrderKind.SIGNAL],
    )


def apply(
    actions: StackActions,
    stacks: Mapping[str, EngineStack],
    orders: Sequence[Order],
    accepted: Mapping[str, model.Stack],
) -> None:
    """Apply orders in the order of acceptance; ``accepted``: the stack rows stored with them."""
    last = {each.stack_uuid: each.id for each in orders if each.kind in TRAVERSALS}
    for order in orders:
        stack = stacks.get(order.stack_uuid)
        if stack is None:
            continue  # it was deleted meanwhile
        if order.kind in TRAVERSALS:
            if last[order.stack_uuid] == order.id:
                _traverse(actions, stack, order, accepted.get(stack.id))
        elif (row := _row(stack, order.payload.get("resource"))) is not None:
            RESOURCES[order.kind](stack, row, order.payload)


def _traverse(
    actions: StackActions, stack: EngineStack, order: Order, row: model.Stack | None
) -> None:
    if row is not None:
        stack.accept(row)
        definition = actions.definition(stack, row.template_uuid)
        if isinstance(definition, Stack):
            stack.timeout_s = definition.timeout_s
    TRAVERSALS[order.kind](actions, stack, order.payload)


def _row(stack: EngineStack, uuid: str | None) -> EngineResource | None:
    return next((row for row in stack.list_rows() if row.uuid == uuid), None)
