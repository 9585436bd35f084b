"""Rows that may be there already: the one thing that each database says in words of its own."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

_MYSQL = frozenset({"mysql", "mariadb"})


@functools.lru_cache(maxsize=64)
def insert_or_update(
    dialect: str, table: sa.Table, columns: tuple[str, ...], *, key: str = "uuid"
) -> Any:
    """Return the INSERT of ``columns`` that changes the row with this unique ``key`` instead.

    ``created_at`` stays as it was.
    """
    kept = [name for name in columns if name not in (key, "created_at")]
    values: dict[str, Any] = {name: sa.bindparam(name) for name in columns}
    if dialect in _MYSQL:
        insert = mysql.insert(table).values(values)
        return insert.on_duplicate_key_update({name: insert.inserted[name] for name in kept})
    generic = postgresql.insert if dialect == "postgresql" else sqlite.insert
    upsert = generic(table).values(values)
    changes = {name: upsert.excluded[name] for name in kept}
    return upsert.on_conflict_do_update(index_elements=[key], set_=changes)


@functools.lru_cache(maxsize=64)
def insert_missing(dialect: str, table: sa.Table, *, key: str = "uuid") -> Any:
    """Return the INSERT that leaves a row with this unique ``key`` as it is."""
    if dialect in _MYSQL:
        insert = mysql.insert(table)
        return insert.on_duplicate_key_update({key: insert.inserted[key]})
    generic = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return generic(table).on_conflict_do_nothing(index_elements=[key])


@functools.lru_cache(maxsize=64)
def insert_or_renew(dialect: str, table: sa.Table, *, key: str) -> Any:
    """Return the INSERT that makes a row with this unique ``key`` as young as a new one instead.

    Who drops old rows that nobody refers to, at the same time, waits for it, and then spares it.
    """
    if dialect in _MYSQL:
        insert = mysql.insert(table)
        return insert.on_duplicate_key_update({"created_at": insert.inserted.created_at})
    generic = postgresql.insert if dialect == "postgresql" else sqlite.insert
    upsert = generic(table)
    renewed = {"created_at": upsert.excluded.created_at}
    return upsert.on_conflict_do_update(index_elements=[key], set_=renewed)


def chunks(values: Sequence[Any], size: int = 1000) -> list[Sequence[Any]]:
    """Return ``values`` in parts that fit into the parameters of one statement."""
    return [values[start : start + size] for start in range(0, len(values), size)]
