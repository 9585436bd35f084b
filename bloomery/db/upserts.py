"""Upserts, whose syntax differs between databases."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
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
    updated = tuple(name for name in columns if name not in (key, "created_at"))
    return _upsert(dialect, table, columns, key, updated)


@functools.lru_cache(maxsize=64)
def insert_missing(
    dialect: str, table: sa.Table, columns: tuple[str, ...], *, key: str = "uuid"
) -> sa.TextClause:
    """Return the INSERT of ``columns`` that keeps an existing row with this unique ``key``."""
    return _upsert(dialect, table, columns, key, ())


@functools.lru_cache(maxsize=64)
def insert_or_renew(
    dialect: str, table: sa.Table, columns: tuple[str, ...], *, key: str
) -> sa.TextClause:
    """Return the INSERT that renews created_at of an existing row with this unique ``key``.

    A concurrent deletion of old rows waits for it, and then keeps the row.
    """
    return _upsert(dialect, table, columns, key, ("created_at",))


def _upsert(
    dialect: str, table: sa.Table, columns: tuple[str, ...], key: str, updated: tuple[str, ...]
) -> sa.TextClause:
    """Return a statement as text, with the types of its columns.

    SQLAlchemy does not cache upserts: their rendering was two fifths of the cost of a small stack.
    """
    # the dialect in use only: the others would cost time and memory
    module = importlib.import_module(
        f"sqlalchemy.dialects.{'mysql' if dialect in _MYSQL else dialect}"
    )
    values: dict[str, Any] = {name: sa.bindparam(name) for name in columns}
    upsert = module.insert(table).values(values).inline()
    if dialect in _MYSQL:
        upsert = upsert.on_duplicate_key_update(
            {name: upsert.inserted[name] for name in updated or (key,)}
        )
    elif updated:
        changes = {name: upsert.excluded[name] for name in updated}
        upsert = upsert.on_conflict_do_update(index_elements=[key], set_=changes)
    else:
        upsert = upsert.on_conflict_do_nothing(index_elements=[key])
    rendered = str(upsert.compile(dialect=module.dialect(paramstyle="named")))
    types = [sa.bindparam(name, type_=table.c[name].type) for name in columns]
    return sa.text(rendered).bindparams(*types)


def chunks(values: Sequence[Any], size: int = 1000) -> list[Sequence[Any]]:
    """Return ``values`` in parts that fit into the parameters of one statement."""
    return [values[start : start + size] for start in range(0, len(values), size)]
