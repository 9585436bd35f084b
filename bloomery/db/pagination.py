"""Keyset pagination of any table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from bloomery import errors


def after(
    conn: sa.Connection,
    query: Any,
    table: sa.Table,
    order: Sequence[tuple[str, bool]],
    marker: str | None,
    missing: Callable[[str], errors.Failure] | None = None,
    *,
    marker_column: str = "uuid",
    visible: Sequence[sa.ColumnElement[bool]] = (),
) -> Any:
    """Order ``query`` by (column, descending), ties by id, and begin after the row of ``marker``.

    Without such a row ``missing`` is raised, or the list begins at the start.  ``visible``:
    conditions on that row; an invisible one is missing.  Nulls come first when ascending, last
    when descending, on every database.
    """
    keys = [(table.c[name], descending) for name, descending in order]
    if not keys or keys[-1][0] is not table.c.id:
        keys.append((table.c.id, keys[-1][1] if keys else False))
    if marker is not None:
        columns = [column for column, _ in keys]
        place = sa.select(*columns).where(table.c[marker_column] == marker, *visible)
        row = conn.execute(place).one_or_none()
        if row is None and missing is not None:
            raise missing(marker)
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
