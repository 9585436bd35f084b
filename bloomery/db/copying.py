"""Copy all rows of one database into an empty one, of any kind, and compare them.

    report = copying.copy(source, target)

The source is read in one snapshot.  The target is written in one transaction, which commits only
after each table was read back and compared.  An interrupted copy leaves the target empty.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import schema
from bloomery.db.engine import Database
from bloomery.db.tables import METADATA, SETTINGS

BATCH: Final = 500  # rows
MOST_NAMED: Final = 10  # rows that the target refuses
_BYTES: Final = 16  # of a checksum
_REFUSALS: Final = (sa.exc.IntegrityError, sa.exc.DataError)

_NOT_COPIED: Final = frozenset({
    "commit_tokens",  # valid in one database only
    "node_counts",  # triggers count the copied nodes
})  # fmt: skip
_SEEDED: Final = {  # rows that migrations insert: replaced
    "event_numbering": sa.true(), "home": SETTINGS.c.name == "contracted_at",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReport:
    table: str
    rows: int
    checksum: str  # of the rows in any order; the same on every kind of database


class Checksum:
    """The sum of the hashes of rows: equal for equal rows in any order."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def add(self, rows: Sequence[sa.Row[Any]]) -> None:
        for row in rows:
            text = repr(tuple(row)).encode("utf-8", "surrogatepass")
            digest = hashlib.blake2b(text, digest_size=_BYTES).digest()
            self._sum += int.from_bytes(digest, "big")
        self.rows += len(rows)

    def report(self, table: sa.Table) -> TableReport:
        total = self._sum % (1 << 8 * _BYTES)
        return TableReport(table=table.name, rows=self.rows, checksum=f"{total:0{2 * _BYTES}x}")


def copied_tables() -> list[sa.Table]:
    """Return the tables, each after those that its foreign keys refer to."""
    return [table for table in METADATA.sorted_tables if table.name not in _NOT_COPIED]


def copy(
    source: Database,
    target: Database,
    *,
    on_table: Callable[[TableReport], None] = lambda report: None,
) -> list[TableReport]:
    """Copy all rows; return the counts by table, and call ``on_table`` for each finished table.

    Both schemas must be those of this release, and the target empty.  Raises SchemaOutdated, and
    CannotCopy for rows that the target refuses; nothing is left in the target then.
    """
    for db in (source, target):
        revision = schema.revision_of(db)
        if revision is not None:
            schema.require_known(revision)
        if revision != schema.HEAD:
            raise errors.SchemaOutdated(
                schema=revision or "not there yet",
                needed=schema.HEAD,
                advice="copy with the release that wrote it"
                if (revision or "") > schema.HEAD
                else f"run bloomery db upgrade for {schema.masked_url(db)}, then copy again",
            )
    with source.snapshot() as rows:
        counters = _next_ids(rows)
        with target.read() as conn:
            used = [
                table.name
                for table in copied_tables()
                if conn.execute(sa.select(table).where(~_seeded(table)).limit(1)).first()
            ]
        if used:
            raise errors.CannotCopy(
                problem=f"{schema.masked_url(target)} is not empty: there are rows in "
                f"{', '.join(used)}",
                advice="name a database that was made for the copy",
            )
        if target.url.get_backend_name() in ("mysql", "mariadb"):
            # MariaDB's counters come first, since it commits the transaction at each
            target.transact(lambda conn: _advance(conn, counters))
        return target.transact(lambda conn: _copy_tables(rows, conn, counters, on_table))


def _seeded(table: sa.Table) -> sa.ColumnElement[bool]:
    return _SEEDED.get(table.name, sa.false())


# -------------------------------------------------------------------------------- rows


def _copy_tables(
    source: sa.Connection,
    target: sa.Connection,
    counters: Mapping[str, int],
    on_table: Callable[[TableReport], None],
) -> list[TableReport]:
    reports = []
    for table in copied_tables():
        target.execute(sa.delete(table).where(_seeded(table)))
        names, checksum, refused = table.c.keys(), Checksum(), list[str]()
        for rows in _batches(source, table):
            checksum.add(rows)
            batch = [dict(zip(names, row, strict=True)) for row in rows]
            if _is_inserted(target, table, batch) is not None:  # row by row, to name the refused
                refused += [
                    _reason(target, table, row, refusal)
                    for row in batch
                    if (refusal := _is_inserted(target, table, [row]))
                ]
            if len(refused) >= MOST_NAMED:
                break
        if refused:
            raise errors.CannotCopy(
                problem=f"{target.dialect.name} does not take rows of {table.name}: "
                + "; ".join(refused[:MOST_NAMED]),
                advice="change them where they are, and copy again",
            )
        report = checksum.report(table)
        reports.append(report)
        on_table(report)
    for report, table in zip(reports, copied_tables(), strict=True):
        checksum = Checksum()
        for rows in _batches(target, table):
            checksum.add(rows)
        stored = checksum.report(table)
        if report != stored:
            raise errors.CannotCopy(
                problem=f"the copy of {report.table} differs: {report.rows} rows with checksum "
                f"{report.checksum} became {stored.rows} with {stored.checksum}",
                advice="look for what writes to the target, or changes text there, and copy again",
            )
    if target.dialect.name in ("postgresql", "sqlite"):
        _advance(target, counters)
    return reports


