"""Acceptance of orders: one commit writes the order and the state that clients see from now on.

    change = Change(stack=stack, action=Action.SUSPEND, kind=OrderKind.SUSPEND)
    acceptance.accept(ctx, change)

The transaction locks the row of the tree's lock, so that no engine writes meanwhile.  It raises
Overtaken if the stack's traversal has changed since the caller read it; the caller then retries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, TypeVar

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import (
    credentials,
    events,
    revisions,
    snapshots,
    stack_locks,
    stack_orders,
    stacks,
    tree_values,
    trees,
)
from bloomery.db import rows as db_rows
from bloomery.model.stacks import Event, Order, OrderKind, Snapshot, Stack, Template
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.resources.states import Status
from bloomery.orchestration.template.environment import SINKS
from bloomery.secrets import Sealer

T = TypeVar("T")
ATTEMPTS: Final = 5  # an engine may change a stack between read and commit
_NONE: Final[Mapping[str, Any]] = {}


class Overtaken(Exception):
    """The stack has changed since it was read; nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The changes of an existing stack that an order brings.

    ``action``     the new action; None: the state stays, and there is no event
    ``status``     IN_PROGRESS unless the order ends an action; ``reason`` then says why
    ``ends``       the reason of a FAILED event that ends the former action first
    ``columns``    other columns of the stack that change
    ``renews``     whether engines act for this caller from now on; False: the caller is unknown
    ``check``      is called first in the transaction; raises if the rows forbid the change
    """

    stack: Stack
    kind: OrderKind
    payload: Mapping[str, Any] = field(default_factory=dict)
    action: str | None = None
    status: str = Status.IN_PROGRESS
    reason: str | None = None
    ends: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    template: Template | None = None
    tags: Sequence[str] | None = None
    snapshot: Snapshot | None = None
    check: Callable[[sa.Connection], None] | None = None
    renews: bool = True


def accept(ctx: StackContext, change: Change) -> None:
    """Commit ``change`` and wake an engine.  Raises Overtaken, DatabaseBusy."""
    sealer, stack = ctx.sealer, change.stack
    after, columns, new_events = stack, dict[str, Any](), list[Event]()
    if change.action is not None:  # the stack as clients see it from now on
        begins = change.status == Status.IN_PROGRESS
        columns = {
            "action": change.action,
            "status": change.status,
            "reason": change.reason or f"Stack {change.action} started",
            "traversal": stack.traversal + 1,
            "open": True,
            "deadline_at": stack.deadline_at,
            **(deadline_columns(ctx, stack.timeout_mins) if begins else {}),
            **change.columns,
        }
        after = replace(stack, **columns)
        if change.ends is not None:
            ended = replace(stack, status=Status.FAILED, reason=change.ends)
            new_events.append(event_of(ctx, ended))
        new_events.append(event_of(ctx, after))
    written = _encoded(change.template, sealer)
    order = order_of(ctx, stack, change.kind, change.payload)

    def write(conn: sa.Connection) -> None:
        stack_locks.hold(conn, stack.root_uuid)
        if change.check is not None:
            change.check(conn)
        _write_template(conn, written)
        if columns and not stacks.update_guarded(conn, stack.uuid, stack.traversal, columns):
            raise Overtaken
        if change.action is not None:
            revisions.accept(conn, change.kind, after, request=ctx.request)
        if change.tags is not None:
            stacks.replace_tags(conn, stack.uuid, change.tags)
        if change.snapshot is not None:
            snapshots.insert(conn, change.snapshot, sealer)
        if change.renews:
            root = stack if stack.uuid == stack.root_uuid else stacks.find(conn, stack.root_uuid)
            if root is not None and root.credentials_uuid is not None:
                credentials.renew(conn, root.credentials_uuid, **caller(ctx))
        _emit_events(ctx, conn, new_events, after)
        stack_orders.insert(conn, sealer, order)

    ctx.services.db.transact(write)
    send(ctx, after, change.template, new_events)
    ctx.on_accepted(stack.root_uuid)


def create(ctx: StackContext, stack: Stack, template: Template, order: Order, most: int) -> None:
    """Commit a new root stack and its order; ``most``: root stacks of a project, -1: no limit."""
    sealer = ctx.sealer
    written = _encoded(template, sealer)
    row, tags = tree_values.encode_stack(stack), trees.encode_tags(stack)
    new_events = [event_of(ctx, stack)]

    def name_conflict(exc: sa.exc.IntegrityError) -> errors.Failure | None:
        taken = {"stacks.live_name": lambda: errors.StackExists(stack_name=stack.name)}
        return db_rows.broken_constraint(exc, taken, None)

    def write(conn: sa.Connection) -> None:
        stack_orders.insert(conn, sealer, order)
        check_count(conn, stack.project, most)
        _write_template(conn, written)
        credentials.insert(conn, str(stack.credentials_uuid), **caller(ctx))
        with db_rows.naming_conflicts(name_conflict):
            trees.insert_stacks(conn, [row], tags)
        revisions.accept(conn, order.kind, stack, request=ctx.request)
        _emit_events(ctx, conn, new_events, stack)

    ctx.services.db.transact(write)
    send(ctx, stack, template, new_events)
    ctx.on_accepted(stack.root_uuid)


def check_count(conn: sa.Connection, project: str, most: int) -> None:
    if 0 <= most <= stacks.count_roots(conn, project):
        raise errors.RequestLimitExceeded(
            what="another stack", limit=most, unit="stacks", option="max_stacks_per_tenant"
        )


def retried(attempt: Callable[[], T], stack_name: str) -> T:
    """Retry while the stack changes meanwhile.  Raises ActionInProgress after ``ATTEMPTS``."""
    for _ in range(ATTEMPTS):
        try:
            return attempt()
        except Overtaken:
            continue
    raise errors.ActionInProgress(stack_name=stack_name, action="of other callers")


# -------------------------------------------------------------------------------- what is written


def order_of(
    ctx: StackContext, stack: Stack, kind: OrderKind, payload: Mapping[str, Any] = _NONE
) -> Order:
    request = ctx.request
    return Order(
        root_uuid=stack.root_uuid,
        stack_uuid=stack.uuid,
        kind=kind,
        payload=payload,
        request={**caller(ctx), "roles": list(request.roles), "request_id": request.request_id},
    )


def caller(ctx: StackContext) -> dict[str, Any]:
    request = ctx.request
    return {"user": request.user, "project": ctx.project, "roles": request.roles}


def event_of(ctx: StackContext, stack: Stack) -> Event:
    return Event.of_stack(stack, uuid=ctx.runtime.new_id(), created_at=ctx.runtime.utc())


def deadline_columns(ctx: StackContext, timeout_mins: int | None) -> dict[str, Any]:
    timeout_s = timeout_mins * 60 if timeout_mins else ctx.services.conf.engine.stack_action_timeout
    return {"deadline_at": ctx.runtime.utc() + timedelta(seconds=timeout_s)}


def _encoded(template: Template | None, sealer: Sealer) -> tuple[Any, Any] | None:
    return None if template is None else tree_values.encode_template(template, sealer)


def _write_template(conn: sa.Connection, encoded: tuple[Any, Any] | None) -> None:
    if encoded is not None:
        row, files = encoded
        trees.insert_templates(conn, [row], [files] if files else [])


def _emit_events(
    ctx: StackContext, conn: sa.Connection, new_events: Sequence[Event], stack: Stack
) -> None:
    trees.insert_events(conn, [tree_values.encode_event(event) for event in new_events])
    request_id = ctx.request.request_id
    events.insert(
        conn, [trees.relay_row(each, stack, request_id=request_id) for each in new_events]
    )


def send(
    ctx: StackContext, stack: Stack, template: Template | None, new_events: Sequence[Event]
) -> None:
    runtime = ctx.runtime
    if not (runtime.sinks and new_events):
        return
    if template is None:
        with ctx.services.db.read() as conn:
            template = trees.get_template(conn, stack.template_uuid, ctx.sealer)
    operator_sinks = () if runtime.operators is None else runtime.operators.event_sinks
    runtime.sinks.send(stack, [*template.environment.get(SINKS, ()), *operator_sinks], new_events)
