"""Queries on event rows: what happened, in order, for the relay to tell the world."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from bloomery.db import event_numbers, rows
from bloomery.db.tables import EVENTS

_INSERT = sa.insert(EVENTS)
_SERVICES: Final = {
    "stack": "orchestration",
    "software_deployment": "orchestration",
}  # whose objects they are; all others: baremetal


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """``<service>.<object>.<action>.<status>`` about one object; ``facts`` are masked.

    ``snapshot`` is the whole masked object, present only when some sink needs it.  ``owner`` and
    ``lessee`` are the projects that may see it; without both, those alone who may see everything.
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
    owner: str | None = None
    lessee: str | None = None


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
        "owner": event.owner,
        "lessee": event.lessee,
    }


def insert(conn: sa.Connection, encoded: Sequence[Mapping[str, Any]]) -> None:
    """Write rows, behind the guard of the object they tell of: that orders its events."""
    if encoded:
        conn.execute(_INSERT, rows.lean(encoded))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """An event row; what it holds as JSON text is decoded only when it is looked at.

    ``id`` is the number by which readers go: see ``event_numbers``.
    """

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
    owner: str | None
    lessee: str | None

    @property
    def event_type(self) -> str:
        service = _SERVICES.get(self.object, "baremetal")
        return f"{service}.{self.object}.{self.action}.{self.status}"

    @property
    def message_id(self) -> str:
        """Return what is the same each time the event is told."""
        return str(uuid.uuid5(uuid.UUID(self.object_uuid), f"{self.id} {self.created_at}"))

    @property
    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = rows.load(self.facts_text)
        return facts

    @property
    def snapshot(self) -> dict[str, Any] | None:
        return None if self.snapshot_text is None else rows.load(self.snapshot_text)


_T = EVENTS.c


def _number(conn: sa.Connection) -> sa.Column[int]:
    """Return the column readers go by.  SQLite has one writer: keys appear in their order."""
    return _T.id if conn.dialect.name == "sqlite" else _T.number


@functools.cache
def _stored(number: sa.Column[int]) -> sa.Select[Any]:
    return sa.select(
        number.label("id"), _T.created_at, _T.object, _T.object_uuid, _T.action, _T.status,
        _T.level, _T.publisher, _T.request_id, _T.facts.label("facts_text"),
        _T.snapshot.label("snapshot_text"), _T.owner, _T.lessee,
    ).order_by(number)  # fmt: skip


def list_after(conn: sa.Connection, last_id: int, limit: int) -> list[EventRow]:
    """Return the next rows after number ``last_id``; those without a number come later."""
    number = _number(conn)
    query = _stored(number).where(number > last_id).limit(limit)
    return [EventRow(**row) for row in conn.execute(query).mappings()]


class Happened(NamedTuple):
    """As much of an event as tells who is to look."""

    id: int
    object: str
    object_uuid: str
    status: str


def list_objects_after(conn: sa.Connection, last_id: int, limit: int) -> list[Happened]:
    """Return what the next rows after ``last_id`` are of, as ``list_after``."""
    number = _number(conn)
    query = sa.select(number, _T.object, _T.object_uuid, _T.status).where(number > last_id)
    batch = conn.execute(query.order_by(number).limit(limit))
    return [Happened(*row) for row in batch]


def last_id(conn: sa.Connection) -> int:
    """Return the number given last, 0 where there is none."""
    if conn.dialect.name != "sqlite":
        return event_numbers.last_number(conn)
    newest: int = conn.execute(sa.select(sa.func.coalesce(sa.func.max(_T.id), 0))).scalar_one()
    return newest


def trim(conn: sa.Connection, *, before: datetime, up_to: int, at_most: int) -> int:
    """Drop the oldest rows: older than ``before``, and none after number ``up_to``.

    Looks at ``at_most`` rows, by number; returns how many went.
    """
    number = _number(conn)
    query = sa.select(number.label("number"), _T.created_at).where(number <= up_to)
    oldest = conn.execute(query.order_by(number).limit(at_most))
    gone = [row.number for row in oldest if row.created_at < before]
    if gone:
        conn.execute(sa.delete(EVENTS).where(number <= gone[-1], _T.created_at < before))
    return len(gone)


def oldest_at(conn: sa.Connection, last_id: int = 0) -> datetime | None:
    """Return when the event with the lowest number after ``last_id`` happened."""
    number = _number(conn)
    query = sa.select(_T.created_at).where(number > last_id).order_by(number).limit(1)
    return conn.execute(query).scalar_one_or_none()
