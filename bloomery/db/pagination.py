"""Keyset pagination of any table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from bloomery import errors


def keyset(
    conn: sa.Connection,
    query: Any,
    table: sa.Table,
    sort_key: str,
    descending: bool,
    marker: str | None,
    missing: Callable[[str], errors.Failure],
    marker_column: str = "uuid",
    visible: Sequence[sa.ColumnElement[bool]] = (),
) -> Any:
    """Order ``query`` by ``sort_key``, ties by id, and begin after the row of ``marker``.

    ``visible``: conditions on a marker's row; an invisible marker is missing. Nulls come first when
    ascending, last when descending, on every database.
    """
    key, tie = table.c[sort_key], table.c.id
    if sort_key == "id":
        order = [tie.desc() if descending else tie.asc()]
    else:
        nulls = key.is_(None)
        order = [nulls.asc(), key.desc()] if descending else [nulls.desc(), key.asc()]
        order.append(tie.desc() if descending else tie.asc())
    if marker is not None:
        place = sa.select(key, tie).where(table.c[marker_column] == marker, *visible)
        at = conn.execute(place).one_or_none()
        if at is None:
            raise missing(marker)
        query = query.where(_after(key, tie, at[0], at[1], descending))
    return query.order_by(*order)


def _after(key: Any, tie: Any, value: Any, row_id: int, descending: bool) -> Any:
    beyond_tie = tie < row_id if descending else tie > row_id
    if key is tie:
        return beyond_tie
    if value is None:
        rest = sa.false() if descending else key.is_not(None)
        return sa.or_(rest, sa.and_(key.is_(None), beyond_tie))
    at = sa.literal(value, key.type)  # "less than" needs a typed literal
    beyond = sa.or_(key < at, key.is_(None)) if descending else key > at
    return sa.or_(beyond, sa.and_(key == at, beyond_tie))


def after(
    conn: sa.Connection,
    query: Any,
    table: sa.Table,
    order: Sequence[tuple[str, bool]],
    marker: str | None,
) -> Any:
    """Order ``query`` by (column, descending), ties by id, and begin after the row of ``marker``.

    Without such a row the list begins at the start.  Nulls come first when ascending, last when
    descending, on every database.
    """
    keys = [(table.c[name], descending) for name, descending in order]
    keys.append((table.c.id, keys[-1][1] if keys else False))
    if marker is not None:
        columns = [column for column, _ in keys]
        row = conn.execute(sa.select(*columns).where(table.c.uuid == marker)).one_or_none()
        if row is not None:
            # beyond in one key, equal in all keys before
            beyond, alike = [], list[Any]()
            for (column, descending), value in zip(keys, tuple(row), strict=True):
                beyond.append(sa.and_(*alike, _is_beyond(column, value, descending=descending)))
                alike.append(
                    column.is_(None) if value is None else column == sa.literal(value, column.type)
                )
            query = query.where(sa.or_(*beyond))
    for column, descending in keys:
        if column.nullable:
            query = query.order_by(column.is_(None) if descending else column.is_not(None))
        query = query.order_by(column.desc() if descending else column.asc())
    return query


def _is_beyond(column: Any, value: Any, *, descending: bool) -> Any:
    if value is None:
        return sa.false() if descending else column.is_not(None)
    literal = sa.literal(value, column.type)
    if not descending:
        return column > literal
    return sa.or_(column < literal, column.is_(None)) if column.nullable else column < literal
