"""Actions on a whole stack without a new template: suspend, resume, check and cancel."""

from __future__ import annotations

from typing import Any

from bloomery import errors
from bloomery.model.stack_views import StackIdentity
from bloomery.model.stacks import OrderKind, Stack
from bloomery.orchestration.orders import acceptance, checks
from bloomery.orchestration.orders.acceptance import Change
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.resources.states import Action, Status


def suspend(ctx: StackContext, identity: StackIdentity) -> None:
    """Accept a suspend; a stack that is SUSPEND_COMPLETE does not change."""
    _act(ctx, identity, Action.SUSPEND, OrderKind.SUSPEND)


def resume(ctx: StackContext, identity: StackIdentity) -> None:
    _act(ctx, identity, Action.RESUME, OrderKind.RESUME)


def check(ctx: StackContext, identity: StackIdentity) -> None:
    """Accept a check, which compares each resource with its physical resource."""
    _act(ctx, identity, Action.CHECK, OrderKind.CHECK)


def _act(ctx: StackContext, identity: StackIdentity, action: Action, kind: OrderKind) -> None:
    def attempt() -> None:
        row = access.living(ctx, identity)
        is_done = row.action == action and row.status == Status.COMPLETE
        if is_done and action is not Action.CHECK:
            return  # no event, as in Heat
        checks.not_deleting(row, f"Performing {action.lower()} of")
        checks.not_busy(ctx, row)
        if action is not Action.CHECK:
            checks.types_of_tree(ctx, row)
        columns = {"updated_at": ctx.runtime.utc()}
        acceptance.accept(ctx, Change(stack=row, kind=kind, action=action, columns=columns))

    acceptance.retried(attempt, identity.name)


def cancel_update(ctx: StackContext, identity: StackIdentity) -> None:
    """Accept the rollback of an update.  Raises NotSupported unless one is in progress."""

    def attempt() -> None:
        row = _stack_at(ctx, identity, Action.UPDATE)
        columns: dict[str, Any] = {}
        if row.previous_template_uuid is not None:
            columns = {
                "template_uuid": row.previous_template_uuid,
                "previous_template_uuid": row.template_uuid,
            }
        change = Change(
            stack=row,
            kind=OrderKind.CANCEL,
            payload={"rollback": True},
            action=Action.ROLLBACK,
            columns=columns,
        )
        acceptance.accept(ctx, change)

    acceptance.retried(attempt, identity.name)


def cancel_without_rollback(ctx: StackContext, identity: StackIdentity) -> None:
    """Accept that an update or create stops.  Raises NotSupported unless one is in progress."""

    def attempt() -> None:
        row = _stack_at(ctx, identity, Action.UPDATE, Action.CREATE)
        change = Change(
            stack=row,
            kind=OrderKind.CANCEL,
            payload={"rollback": False},
            action=row.action,
            status=Status.FAILED,
            reason=f"Stack {row.action} cancelled",
        )
        acceptance.accept(ctx, change)

    acceptance.retried(attempt, identity.name)


def _stack_at(ctx: StackContext, identity: StackIdentity, *actions: Action) -> Stack:
    row = access.living(ctx, identity)
    if row.status != Status.IN_PROGRESS or row.action not in actions:
        state = f"{row.action}_{row.status}"
        raise errors.NotSupported(feature=f"Cancelling update when stack is {state}")
    return row
