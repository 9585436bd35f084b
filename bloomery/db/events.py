"""Queries on event rows: what happened, in order, for the relay to tell the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bloomery.db import rows
from bloomery.db.tables import EVENTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """``baremetal.<object>.<action>.<status>`` about one object; ``facts`` are masked.

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
    if encoded:
        conn.execute(sa.insert(EVENTS), list(encoded))


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
        return f"baremetal.{self.object}.{self.action}.{self.status}"

    @property
    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = rows.load(self.facts_text)
        return found

    @property
    def snapshot(self) -> dict[str, Any] | None:
        return None if self.snapshot_text is None else rows.load(self.snapshot_text)


_T = EVENTS.c
_STORED = sa.select(
    _T.id, _T.created_at, _T.object, _T.object_uuid, _T.action, _T.status, _T.level, _T.publisher,
    _T.request_id, _T.facts.label("facts_text"), _T.snapshot.label("snapshot_text"),
).order_by(_T.id)  # fmt: skip


def list_after(conn: sa.Connection, last_id: int, limit: int) -> list[Stored]:
    """Return the next rows after ``last_id``, with no gap that could still be filled.

    A row's number is taken before its commit.  SQLite has one writer, so numbers appear in
    order.  A server database has many: there this is the place to stop before the first number
    that a running transaction may hold.  Comparing each row's transaction with the oldest one
    running (PostgreSQL: pg_snapshot_xmin) is not enough while the cursor is a number: a younger
    transaction may hold a lower number.  What is enough: note the last number handed out and
    pg_snapshot_xmax, and read up to that number once pg_snapshot_xmin has reached the noted xmax.
    """
    wanted = _STORED.where(_T.id > last_id).limit(limit)
    return [Stored(**row) for row in conn.execute(wanted).mappings()]


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
