"""Queries on event rows, which the relay sends to sinks in order."""

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
STACK: Final = "stack"
RESOURCE: Final = "resource"  # of a stack: its events have the UUID of the stack
_SERVICES: Final = {
    STACK: "orchestration",
    RESOURCE: "orchestration",
    "software_deployment": "orchestration",
}  # services of objects; all others: baremetal


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """``<service>.<object>.<action>.<status>`` about one object; ``facts`` are masked.

    ``snapshot`` is the whole masked object, present only when some sink needs it.  ``owner`` and
    ``lessee`` are the projects that may see the event; without both, only callers that may see all.
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
    """Insert rows, behind the guard of their object, which orders its events."""
    if encoded:
        conn.execute(_INSERT, rows.lean(encoded))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """An event row; its JSON text is decoded on access.

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
        """Return the id of the message, the same on each delivery."""
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
    """Return the column by which readers go; on SQLite, with one writer, the key."""
    return _T.id if conn.dialect.name == "sqlite" else _T.number


@functools.cache
def _stored(number: sa.Column[int]) -> sa.Select[Any]:
    return sa.select(
        number.label("id"), _T.created_at, _T.object, _T.object_uuid, _T.action, _T.status,
        _T.level, _T.publisher, _T.request_id, _T.facts.label("facts_text"),
        _T.snapshot.label("snapshot_text"), _T.owner, _T.lessee,
    ).order_by(number)  # fmt: skip


def list_after(
    conn: sa.Connection,
    last_id: int,
    limit: int,
    *,
    until: int | None = None,
    object_uuid: str | None = None,
    descending: bool = False,
) -> list[EventRow]:
    """Return the next rows after number ``last_id``; rows without a number come later.

    ``until``: and up to that number; ``descending``: the rows with the greatest numbers, these
    first; ``object_uuid``: of one object, by an index.
    """
    number = _number(conn)
    query = _stored(number).where(number > last_id).limit(limit)
    if until is not None:
        query = query.where(number <= until)
    if object_uuid is not None:
        query = query.where(_T.object_uuid == object_uuid)
    if descending:
        query = query.order_by(None).order_by(number.desc())
    return [EventRow(**row) for row in conn.execute(query).mappings()]


class Happened(NamedTuple):
    """The object of an event."""

    id: int
    object: str
    object_uuid: str
    status: str


def list_objects_after(conn: sa.Connection, last_id: int, limit: int) -> list[Happened]:
    """Return the objects of the next rows after ``last_id``, as ``list_after``."""
    number = _number(conn)
    query = sa.select(number, _T.object, _T.object_uuid, _T.status).where(number > last_id)
    batch = conn.execute(query.order_by(number).limit(limit))
    return [Happened(*row) for row in batch]


def last_id(conn: sa.Connection) -> int:
    """Return the last assigned number, or 0."""
    if conn.dialect.name != "sqlite":
        return event_numbers.last_number(conn)
    newest: int = conn.execute(sa.select(sa.func.coalesce(sa.func.max(_T.id), 0))).scalar_one()
    return newest


def trim(conn: sa.Connection, *, before: datetime, up_to: int, at_most: int) -> int:
    """Delete the oldest rows: older than ``before``, and none after number ``up_to``.

    Looks at ``at_most`` rows, by number; returns how many were deleted.
    """
    number = _number(conn)
    query = sa.select(number.label("number"), _T.created_at).where(number <= up_to)
    oldest = conn.execute(query.order_by(number).limit(at_most))
    gone = [row.number for row in oldest if row.created_at < before]
    if gone:
        conn.execute(sa.delete(EVENTS).where(number <= gone[-1], _T.created_at < before))
    return len(gone)


def oldest_at(conn: sa.Connection, last_id: int = 0) -> datetime | None:
    """Return the time of the event with the lowest number after ``last_id``."""
    number = _number(conn)
    query = sa.select(_T.created_at).where(number > last_id).order_by(number).limit(1)
    return conn.execute(query).scalar_one_or_none()
