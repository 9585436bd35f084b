"""Queries on events of stacks for the API; ``trees`` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from bloomery.db import pagination
from bloomery.db.tables import STACK_EVENTS

_T = STACK_EVENTS.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Events of some stacks.  ``equal``: column -> accepted values."""

    stacks: Sequence[str]
    equal: Mapping[str, Sequence[str]] = field(default_factory=dict)
    order: Sequence[tuple[str, bool]] = ()  # (column, descending), ties by id
    descending: bool = True  # without an explicit order
    marker: str | None = None
    limit: int | None = None


def list_page(conn: sa.Connection, query: Query) -> Sequence[sa.Row[Any]]:
    """Return rows; an unknown marker is ignored."""
    statement = sa.select(STACK_EVENTS).where(_T.stack_uuid.in_(list(query.stacks)))
    for name, values in query.equal.items():
        statement = statement.where(_T[name].in_(list(values)))
    order = query.order or (("id", query.descending),)
    statement = pagination.after(conn, statement, STACK_EVENTS, order, query.marker)
    if query.limit is not None:
        statement = statement.limit(query.limit)
    return conn.execute(statement).all()


def find(conn: sa.Connection, stack_uuid: str, uuid: str) -> sa.Row[Any] | None:
    return conn.execute(
        sa.select(STACK_EVENTS).where(_T.uuid == uuid, _T.stack_uuid == stack_uuid)
    ).one_or_none()