def _batches(conn: sa.Connection, table: sa.Table) -> Iterator[Sequence[sa.Row[Any]]]:
    streamed = sa.select(table).execution_options(yield_per=BATCH)
    with conn.execute(streamed) as result:
        yield from result.partitions()


# ----------------------------------------------------------------- what a target refuses


def _is_inserted(
    conn: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]
) -> sa.exc.DBAPIError | None:
    """Insert all rows or none; return the database's refusal."""
    conn.exec_driver_sql("SAVEPOINT batch")
    try:
        conn.execute(sa.insert(table), rows)
    except _REFUSALS as exc:
        conn.exec_driver_sql("ROLLBACK TO SAVEPOINT batch")
        return exc
    conn.exec_driver_sql("RELEASE SAVEPOINT batch")
    return None


def _reason(
    conn: sa.Connection, table: sa.Table, row: Mapping[str, Any], refusal: sa.exc.DBAPIError
) -> str:
    """Describe a refused row: its duplicate in the target, else the database's message."""
    constraints = [c for c in table.constraints if isinstance(c, sa.UniqueConstraint)]
    for constraint in (table.primary_key, *constraints):
        columns = list(constraint.columns)
        values = {column.name: row[column.name] for column in columns}
        equal = sa.select(*columns).where(*(column == row[column.name] for column in columns))
        other = conn.execute(equal).first()
        if other is not None and tuple(other) != tuple(values.values()):
            names = dict(zip(values, other, strict=True))
            return f"{_named(values)} is the same to it as {_named(names)}"
    keys = [*(column.name for column in table.primary_key), "uuid", "name"]
    ident = {name: row[name] for name in keys if row.get(name) is not None}
    return f"{_named(ident)}: {str(refusal.orig).splitlines()[0]}"


def _named(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value!r}" for name, value in values.items())


# ---------------------------------------------------------------------------- counters
#
# The number of a deleted row is never used again: cursors and markers refer to it.


def _next_ids(conn: sa.Connection) -> dict[str, int]:
    """Return the number of each table's next row.

    The database's own counter may exceed the last row's number.
    """
    if conn.dialect.name == "sqlite":
        rows = conn.exec_driver_sql("SELECT name, seq + 1 FROM sqlite_sequence")
    elif conn.dialect.name == "postgresql":
        rows = conn.exec_driver_sql(
            "SELECT replace(sequencename, '_id_seq', ''), last_value + 1 FROM pg_sequences"
            " WHERE schemaname = current_schema() AND last_value IS NOT NULL"
        )
    else:
        rows = conn.exec_driver_sql(
            "SELECT table_name, auto_increment FROM information_schema.tables"
            " WHERE table_schema = database() AND auto_increment IS NOT NULL"
        )
    own = {name: int(number) for name, number in rows}
    counters = {}
    for table in copied_tables():
        if "id" in table.c and table.c.id.autoincrement:
            last = conn.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0
            counters[table.name] = max(own.get(table.name, 1), last + 1)
    return counters


def _advance(conn: sa.Connection, counters: Mapping[str, int]) -> None:
    """Set the counters; those of PostgreSQL and SQLite do not follow inserted numbers."""
    for name, number in counters.items():
        if conn.dialect.name == "postgresql":
            sequence = sa.func.pg_get_serial_sequence(name, "id")
            if number > 1:  # PostgreSQL's counter is unused at 1
                conn.execute(sa.select(sa.func.setval(sequence, number - 1)))
        elif (
            conn.dialect.name == "sqlite"
            and METADATA.tables[name].dialect_options["sqlite"]["autoincrement"]
        ):
            conn.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            conn.exec_driver_sql("INSERT INTO sqlite_sequence VALUES (?, ?)", (name, number - 1))
        elif conn.dialect.name != "sqlite":
            conn.exec_driver_sql(f"ALTER TABLE {name} AUTO_INCREMENT = {number}")
