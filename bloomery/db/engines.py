"""Queries on engine processes and their heartbeats (Heat's table ``service``)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bloomery.db import rows
from bloomery.db.tables import ENGINES
from bloomery.model.conductor import Engine

_T = ENGINES.c
_BEAT = (
    sa.update(ENGINES)
    .where(_T.engine_id == sa.bindparam("ident"), _T.deleted_at.is_(None))
    .values(heartbeat=_T.heartbeat + 1, updated_at=sa.bindparam("at"))
)


def register(
    conn: sa.Connection,
    *,
    engine_id: str,
    host: str,
    hostname: str,
    binary: str,
    topic: str,
    report_interval: int,
    alone: bool = False,
) -> None:
    """Register a starting process; its ``engine_id`` is new.

    ``alone``: all others retire, since the lock of the state dir excludes a second process.
    """
    now = rows.now()
    if alone:
        conn.execute(sa.update(ENGINES).where(_T.deleted_at.is_(None)).values(deleted_at=now))
    conn.execute(
        sa.insert(ENGINES),
        {
            "engine_id": engine_id, "host": host, "hostname": hostname, "binary": binary,
            "topic": topic, "report_interval": report_interval, "heartbeat": 0,
            "created_at": now, "updated_at": now,
        },
    )  # fmt: skip


def beat(conn: sa.Connection, engine_id: str) -> bool:
    """Raise the engine's heartbeat.

    False: its row has retired or is gone, so others may have taken its locks: the engine must drop
    all trees, and register again under another id.
    """
    return bool(conn.execute(_BEAT, {"ident": engine_id, "at": rows.now()}).rowcount)


def unregister(conn: sa.Connection, engine_id: str, *, heartbeat: int | None = None) -> bool:
    """Retire an engine, which frees its locks.

    ``heartbeat``: only if the counter is unchanged.  False: the row is gone, or the engine lives.
    """
    query = sa.update(ENGINES).where(_T.engine_id == engine_id, _T.deleted_at.is_(None))
    if heartbeat is not None:
        query = query.where(_T.heartbeat == heartbeat)
    return bool(conn.execute(query.values(deleted_at=rows.now())).rowcount)


def list_live(conn: sa.Connection) -> list[Engine]:
    """Return the engines that have not retired, oldest first.

    The caller watches their heartbeats.
    """
    return _values(conn, sa.select(ENGINES).where(_T.deleted_at.is_(None)))


def list_all(conn: sa.Connection) -> list[Engine]:
    """Return all engines, retired ones included, oldest first."""
    return _values(conn, sa.select(ENGINES))


def _values(conn: sa.Connection, query: sa.Select[Any]) -> list[Engine]:
    return [Engine(**row) for row in conn.execute(query.order_by(_T.id)).mappings()]


def purge(conn: sa.Connection, *, before: datetime) -> int:
    """Delete the rows of engines that retired before; return their number."""
    return conn.execute(sa.delete(ENGINES).where(_T.deleted_at < before)).rowcount
