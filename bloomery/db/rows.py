"""Conversion between values and rows: JSON text, times, and errors of constraints."""

from __future__ import annotations

import functools
import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import orjson
import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles

from bloomery import errors

EMPTY_OBJECT = "{}"


def dump(value: Any) -> str:
    """Encode an object for its column."""
    return orjson.dumps(value).decode()


def dump_all(values: Iterable[Any]) -> tuple[str, ...]:
    """Encode several objects for their columns."""
    return tuple(orjson.dumps(value).decode() for value in values)


def load(text: str) -> Any:
    return orjson.loads(text)


def change(
    conn: sa.Connection, update: sa.Update, place: Mapping[str, Any], values: Mapping[str, Any]
) -> int:
    """Execute an UPDATE that has no values yet; return the number of changed rows.

    ``place``: what its conditions bind.  The statement is built once for each set of columns.
    """
    bound = {**place, **{f"to_{name}": value for name, value in values.items()}}
    return conn.execute(_changing(update, tuple(values)), bound).rowcount


@functools.lru_cache(maxsize=1024)
def _changing(update: sa.Update, columns: tuple[str, ...]) -> sa.Update:
    values: dict[str, Any] = {name: sa.bindparam(f"to_{name}") for name in columns}
    return update.values(values)


_SLOW = " "  # before a text that only ``json`` reads and writes; JSON white space


def dump_document(value: Any) -> str:
    """Encode a tenant's document: integers of any size, any keys, any text.

    orjson refuses integers beyond 64 bits and reads them as floats; such documents use the slower
    ``json`` in both directions.
    """
    try:
        return orjson.dumps(value, default=_plain).decode()
    except TypeError:
        return _SLOW + json.dumps(value, default=_plain, separators=(",", ":"))


def load_document(text: str) -> Any:
    return json.loads(text) if text.startswith(_SLOW) else orjson.loads(text)


def _plain(value: Any) -> Any:
    """Return a mapping or a set of any type as JSON has it."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"cannot store {type(value).__name__} as JSON")


now: Final = functools.partial(datetime.now, UTC)  # wall clock; for deadlines: ``clock``


def ordered_uuid() -> str:
    """Return a UUID that sorts after those made before, so that an index grows at one end.

    Version 7 of RFC 9562.  Wall clocks differ between hosts: it tells no order of events.
    """
    millis, noise = time.time_ns() // 10**6, int.from_bytes(os.urandom(10))
    number = (millis % 2**48) << 80 | noise
    number = number & ~(0xF << 76) | 7 << 76
    return str(uuid.UUID(int=number & ~(3 << 62) | 2 << 62))


class UtcTime(sa.types.TypeDecorator[datetime]):
    """Aware UTC datetimes with microseconds, on every database."""

    impl = sa.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> Any:
        if dialect.name in ("mysql", "mariadb"):
            from sqlalchemy.dialects import mysql  # late: a site has one database

            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(sa.DateTime())

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


class LongText(sa.Text):
    """Text of any length, on every database."""


@compiles(LongText, "mysql", "mariadb")
def _long_text(_type: LongText, _compiler: Any, **_options: Any) -> str:
    return "LONGTEXT"


def encode(values: Mapping[str, Any], objects: Iterable[str]) -> dict[str, Any]:
    """Return ``values`` with objects as JSON text."""
    return {
        name: dump(value) if name in objects and not isinstance(value, str) else value
        for name, value in values.items()
    }


def broken_constraint(
    exc: sa.exc.IntegrityError,
    meanings: Mapping[str, Callable[[], errors.Failure]],
    missing: errors.Failure | None,
) -> errors.Failure | None:
    """Return the named error for the constraint that ``exc`` violates, or None.

    ``meanings`` is keyed by ``table.column``; SQLite names columns, the servers name the constraint
    (uq_table_column).  ``missing``: the error of a foreign key, which SQLite does not name.
    """
    message = str(exc.orig)
    for key, meaning in meanings.items():
        table, column = key.split(".")
        if key in message or f"uq_{table}_{column}" in message:
            return meaning()
    return missing if "foreign key" in message.lower() else None


class naming_conflicts:  # noqa: N801  reads as a statement
    """Raise the named error of a violated constraint; errors without a name pass."""

    def __init__(self, named: Callable[[sa.exc.IntegrityError], errors.Failure | None]) -> None:
        self._named = named

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, exc: BaseException | None, _tb: object) -> None:
        if isinstance(exc, sa.exc.IntegrityError) and (named := self._named(exc)):
            raise named from exc


def lean(encoded: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows for an INSERT; a single row outside of a list costs a third less."""
    return encoded[0] if len(encoded) == 1 else list(encoded)
