"""Tokens that tell whether a transaction was committed when the answer to COMMIT is lost.

A writing transaction stores a unique token together with COMMIT.  Without an answer, ``claim``
stores the same token on another connection: the insert fails if the transaction was committed,
waits while the commit is in progress, and otherwise prevents the commit for good.
"""

from __future__ import annotations

import os
import time
from typing import Final

import sqlalchemy as sa

from bloomery.db.tables import COMMIT_TOKENS

KEEP_S: Final = 3600  # longer than any doubt lasts
_BATCH: Final = 1000
_T = COMMIT_TOKENS.c


def make() -> str:
    """Return a unique token; later tokens sort after earlier ones."""
    return f"{time.time_ns():016x}{os.urandom(8).hex()}"


def commit_statements(token: str | None, dialect: sa.Dialect) -> list[str]:
    """Return the statements that store ``token`` and commit, in as few packets as possible."""
    if token is None:
        return ["COMMIT"]
    # hexadecimal digits
    insert = f"INSERT INTO commit_tokens (token, is_void) VALUES ('{token}', FALSE)"  # noqa: S608
    if dialect.name == "postgresql":
        return [f"{insert}; COMMIT"]
    if getattr(dialect, "is_mariadb", False):
        return [f"BEGIN NOT ATOMIC {insert}; COMMIT; END"]
    return [insert, "COMMIT"]


def claim(conn: sa.Connection, token: str) -> bool:
    """Was the transaction of ``token`` committed?  If not, it never will be.

    The connection commits each statement by itself.
    """
    try:
        conn.execute(sa.insert(COMMIT_TOKENS), {"token": token, "is_void": True})
    except sa.exc.IntegrityError:
        is_void = conn.execute(sa.select(_T.is_void).where(_T.token == token)).scalar_one()
        return not is_void
    return False


def trim(conn: sa.Connection) -> int:
    """Delete one batch of the oldest tokens; return their number."""
    until = f"{time.time_ns() - KEEP_S * 10**9:016x}"
    oldest = sa.select(_T.token).where(_T.token < until).order_by(_T.token).limit(_BATCH)
    tokens = list(conn.execute(oldest).scalars())
    if tokens:
        conn.execute(sa.delete(COMMIT_TOKENS).where(_T.token <= tokens[-1]))
    return len(tokens)
