"""Numbers of event rows, assigned after the commit: the order in which all readers see them.

A key is taken before its transaction commits, so that readers by key would miss rows which appear
later.  On servers rows are therefore inserted without a number; any process numbers the committed
rows, in a short transaction under one counter row.  Two commits about one object are ordered by its
lock, so the later one has higher keys.  Numbering by key within each round keeps that order.

A number is never lower than its row's key: rows that were read by their keys before (by an older
release, or on SQLite before they were copied) keep their place, and so do the cursors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from bloomery.db import upserts
from bloomery.db.engine import Database
from bloomery.db.tables import EVENT_CURSORS, EVENT_NUMBERING, EVENTS

BATCH: Final = 500
CHANNEL: Final = "bloomery_events"  # of PostgreSQL: the payload is the last assigned number
_ROW: Final = 1
_T, _N = EVENTS.c, EVENT_NUMBERING.c
_LAST: Final = sa.select(_N.last_number).where(_N.id == _ROW)
_STILL_S: Final = 5  # the longest pause of a process inside the transaction that numbers
_LOCK: Final = _LAST.with_for_update()
_UNNUMBERED: Final = (
    sa.select(_T.id).where(_T.number.is_(None)).order_by(_T.id).limit(sa.bindparam("most"))
)
_GIVE: Final = (
    sa.update(EVENTS)
    .where(_T.id.in_(sa.bindparam("idents", expanding=True)))
    .values(number=_T.id + sa.bindparam("ahead"))
)
_RAISE: Final = (
    sa.update(EVENT_NUMBERING)
    .where(_N.id == _ROW, _N.last_number < sa.bindparam("last"))
    .values(last_number=sa.bindparam("last"))
)
_NOTIFY: Final = sa.text("SELECT pg_notify(:channel, :payload)")
_PROGRESS: Final = sa.select(
    _LAST.scalar_subquery().label("last_number"),
    sa.exists().where(_T.number.is_(None)).label("has_new"),
    sa.exists().where(EVENT_CURSORS.c.wants_snapshots).label("wants_snapshots"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """``has_new``: committed rows have no number yet; ``wants_snapshots``: some sink needs them."""

    last_number: int
    has_new: bool
    wants_snapshots: bool


def find_progress(conn: sa.Connection) -> Progress:
    """Return the site's progress.  One statement by keys: cheap enough for ten a second."""
    row = conn.execute(_PROGRESS).one()
    return Progress(
        last_number=row.last_number or 0,
        has_new=bool(row.has_new),
        wants_snapshots=bool(row.wants_snapshots),
    )


def last_number(conn: sa.Connection) -> int:
    """Return the last assigned number, or 0."""
    return conn.execute(_LAST).scalar_one_or_none() or 0


def reserved(db: Database) -> Database:
    """Return the database with the connection on which a process numbers.

    The server ends a transaction that is idle for 5 s, since other processes wait for it.  The
    caller closes the database.
    """
    return db.reserved(idle_s=_STILL_S)


def assign(conn: sa.Connection, most: int = BATCH) -> tuple[int, int]:
    """Number the oldest rows without a number, ``most`` at once.

    Returns the last assigned number, and the count of numbered rows.

    Waits for another process that numbers, and for no writer: rows are read without a lock and
    changed by primary key.  The caller owns the transaction, on a connection of ``reserved``.
    """
    last: int = conn.execute(_LOCK).scalar_one()
    idents = list(conn.execute(_UNNUMBERED, {"most": most}).scalars())
    if not idents:
        return last, 0
    groups: dict[int, list[int]] = {}  # consecutive keys, by the distance of numbers from keys
    for ident in idents:
        last = max(last + 1, ident)
        groups.setdefault(last - ident, []).append(ident)
    for ahead, group in groups.items():
        conn.execute(_GIVE, {"idents": group, "ahead": ahead})
    conn.execute(_RAISE, {"last": last})
    announce(conn, last)
    return last, len(idents)


def announce(conn: sa.Connection, last: int | None = None) -> None:
    """Notify other processes when this commits; on MariaDB they poll."""
    if conn.dialect.name == "postgresql":
        payload = "" if last is None else str(last)
        conn.execute(_NOTIFY, {"channel": CHANNEL, "payload": payload})


def settle(conn: sa.Connection, passed: Sequence[int] = ()) -> None:
    """Raise the counter beyond ``passed`` of all sinks, for a database that was copied here."""
    insert = upserts.insert_missing(
        conn.dialect.name, EVENT_NUMBERING, ("id", "last_number"), key="id"
    )
    conn.execute(insert, {"id": _ROW, "last_number": 0})
    if passed:
        conn.execute(_RAISE, {"last": max(passed)})
