"""Pages of lists, whatever the table: in order, from behind a row that the caller has seen."""

from __future__ import annotations

from collections.abc import Callable
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
) -> Any:
    """Order ``query`` by ``sort_key``, ties by id, and begin after the row of ``marker``.

    Nulls come first when ascending, last when descending, on every database.
    """
    key, tie = table.c[sort_key], table.c.id
    if sort_key == "id":
        order = [tie.desc() if descending else tie.asc()]
    else:
        nulls = key.is_(None)
        order = [nulls.asc(), key.desc()] if descending else [nulls.desc(), key.asc()]
        order.append(tie.desc() if descending else tie.asc())
    if marker is not None:
        at = conn.execute(sa.select(key, tie).where(table.c[marker_column] == marker)).one_or_none()
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
    at = sa.literal(value, key.type)  # a bare True would not do for "less than"
    beyond = sa.or_(key < at, key.is_(None)) if descending else key > at
    return sa.or_(beyond, sa.and_(key == at, beyond_tie))
