"""Revisions of root stacks: the orders that gave them a template, and how each has ended.

The acceptance of such an order begins a revision.  Each turn of the tree adds what it has ended,
in its own transaction, so that a turn that is written twice counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from bloomery.db import rows, tree_values
from bloomery.db.tables import RAW_TEMPLATES, STACK_REVISIONS, STACKS
from bloomery.model.request import Request
from bloomery.model.stacks import REVISION_COUNTS, Action, Event, OrderKind, Revision, Stack, Status

_T = STACK_REVISIONS.c
_KINDS: Final = {Action.CREATE: "created", Action.UPDATE: "updated", Action.DELETE: "deleted"}
_IMPACTS: Final = {"service": "serviced", "rebuild": "rebuilt"}
_ACTIONS: Final = frozenset(
    {Action.CREATE, Action.ADOPT, Action.UPDATE, Action.RESTORE, Action.ROLLBACK}
)
_COLUMNS: Final = (
    "stack_uuid", "number", "template_uuid", "action", "status", "reason", "user", "request_id",
    "created_at", "ended_at",
)  # fmt: skip
_REVISED: Final = frozenset(
    {OrderKind.CREATE, OrderKind.ADOPT, OrderKind.UPDATE, OrderKind.RESTORE}
)
_MOST_REVISIONS: Final = 2**31 - 1  # the limit of the column
_OPEN: Final = _T.ended_at.is_(None)


# --------------------------------------------------------------------------------------- acceptance


def accept(conn: sa.Connection, kind: OrderKind, stack: Stack, *, request: Request) -> None:
    """End the open revision of a stack, and begin one if the order gives it a template.

    ``stack``: as the order leaves it.  The caller holds the row of the tree's lock, so that numbers
    do not collide.  A cancel goes on with the open revision.
    """
    if kind is OrderKind.CANCEL or stack.owner_uuid is not None:
        return
    runs = _T.status == Status.IN_PROGRESS
    superseded = sa.update(STACK_REVISIONS).where(_T.stack_uuid == stack.uuid, _OPEN)
    if kind is not OrderKind.CREATE:
        # In this order: MariaDB computes a reason after a status from the new status.
        conn.execute(
            superseded.ordered_values(
                (_T.reason, sa.case((runs, f"superseded by {stack.action}"), else_=_T.reason)),
                (_T.status, sa.case((runs, str(Status.FAILED)), else_=_T.status)),
                (_T.ended_at, rows.now()),
            )
        )
    if kind not in _REVISED:
        return
    newest = sa.select(sa.func.max(_T.number)).where(_T.stack_uuid == stack.uuid)
    number = (conn.execute(newest).scalar_one() or 0) + 1
    values = {name: getattr(stack, name) for name in ("template_uuid", "action", "status")}
    conn.execute(
        sa.insert(STACK_REVISIONS),
        {
            **values, "stack_uuid": stack.uuid, "number": number,
            "user": request.user_name or request.user, "request_id": request.request_id,
            "reason": tree_values.storable(stack.reason), "created_at": rows.now(),
        },
    )  # fmt: skip


# -------------------------------------------------------------------------------------------- turns

_STATE: Final = ("action", "status", "reason", "ended_at")
_COUNT: Final = (
    sa.update(STACK_REVISIONS)
    .where(_T.stack_uuid == sa.bindparam("root"), _OPEN)
    .values({name: _T[name] + sa.bindparam(f"more_{name}") for name in REVISION_COUNTS})
)
_COUNT_AND_TELL: Final = _COUNT.values({name: sa.bindparam(f"to_{name}") for name in _STATE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a turn changes of the open revision of a tree.

    ``state``  columns of the root's state, if the turn writes it; None: it does not
    """

    root_uuid: str
    counts: Mapping[str, int] = field(default_factory=dict)
    state: Mapping[str, Any] | None = None


