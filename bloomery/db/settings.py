"""Queries on what a database knows of its home: a few named facts, such as the sealing key's id."""

from __future__ import annotations

import sqlalchemy as sa

from bloomery.db.tables import SETTINGS

_T = SETTINGS.c


def find(conn: sa.Connection, name: str) -> str | None:
    return conn.execute(sa.select(_T.value).where(_T.name == name)).scalar_one_or_none()


def settle(conn: sa.Connection, name: str, value: str) -> str:
    """Store a fact unless it is settled already; return what holds."""
    if (existing := find(conn, name)) is not None:
        return existing
    conn.execute(sa.insert(SETTINGS), {"name": name, "value": value})
    return value


def put(conn: sa.Connection, name: str, value: str) -> None:
    """Store a fact, whatever held before."""
    conn.execute(sa.delete(SETTINGS).where(_T.name == name))
    conn.execute(sa.insert(SETTINGS), {"name": name, "value": value})
