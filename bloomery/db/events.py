"""Queries on event rows: what happened, in order, for the relay to tell the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from bloomery.db import rows
from bloomery.db.tables import EVENTS

_INSERT = sa.insert(EVENTS)
_SERVICES: Final = {
    "stack": "orchestration",
    "software_deployment": "orchestration",
}  # whose objects they are; all others: baremetal


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """``<service>.<object>.<action>.<status>`` about one object; ``facts`` are masked.

    ``snapshot`` is the whole masked object, present only when some sink needs it.
    """

    object: str
    object_uuid: str
    action: str
    status: str
    level: str = "info"
    publisher: str | None = None
    request_id: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    snapshot: Mapping[str, Any] | None = None


def encode(event: Event) -> dict[str, Any]:
    """Return the row of ``event``; do this before the transaction."""
    return {
        "created_at": rows.now(),
        "object": event.object,
        "object_uuid": event.object_uuid,
        "action": event.action,
        "status": event.status,
        "level": event.level,
        "publisher": event.publisher,
        "request_id": event.request_id,
        "facts": rows.dump(event.facts),
        "snapshot": None if event.snapshot is None else rows.dump(event.snapshot),
    }


def insert(conn: sa.Connection, encoded: Sequence[Mapping[str, Any]]) -> None:
    """Write rows.  On PostgreSQL the transaction is numbered before its rows: see Horizon."""
    if encoded:
        if conn.dialect.name == "postgresql":
            conn.execute(sa.select(sa.func.pg_current_xact_id()))
        conn.execute(_INSERT, rows.lean(encoded))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An event row; what it holds as JSON text is decoded only when it is looked at."""

    id: int
    created_at: datetime
    object: str
    object_uuid: str
    action: str
    status: str
    level: str
    publisher: str | None
    request_id: str | None
    facts_text: str
    snapshot_text: str | None

    @property
    def event_type(self) -> str:
        service = _SERVICES.get(self.object, "baremetal")
        return f"{service}.{self.object}.{self.action}.{self.status}"

    @property
    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = rows.load(self.facts_text)
        return facts

    @property
    def snapshot(self) -> dict[str, Any] | None:
        return None if self.snapshot_text is None else rows.load(self.snapshot_text)


_T = EVENTS.c
_STORED = sa.select(
    _T.id, _T.created_at, _T.object, _T.object_uuid, _T.action, _T.status, _T.level, _T.publisher,
    _T.request_id, _T.facts.label("facts_text"), _T.snapshot.label("snapshot_text"),
).order_by(_T.id)  # fmt: skip


def list_after(
    conn: sa.Connection,
    last_id: int,
    limit: int,
    up_to: int | None = None,
) -> list[Stored]:
    """Return the next rows after ``last_id``, none beyond ``up_to`` (see ``Horizon``)."""
    query = _STORED.where(_T.id > last_id).limit(limit)
    if up_to is not None:
        query = query.where(_T.id <= up_to)
    return [Stored(**row) for row in conn.execute(query).mappings()]


def list_objects_after(
    conn: sa.Connection, last_id: int, limit: int, up_to: int | None = None
) -> list[tuple[int, str, str]]:
    """Return number, object and UUID of the next rows after ``last_id``, as ``list_after``."""
    query = sa.select(_T.id, _T.object, _T.object_uuid).where(_T.id > last_id)
    if up_to is not None:
        query = query.where(_T.id <= up_to)
    found = conn.execute(query.order_by(_T.id).limit(limit))
    return [(number, kind, uuid) for number, kind, uuid in found]


_LAST_NUMBER = sa.text("SELECT last_value FROM events_id_seq")
_NEXT = sa.text("SELECT pg_current_xact_id()::text::bigint")
_OLDEST = sa.text("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")


class Horizon:
    """Up to which number no row can appear any more; one for each reader.

    A row's number is taken before its commit, so a reader that goes by numbers must not pass one
    that may still be filled.  SQLite has one writer: numbers appear in order.  On PostgreSQL the
    last number handed out is noted, and then the number of a transaction of our own; when all
    older ones have ended, every number up to the noted one is filled or lost.  (To compare each
    row's transaction with the oldest one running is not enough: a younger one may hold a lower
    number.  Nor is a snapshot's xmax: it is past the last that ended, not the last that began.)
    MariaDB is read as SQLite is until there is a way to wait out its transactions.
    """

    def __init__(self) -> None:
        self._settled = 0
        self._noted: tuple[int, int] | None = None  # last number, a transaction after it

    @property
    def waits(self) -> bool:
        """Are there numbers that transactions which still run may hold?"""
        return self._noted is not None

    def look(self, conn: sa.Connection) -> int | None:
        """Return the number, None where numbers appear in order."""
        if conn.dialect.name != "postgresql":
            return None
        if self._noted is None:
            number: int = conn.execute(_LAST_NUMBER).scalar_one()
            if number == self._settled:
                return number
            self._noted = number, conn.execute(_NEXT).scalar_one()
        number, after = self._noted
        if conn.execute(_OLDEST).scalar_one() >= after:
            self._settled, self._noted = number, None
        return self._settled


def last_id(conn: sa.Connection) -> int:
    """Return the number of the newest row, 0 where there is none."""
    newest: int = conn.execute(sa.select(sa.func.coalesce(sa.func.max(_T.id), 0))).scalar_one()
    return newest


def trim(conn: sa.Connection, *, before: datetime, up_to: int, at_most: int) -> int:
    """Drop the oldest rows: older than ``before``, and none after number ``up_to``.

    Looks at ``at_most`` rows, by number; returns how many went.
    """
    oldest = sa.select(_T.id, _T.created_at).where(_T.id <= up_to).order_by(_T.id).limit(at_most)
    gone = [row.id for row in conn.execute(oldest) if row.created_at < before]
    if gone:
        conn.execute(sa.delete(EVENTS).where(_T.id <= gone[-1], _T.created_at < before))
    return len(gone)


def oldest_at(conn: sa.Connection) -> datetime | None:
    """Return when the event with the lowest number happened."""
    return conn.execute(sa.select(_T.created_at).order_by(_T.id).limit(1)).scalar_one_or_none()
