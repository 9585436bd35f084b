"""Deletion of stacks with their resources, and abandonment, which keeps the resources."""

from __future__ import annotations

from bloomery import errors
from bloomery.model.stack_views import Json, StackIdentity
from bloomery.model.stacks import OrderKind
from bloomery.orchestration.orders import acceptance, adoption, checks, snapshot_handlers
from bloomery.orchestration.orders.acceptance import Change
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.resources.states import Action, Status


def delete_stack(ctx: StackContext, identity: StackIdentity) -> None:
    """Accept the deletion of a stack in any state; a stack that is deleting does not change."""
    acceptance.retried(lambda: _delete(ctx, identity), identity.name)


def abandon_stack(ctx: StackContext, identity: StackIdentity) -> Json:
    """Accept that a stack is abandoned, with its resources kept; return its adopt data.

    Raises NotSupported (abandoning is off, a nested stack), ActionInProgress (no convergence).
    """
    adoption.check_abandon(ctx)
    row = access.living(ctx, identity)
    if row.owner_uuid is not None:
        raise errors.NotSupported(feature="Abandoning a stack below another")
    checks.not_busy(ctx, row)
    data = adoption.data_of(ctx, row)
    acceptance.retried(lambda: _delete(ctx, identity, abandon=True), identity.name)
    return data


def _delete(ctx: StackContext, identity: StackIdentity, *, abandon: bool = False) -> None:
    row = access.living(ctx, identity)
    if row.action == Action.DELETE and row.status == Status.IN_PROGRESS:
        return
    checks.types_of_tree(ctx, row)
    if not abandon:
        snapshot_handlers.clean_all(ctx, row)
    in_progress = row.status == Status.IN_PROGRESS
    change = Change(
        stack=row,
        kind=OrderKind.DELETE,
        payload={"abandon": abandon},
        action=Action.DELETE,
        ends=f"Stack {row.action} cancelled" if in_progress else None,
    )
    acceptance.accept(ctx, change)
