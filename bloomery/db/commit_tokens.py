"""Rows that tell whether a transaction was committed whose answer was lost.

A transaction that writes stores a token of its own in its last packet, together with COMMIT.  When
no answer comes, ``claim`` stores the same token on another connection: that fails if the
transaction was committed, waits while it is being committed, and otherwise keeps it from ever
being committed, however late its packet arrives.
"""

from __future__ import annotations

import os
import time
from typing import Final

import sqlalchemy as sa

from bloomery.db.tables import COMMIT_TOKENS

KEEP_S: Final = 3600  # nobody is in doubt for that long
_BATCH: Final = 1000
_T = COMMIT_TOKENS.c


def make() -> str:
    """Return a token that no other process makes; later ones sort after earlier ones."""
    return f"{time.time_ns():016x}{os.urandom(8).hex()}"


def commit_statements(token: str | None, dialect: sa.Dialect) -> list[str]:
    """Return what commits, in as few packets as the server takes, and stores ``token``."""
    if token is None:
        return ["COMMIT"]
    insert = f"INSERT INTO commit_tokens (token, is_void) VALUES ('{token}', FALSE)"  # noqa: S608  hexadecimal digits
    if dialect.name == "postgresql":
        return [f"{insert}; COMMIT"]
    if getattr(dialect, "is_mariadb", False):
        return [f"BEGIN NOT ATOMIC {insert}; COMMIT; END"]
    return [insert, "COMMIT"]


def claim(conn: sa.Connection, token: str) -> bool:
    """Return whether the transaction of ``token`` was committed; if not, it never will be.

    The connection commits each statement by itself.
    """
    try:
        conn.execute(sa.insert(COMMIT_TOKENS), {"token": token, "is_void": True})
    except sa.exc.IntegrityError:
        is_void = conn.execute(sa.select(_T.is_void).where(_T.token == token)).scalar_one()
        return not is_void
    return False


def trim(conn: sa.Connection) -> int:
    """Drop the oldest tokens, as many as one batch has; return how many went."""
    until = f"{time.time_ns() - KEEP_S * 10**9:016x}"
    oldest = sa.select(_T.token).where(_T.token < until).order_by(_T.token).limit(_BATCH)
    tokens = list(conn.execute(oldest).scalars())
    if tokens:
        conn.execute(sa.delete(COMMIT_TOKENS).where(_T.token <= tokens[-1]))
    return len(tokens)
