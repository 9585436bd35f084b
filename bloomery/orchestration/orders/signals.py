"""Orders for one resource of a stack: signals, cleared hooks, and marks of its health."""

from __future__ import annotations

import contextlib
import secrets
from typing import Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import resources as db
from bloomery.db import stacks
from bloomery.model.stack_views import Json, StackIdentity
from bloomery.model.stacks import MARKED_UNHEALTHY, OrderKind, Stack, StoredResource
from bloomery.orchestration.orders import acceptance
from bloomery.orchestration.orders.acceptance import Change
from bloomery.orchestration.queries import access, resources
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.stored_values import StoredStack
from bloomery.orchestration.resources import drains
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template.resource_rules import HOOKS

UNSET_HOOK: Final = "unset_hook"
TOKEN: Final = "token"  # noqa: S105  its key in the data of a resource that hands out addresses for signals
MARKED: Final = "state changed by resource_mark_unhealthy api"
_DEAF: Final = frozenset({Action.SUSPEND, Action.DELETE})


# --------------------------------------------------------------------------------------- signals


def resource_signal(
    ctx: StackContext,
    identity: StackIdentity,
    name: str,
    details: Json | None,
    *,
    token: str | None = None,
) -> None:
    """Accept a signal, or with ``unset_hook`` the clearing of a hook.

    ``token``: of the resource's signal URL; a valid token replaces the check of a policy.
    Raises ResourceNotFound, InvalidBreakPointHook, ResourceActionNotSupported, NotSupported.
    """
    if token is None:
        access.authorize(ctx, access.SIGNAL)
        stack = access.living(ctx, identity)
        resource = _addressed(ctx, stack, name)
    else:
        stack, resource = find_by_token(ctx, identity, name, token)
    if details is not None and UNSET_HOOK in details:
        hook = details[UNSET_HOOK]
        if hook not in HOOKS:
            raise errors.InvalidBreakPointHook(
                reason=f"Invalid hook type {str(hook)[:100]!r}: it is one of {', '.join(HOOKS)}"
            )
        if not resource.data.get(str(hook)):
            raise errors.InvalidBreakPointHook(
                reason=f'The "{hook}" hook is not defined on resource {resource.name}'
            )
        kind, payload = OrderKind.UNSET_HOOK, Json(resource=resource.uuid, hook=str(hook))
    else:
        _check_hears(ctx, stack, resource, details)
        kind, payload = OrderKind.SIGNAL, Json(resource=resource.uuid, details=details)
    change = Change(stack=stack, kind=kind, payload=payload, renews=token is None)
    acceptance.accept(ctx, change)


def find_by_token(
    ctx: StackContext, identity: StackIdentity, name: str, token: str
) -> tuple[Stack, StoredResource]:
    """Return a resource and its stack, without a login.  Raises ResourceNotFound."""
    with ctx.services.db.read() as conn:
        stack = stacks.find(conn, identity.uuid)
        uuid = "" if stack is None else stack.uuid
        rows = db.list_of_stack(conn, uuid, ctx.sealer, [name], leftovers=True)
    if stack is None or not rows or stack.deleted_at or StackIdentity.of(stack) != identity:
        raise errors.ResourceNotFound(resource_name=name, stack_name=identity.name)
    for row in rows:
        own = row.data.get(TOKEN)
        if isinstance(own, str) and secrets.compare_digest(own.encode(), token.encode()):
            return stack, row
    raise resources.missing(stack, name)


def _addressed(ctx: StackContext, stack: Stack, name: str) -> StoredResource:
    """Return the resource of a name, or a replaced one of this name that waits for its drain."""
    with ctx.services.db.read() as conn:
        rows = db.list_of_stack(conn, stack.uuid, ctx.sealer, [name], leftovers=True)
    current = [row for row in rows if row.is_current]
    leftovers = [row for row in rows if not row.is_current and drains.is_waiting(row.data)]
    row = next((row for row in [*current, *leftovers] if drains.is_waiting(row.data)), None)
    if row is None and not current:
        raise resources.missing(stack, name)
    return row or current[0]


def log_agent_in(ctx: StackContext, user: str, password: str) -> None:
    """Check the login of an agent (``Signalled.login``).  Raises NotFound."""
    uuid, _, name = user.partition("/")
    with ctx.services.db.read() as conn:
        stack = stacks.find(conn, uuid)
    if stack is None or stack.project != ctx.project:
        raise access.missing(uuid)
    find_by_token(ctx, StackIdentity.of(stack), name, password)


def _check_hears(
    ctx: StackContext, stack: Stack, resource: StoredResource, details: Json | None
) -> None:
    if resource.action == Action.DELETE and resource.status == Status.COMPLETE:
        raise resources.missing(stack, resource.name)
    if resource.action in _DEAF and not drains.is_waiting(resource.data):
        raise errors.NotSupported(feature=f"Signal resource during {resource.action}")
    kind = StoredStack(ctx, stack).kind_of(resource)
    if not callable(getattr(kind, "handle_signal", None)):
        raise errors.ResourceActionNotSupported(
            action="signal", name=resource.name, type=resource.type
        )
    kind.check_signal(resource, details)


# -------------------------------------------------------------------------------- mark unhealthy


def resource_mark_unhealthy(
    ctx: StackContext,
    identity: StackIdentity,
    ident: str,
    *,
    mark_unhealthy: bool,
    reason: str | None = None,
) -> None:
    """Accept an order that marks a resource unhealthy, or healthy again.

    ``ident``: its name, physical resource ID or reference ID.  Raises ResourceNotFound,
    PhysicalResourceIDAmbiguity, ActionInProgress.
    """
    stack = access.living(ctx, identity)
    resource = _identified(ctx, stack, ident)
    busy = errors.ActionInProgress(stack_name=stack.name, action=resource.action)
    if resource.status == Status.IN_PROGRESS:
        raise busy
    can_become_healthy = resource.action == Action.CHECK and resource.status == Status.FAILED
    if resource.action == Action.DELETE if mark_unhealthy else not can_become_healthy:
        return  # the mark has no effect
    status = Status.FAILED if mark_unhealthy else Status.COMPLETE
    text = StoredStack(ctx, stack).redaction.masked(reason or MARKED)

    def mark(conn: sa.Connection) -> None:
        """Write the state for clients; the engine writes it again, with an event."""
        if not db.set_state(conn, resource.uuid, action=Action.CHECK, status=status, reason=text):
            raise busy
        db.set_flag(conn, resource.uuid, MARKED_UNHEALTHY, is_set=mark_unhealthy)

    payload = {
        "resource": resource.uuid, "unhealthy": mark_unhealthy, "reason": text, "by_hand": True,
    }  # fmt: skip
    change = Change(stack=stack, kind=OrderKind.MARK_UNHEALTHY, payload=payload, check=mark)
    acceptance.accept(ctx, change)


def _identified(ctx: StackContext, stack: Stack, ident: str) -> StoredResource:
    members = StoredStack(ctx, stack).resources()
    if ident in members:
        return members[ident].row
    fitting = [each.row for each in members.values() if each.row.physical_id == ident]
    for each in () if fitting else members.values():
        with contextlib.suppress(Exception):  # a kind of a plug-in may raise anything
            if each.reference_id() == ident:
                fitting.append(each.row)
    if len(fitting) > 1:
        raise errors.PhysicalResourceIDAmbiguity(phys_id=ident)
    if not fitting:
        raise resources.missing(stack, ident)
    return fitting[0]
