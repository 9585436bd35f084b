"""Queries on event rows: what happened, in order, for the relay to tell the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


def list_after(conn: sa.Connection, last_id: int, limit: int) -> Sequence[sa.RowMapping]:
    """Return the next rows after ``last_id``.  SQLite has one writer: there are no gaps."""
    wanted = sa.select(EVENTS).where(EVENTS.c.id > last_id).order_by(EVENTS.c.id).limit(limit)
    return conn.execute(wanted).mappings().all()
