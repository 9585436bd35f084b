"""Queries on settings of the database, such as the sealing key's id."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Final

import sqlalchemy as sa

from bloomery.db import upserts
from bloomery.db.tables import SETTINGS

_AUDIT_ANCHOR: Final = "audit_anchor:"  # and the hash of the host's name, which may be long
KEY_ID: Final = "key_id"  # of the key that seals
FORMER_KEY_ID: Final = "former_key_id"  # whose values are re-sealed; "" or missing: none

_T = SETTINGS.c


def find(conn: sa.Connection, name: str) -> str | None:
    return conn.execute(sa.select(_T.value).where(_T.name == name)).scalar_one_or_none()


def find_several(conn: sa.Connection, names: Collection[str]) -> dict[str, str]:
    rows = conn.execute(sa.select(_T.name, _T.value).where(_T.name.in_(names)))
    return {row.name: row.value for row in rows}


def audit_anchor(host: str) -> str:
    """Return the name of the setting with the hash of the host's first audit record."""
    return f"{_AUDIT_ANCHOR}{hashlib.sha256(host.encode()).hexdigest()[:32]}"


def list_audit_anchors(conn: sa.Connection) -> list[str]:
    """Return the hash of the first audit record of each host."""
    anchors = sa.select(_T.value).where(_T.name.startswith(_AUDIT_ANCHOR))
    return list(conn.execute(anchors).scalars())


def settle(conn: sa.Connection, name: str, value: str) -> str:
    """Store a setting unless it exists; return the stored value."""
    if (existing := find(conn, name)) is not None:
        return existing
    missing = upserts.insert_missing(conn.dialect.name, SETTINGS, ("name", "value"), key="name")
    conn.execute(missing, {"name": name, "value": value})
    settled: str = conn.execute(sa.select(_T.value).where(_T.name == name)).scalar_one()
    return settled


def put(conn: sa.Connection, name: str, value: str) -> None:
    """Store a setting."""
    upsert = upserts.insert_or_update(conn.dialect.name, SETTINGS, ("name", "value"), key="name")
    conn.execute(upsert, {"name": name, "value": value})
