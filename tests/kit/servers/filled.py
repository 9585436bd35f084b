"""Databases with rows in every table, those that come later included: what a copy has to bring."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from bloomery.db import copying
from bloomery.db.engine import Database
from bloomery.db.rows import UtcTime
from bloomery.db.tables import METADATA

AT = datetime(2026, 11, 22, 8, 30, 0, 123456, tzinfo=UTC)
TEXT = '{"ü": "\\n \\"quoted\\" \\\\ 🔩 ", "percent": "%s %(name)s :name ?", "end": "  "}  '


def fill(db: Database, rows: int = 3) -> None:
    """Insert so many rows into each table; the first one has null wherever that may be."""

    def insert(conn: sa.Connection) -> None:
        for table in copying.copied_tables():
            conn.execute(sa.delete(table))
            conn.execute(sa.insert(table), [_row(table, number) for number in range(rows)])

    db.transact(insert)


def contents(db: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    with db.read() as conn:
        return {
            table.name: sorted(map(tuple, conn.execute(sa.select(table))), key=repr)
            for table in copying.copied_tables()
        }


def next_ids(db: Database) -> dict[str, int]:
    """The number that each table gives to its next row; nothing is left of that row."""

    class Undo(Exception):
        pass

    numbers: dict[str, int] = {}

    def insert(conn: sa.Connection) -> None:
        for table in METADATA.sorted_tables:
            row = _row(table, 7_000)
            for key in table.foreign_keys:
                if key.column.name == "id":
                    row[key.parent.name] = numbers[key.column.table.name]
            if counts := "id" in table.c and table.c.id.autoincrement:
                del row["id"]
            inserted = conn.execute(sa.insert(table), row)
            if counts:
                numbers[table.name] = inserted.inserted_primary_key[0]
        raise Undo

    try:
        db.transact(insert)
    except Undo:
        return numbers
    raise AssertionError


def _row(table: sa.Table, number: int) -> dict[str, Any]:
    return {
        column.key: None if column.nullable and not number else _value(column, number)
        for column in table.c
    }


def _value(column: sa.Column[Any], number: int) -> Any:
    """A value of the column's type that no other row has; of a reference, that of its target."""
    for key in column.foreign_keys:
        return _value(key.column, number)
    kind = column.type
    if isinstance(kind, sa.Boolean):
        return bool(number % 2)
    if isinstance(kind, UtcTime):
        return AT + timedelta(seconds=number)
    if isinstance(kind, sa.Float):
        return number + 0.5
    if isinstance(kind, sa.BigInteger) and column.name != "id":
        return (1 << 40) + number
    if isinstance(kind, sa.Integer):
        return number + 1
    length = getattr(kind, "length", None)
    return f"{number}é{column.table.name}.{column.name}"[:length] if length else f"{TEXT}{number}"
