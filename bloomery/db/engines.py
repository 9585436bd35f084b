"""Queries on engine processes: who works on stacks, and who is alive (Heat's table ``service``)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bloomery.db import rows
from bloomery.db.tables import ENGINES
from bloomery.model.engine import Engine

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
    """Put a process that starts on line; its ``engine_id`` is new.

    ``alone``: all others retire, for no second process can be there (the lock of a state dir).
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
    """Raise the counter that says that this engine lives.

    False: its row has retired or is gone, so others may have taken its locks: it must drop all
    trees, and begin again under another id.
    """
    return bool(conn.execute(_BEAT, {"ident": engine_id, "at": rows.now()}).rowcount)


def unregister(conn: sa.Connection, engine_id: str, *, heartbeat: int | None = None) -> bool:
    """Retire an engine; from now on its locks are free for the taking.

    ``heartbeat``: only if its counter still stands there.  False: it is gone, or lives after all.
    """
    query = sa.update(ENGINES).where(_T.engine_id == engine_id, _T.deleted_at.is_(None))
    if heartbeat is not None:
        query = query.where(_T.heartbeat == heartbeat)
    return bool(conn.execute(query.values(deleted_at=rows.now())).rowcount)


def list_live(conn: sa.Connection) -> list[Engine]:
    """Return the engines that have not retired, in the order of their start.

    Whether their counters move is for the caller to watch.
    """
    return _values(conn, sa.select(ENGINES).where(_T.deleted_at.is_(None)))


def list_all(conn: sa.Connection) -> list[Engine]:
    """Return the engines that live and those that have retired, in the order of their start."""
    return _values(conn, sa.select(ENGINES))


def _values(conn: sa.Connection, query: sa.Select[Any]) -> list[Engine]:
    return [Engine(**row) for row in conn.execute(query.order_by(_T.id)).mappings()]


def purge(conn: sa.Connection, *, before: datetime) -> int:
    """Drop the rows of engines that retired before; return how many there were."""
    return conn.execute(sa.delete(ENGINES).where(_T.deleted_at < before)).rowcount
