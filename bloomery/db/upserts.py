"""Upserts, whose syntax differs between databases."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

import sqlalchemy as sa

_MYSQL: Final = frozenset({"mysql", "mariadb"})


@functools.lru_cache(maxsize=64)
def insert_or_update(
    dialect: str, table: sa.Table, columns: tuple[str, ...], *, key: str = "uuid"
) -> sa.TextClause:
    """Return the INSERT of ``columns`` that updates an existing row with this unique ``key``.

    ``created_at`` stays as it was.
    """
    kept = [name for name in columns if name not in (key, "created_at")]
    insert = _insert(dialect, table, columns)
    if dialect in _MYSQL:
        changes = {name: insert.inserted[name] for name in kept}
        return _text(dialect, table, columns, insert.on_duplicate_key_update(changes))
    changes = {name: insert.excluded[name] for name in kept}
    upsert = insert.on_conflict_do_update(index_elements=[key], set_=changes)
    return _text(dialect, table, columns, upsert)


@functools.lru_cache(maxsize=64)
def insert_missing(
    dialect: str, table: sa.Table, columns: tuple[str, ...], *, key: str = "uuid"
) -> sa.TextClause:
    """Return the INSERT of ``columns`` that keeps an existing row with this unique ``key``."""
    insert = _insert(dialect, table, columns)
    if dialect in _MYSQL:
        upsert = insert.on_duplicate_key_update({key: insert.inserted[key]})
    else:
        upsert = insert.on_conflict_do_nothing(index_elements=[key])
    return _text(dialect, table, columns, upsert)


@functools.lru_cache(maxsize=64)
def insert_or_renew(
    dialect: str, table: sa.Table, columns: tuple[str, ...], *, key: str
) -> sa.TextClause:
    """Return the INSERT that renews created_at of an existing row with this unique ``key``.

    A concurrent deletion of old rows waits for it, and then keeps the row.
    """
    insert = _insert(dialect, table, columns)
    if dialect in _MYSQL:
        renewed = {"created_at": insert.inserted.created_at}
        return _text(dialect, table, columns, insert.on_duplicate_key_update(renewed))
    renewed = {"created_at": insert.excluded.created_at}
    upsert = insert.on_conflict_do_update(index_elements=[key], set_=renewed)
    return _text(dialect, table, columns, upsert)


def _insert(dialect: str, table: sa.Table, columns: tuple[str, ...]) -> Any:
    values: dict[str, Any] = {name: sa.bindparam(name) for name in columns}
    return _dialect(dialect).insert(table).values(values).inline()


def _dialect(name: str) -> ModuleType:
    """Import the dialect in use only: the others would cost time and memory."""
    return importlib.import_module(f"sqlalchemy.dialects.{'mysql' if name in _MYSQL else name}")


def _text(dialect: str, table: sa.Table, columns: tuple[str, ...], upsert: Any) -> sa.TextClause:
    """Return a statement as text, with the types of its columns.

    SQLAlchemy does not cache upserts: their rendering was two fifths of the cost of a small stack.
    """
    rendered = str(upsert.compile(dialect=_dialect(dialect).dialect(paramstyle="named")))
    types = [sa.bindparam(name, type_=table.c[name].type) for name in columns]
    return sa.text(rendered).bindparams(*types)


def chunks(values: Sequence[Any], size: int = 1000) -> list[Sequence[Any]]:
    """Return ``values`` in parts that fit into the parameters of one statement."""
    return [values[start : start + size] for start in range(0, len(values), size)]
