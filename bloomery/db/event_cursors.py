"""Queries on cursors: the last event and the reader of each sink.

Each acquisition raises the cursor's generation.  A reader that lost its cursor fails at its next
acknowledgement, and moves nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from bloomery.db import event_numbers, events, rows, upserts
from bloomery.db.tables import EVENT_CURSORS

_T = EVENT_CURSORS.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """One row: the sink has taken all events up to ``last_id``."""

    sink: str
    last_id: int
    holder: str | None
    generation: int
    updated_at: datetime | None
    wants_snapshots: bool


def add_missing(conn: sa.Connection, sinks: Collection[str], wanting: Collection[str] = ()) -> None:
    """Add cursors of new sinks at the current end.

    ``wanting``: sinks that need snapshots of objects; all writers of the site then add them.
    """
    columns = ("sink", "last_id")
    insert = upserts.insert_missing(conn.dialect.name, EVENT_CURSORS, columns, key="sink")
    end = events.last_id(conn)
    for sink in sorted(sinks):
        conn.execute(insert, {"sink": sink, "last_id": end})
        flag = sa.update(EVENT_CURSORS).where(_T.sink == sink)
        conn.execute(flag.values(wants_snapshots=sink in wanting))
    event_numbers.announce(conn)


def list_all(conn: sa.Connection) -> list[Cursor]:
    """Return all cursors, by the names of their sinks."""
    query = sa.select(EVENT_CURSORS).order_by(_T.sink)
    return [Cursor(**row) for row in conn.execute(query).mappings()]


def measure_lags(conn: sa.Connection) -> dict[str, float]:
    """Return the age in seconds of the oldest event that each sink has not taken, or 0.

    A sink that has taken everything costs no statement of its own.
    """
    end, now = events.last_id(conn), rows.now()
    oldest = {
        cursor.sink: events.oldest_at(conn, cursor.last_id) if cursor.last_id < end else None
        for cursor in list_all(conn)
    }
    return {
        sink: 0.0 if at is None else max((now - at).total_seconds(), 0.0)
        for sink, at in oldest.items()
    }


def delete(conn: sa.Connection, sink: str) -> bool:
    """Delete a sink's cursor; False: there is none."""
    return bool(conn.execute(sa.delete(EVENT_CURSORS).where(_T.sink == sink)).rowcount)


def find(conn: sa.Connection, sink: str) -> Cursor | None:
    row = conn.execute(sa.select(EVENT_CURSORS).where(_T.sink == sink)).mappings().one_or_none()
    return None if row is None else Cursor(**row)


def take(conn: sa.Connection, cursor: Cursor, holder: str) -> Cursor | None:
    """Become the reader, unless the cursor has changed since it was read."""
    taken = (
        sa.update(EVENT_CURSORS)
        .where(_T.sink == cursor.sink, _T.generation == cursor.generation)
        .values(holder=holder, generation=_T.generation + 1, updated_at=rows.now())
    )
    return find(conn, cursor.sink) if conn.execute(taken).rowcount else None


def advance(conn: sa.Connection, cursor: Cursor, last_id: int) -> bool:
    """Store that all events up to ``last_id`` were taken; False: the cursor was lost."""
    return _change(conn, cursor, last_id=last_id, updated_at=rows.now())


def release(conn: sa.Connection, cursor: Cursor) -> bool:
    """Free the cursor for the next reader."""
    return _change(conn, cursor, holder=None)


def _change(conn: sa.Connection, cursor: Cursor, **values: object) -> bool:
    is_holder = (
        _T.sink == cursor.sink,
        _T.generation == cursor.generation,
        _T.holder == cursor.holder,
    )
    return bool(conn.execute(sa.update(EVENT_CURSORS).where(*is_holder).values(**values)).rowcount)


def moved(cursor: Cursor, last_id: int) -> Cursor:
    return replace(cursor, last_id=last_id)
