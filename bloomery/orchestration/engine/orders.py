"""The effect of each kind of order on a stack or a resource.

The acceptance of an order stores the state that clients see.  The row is therefore IN_PROGRESS
already, with a new traversal number and its event.  Of several orders for a new traversal only the
last one counts, because the row describes that one alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery.model import stacks as model
from bloomery.model.stacks import Order, OrderKind
from bloomery.orchestration.engine.resource import EngineResource
from bloomery.orchestration.engine.stack_actions import StackActions, clear_hook
from bloomery.orchestration.engine.stacks import EngineStack
from bloomery.orchestration.resources import base, machine_orders, states
from bloomery.orchestration.resources.states import Action, Status

RESOURCE_ORDERS: Final = frozenset(
    {OrderKind.SIGNAL, OrderKind.UNSET_HOOK, OrderKind.MARK_UNHEALTHY}
)


def traverse(
    actions: StackActions, stack: EngineStack, kind: OrderKind, payload: Mapping[str, Any]
) -> None:
    """Begin the traversal that an order asks for."""
    match kind:
        case OrderKind.CREATE:
            actions.create(stack)
        case OrderKind.ADOPT:
            actions.adopt(stack, payload.get("data") or {})
        case OrderKind.UPDATE:
            _mark_ordered(stack, payload)
            actions.update(stack, converge=bool(payload.get("converge")))
        case OrderKind.RESTORE:
            actions.update(stack)
        case OrderKind.DELETE:
            actions.delete(stack, abandon=bool(payload.get("abandon")))
        case OrderKind.CANCEL if not payload.get("rollback"):  # in all cases actions go on
            actions.cancel(stack)
        case OrderKind.CANCEL if stack.action is Action.ROLLBACK:
            actions.update(stack)
        case OrderKind.CANCEL:
            actions.roll_back(stack)
        case _:
            actions.stack_task(stack, **payload)


def _mark_ordered(stack: EngineStack, payload: Mapping[str, Any]) -> None:
    """Mark the resources of the tree for which an update has orders of their own."""
    orders = {each.resource: each for each in machine_orders.ResourceOrder.list_of(payload)}
    for each in stack.stacks.values() if orders else ():
        for row in each.list_rows():
            if row.uuid in orders and row.pending_action is None:
                machine_orders.mark(row, orders[row.uuid])
                each.changes.change_row(row)
                each.emit_event(row, row.action, row.status, row.reason)


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
        stack.emit_event(row, "SIGNAL", Status.COMPLETE, f"Signal: {text}")
    stack.changes.change_row(row)
    stack.schedule.wake(row.uuid)


def _mark(stack: EngineStack, row: EngineResource, payload: Mapping[str, Any]) -> None:
    """Set a resource to CHECK_FAILED, to be replaced or repaired next, or to CHECK_COMPLETE.

    A mark by hand is kept, because it replaces a resource that a check's finding repairs.
    """
    if row.pending_action is not None:
        return
    machine_orders.clear(row)
    if payload.get("by_hand") and payload.get("unhealthy", True):
        row.data[model.MARKED_UNHEALTHY] = True
    row.action = Action.CHECK
    row.status = Status.FAILED if payload.get("unhealthy", True) else Status.COMPLETE
    row.reason = stack.changes.redaction.masked(str(payload.get("reason") or states.CHANGED))
    stack.changes.change_row(row)
    stack.emit_event(row, row.action, row.status, row.reason)


# ------------------------------------------------------------------------------------- all orders


def apply(
    actions: StackActions,
    stacks: Mapping[str, EngineStack],
    orders: Sequence[Order],
    accepted: Mapping[str, model.Stack],
) -> None:
    """Apply orders in the order of acceptance; ``accepted``: the stack rows stored with them."""
    last = {each.stack_uuid: each.id for each in orders if each.kind not in RESOURCE_ORDERS}
    for order in orders:
        stack = stacks.get(order.stack_uuid)
        if stack is None:
            continue  # it was deleted meanwhile
        if order.kind not in RESOURCE_ORDERS:
            if last[order.stack_uuid] == order.id:
                if (accepted_row := accepted.get(stack.id)) is not None:
                    stack.accept(accepted_row)
                    definition = actions.definition(stack, accepted_row.template_uuid)
                    stack.timeout_s = definition.timeout_s
                traverse(actions, stack, order.kind, order.payload)
            continue
        uuid = order.payload.get("resource")
        row = next((each for each in stack.list_rows() if each.uuid == uuid), None)
        if row is None:
            continue
        if order.kind is OrderKind.SIGNAL:
            _signal(stack, row, order.payload)
        elif order.kind is OrderKind.UNSET_HOOK:
            hook = str(order.payload["hook"])
            if row.data.get(hook) is True:
                clear_hook(stack, row, hook)
                if stack.open_traversal is not None:
                    stack.open_traversal.unset(row, hook)
        else:
            _mark(stack, row, order.payload)