def progress_of(stacks: Sequence[Stack], events: Sequence[Event]) -> Progress | None:
    """Return what the stacks and events of a turn mean for the revision, or None for nothing."""
    counts: Counter[str] = Counter()
    for event in events:
        count = _KINDS.get(Action(event.action))
        if event.physical_id == event.stack_uuid:  # of the stack itself
            continue
        if count is not None and event.status == Status.FAILED:
            counts["failed"] += 1
        elif count is not None and event.status == Status.COMPLETE:
            counts[_IMPACTS.get(event.impact or "", count)] += 1
            counts["data_lost"] += event.loses_data
    root = next((each for each in stacks if each.uuid == each.root_uuid), None)
    state = None
    if root is not None and root.action in _ACTIONS:
        has_ended = root.status != Status.IN_PROGRESS and not root.open
        state = {
            "action": root.action, "status": root.status,
            "reason": tree_values.storable(root.reason),
            "ended_at": rows.now() if has_ended else None,
        }  # fmt: skip
    counted = {name: count for name, count in counts.items() if count}
    if state is None and not counted:
        return None
    uuid = root.root_uuid if root is not None else events[0].root_uuid
    return Progress(root_uuid=uuid, counts=counted, state=state)


def add(conn: sa.Connection, progress: Progress, *, is_overtaken: bool) -> None:
    """Add the progress to the open revision, if there is one.

    ``is_overtaken``: the root's state in the turn is older than that of its row.
    """
    changes = {f"more_{name}": progress.counts.get(name, 0) for name in REVISION_COUNTS}
    statement = _COUNT
    if progress.state is not None and not is_overtaken:
        changes |= {f"to_{name}": value for name, value in progress.state.items()}
        statement = _COUNT_AND_TELL
    conn.execute(statement, changes | {"root": progress.root_uuid})


# ------------------------------------------------------------------------------------------ reading

_REVISIONS = sa.select(
    *(_T[name] for name in (*_COLUMNS, *REVISION_COUNTS)),
    RAW_TEMPLATES.c.uuid.is_not(None).label("has_template"),
).outerjoin(RAW_TEMPLATES, RAW_TEMPLATES.c.uuid == _T.template_uuid)


def list_of_stack(conn: sa.Connection, stack_uuid: str) -> list[Revision]:
    """Return the revisions of a stack, the newest first."""
    query = _REVISIONS.where(_T.stack_uuid == stack_uuid).order_by(_T.number.desc())
    return [_from_row(row) for row in conn.execute(query)]


def find(conn: sa.Connection, stack_uuid: str, number: int) -> Revision | None:
    if number > _MOST_REVISIONS:
        return None
    query = _REVISIONS.where(_T.stack_uuid == stack_uuid, _T.number == number)
    row = conn.execute(query).one_or_none()
    return None if row is None else _from_row(row)


def _from_row(row: sa.Row[Any]) -> Revision:
    return Revision(
        **{name: getattr(row, name) for name in _COLUMNS},
        counts={name: getattr(row, name) for name in REVISION_COUNTS},
        has_template=bool(row.has_template),
    )


# -------------------------------------------------------------------------------------------- purge


def drop_old(conn: sa.Connection, *, keep: int, before: datetime | None, at_most: int) -> int:
    """Delete revisions beyond the newest ``keep`` of their stack, and those that ended ``before``.

    ``keep`` 0, ``before`` None: no such limit.  The newest one stays, and those with the template
    that the stack has.  Returns the number of deleted revisions.
    """
    newest = (
        sa.select(_T.stack_uuid, sa.func.max(_T.number).label("number"))
        .group_by(_T.stack_uuid)
        .subquery()
    )
    is_old = sa.or_(
        _T.number <= newest.c.number - keep if keep else sa.false(),
        sa.false() if before is None else _T.ended_at < before,
    )
    query = (
        sa.select(_T.id)
        .join(newest, newest.c.stack_uuid == _T.stack_uuid)
        .join(STACKS, STACKS.c.uuid == _T.stack_uuid)
        .where(
            is_old, _T.ended_at.is_not(None), _T.number < newest.c.number,
            _T.template_uuid != STACKS.c.template_uuid,
        )
        .limit(at_most)
    )  # fmt: skip
    ids = list(conn.execute(query).scalars())
    if ids:
        conn.execute(sa.delete(STACK_REVISIONS).where(_T.id.in_(ids)))
    return len(ids)
