"""Sealed values in rows, and sealing them anew with another key.

    while sealed_values.reseal(db, sealer, "3f2a90c1"):   # a pass over all tables; 0: none was left
        ...

Any text may have a sealed value in it: in an object, as a whole, or as text inside JSON.  A pass
therefore looks at every text column, so that a new column needs no entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from bloomery.db.engine import Database
from bloomery.db.tables import METADATA, NODES
from bloomery.secrets import Sealer

BATCH: Final = 100  # rows of a transaction

COLUMNS: Final[Mapping[sa.Table, Sequence[sa.Column[Any]]]] = {
    table: texts
    for table in METADATA.sorted_tables
    if (texts := [column for column in table.c if isinstance(column.type, sa.Text)])
}


def reseal(
    db: Database,
    sealer: Sealer,
    former: str,
    *,
    on_batch: Callable[[sa.Table, int], None] = lambda table, rows: None,
    batch: int = BATCH,
) -> int:
    """Seal the values of the key ``former`` anew; return the number of rows that had such values.

    A row that is written meanwhile is left to the next pass.  ``on_batch`` is called after each
    commit.  Raises KeyMissing.
    """
    total = 0
    for table, texts in COLUMNS.items():
        for rows in _batches(db, table, texts, former, batch):
            changes = []  # of each row: the former and the new text of each column that changes
            for row in rows:
                values = {text.name: row._mapping[text] for text in texts}  # noqa: SLF001
                pairs = {n: (old, sealer.reseal(old, former)) for n, old in values.items() if old}
                if change := {n: pair for n, pair in pairs.items() if pair[0] != pair[1]}:
                    changes.append((row, change))
            if changes:
                db.transact(lambda conn, t=table, c=changes: _write(conn, t, c))  # type: ignore[misc]
                total += len(changes)
                on_batch(table, len(changes))
    return total


def _batches(
    db: Database, table: sa.Table, texts: Sequence[sa.Column[Any]], former: str, batch: int
) -> Iterator[Sequence[sa.Row[Any]]]:
    """Yield the rows that name the key, in the order of the primary key."""
    key = list(table.primary_key)
    query = (
        sa.select(*key, *texts)
        .where(sa.or_(*(text.contains(former, autoescape=True) for text in texts)))
        .order_by(*key)
        .limit(batch)
    )
    page = query
    while True:
        with db.read() as conn:
            rows = conn.execute(page).all()
        if not rows:
            return
        yield rows
        page = query.where(sa.tuple_(*key) > sa.tuple_(*_key_of(table, rows[-1])))


def _key_of(table: sa.Table, row: sa.Row[Any]) -> list[Any]:
    return [row._mapping[column] for column in table.primary_key]  # noqa: SLF001


def _write(
    conn: sa.Connection,
    table: sa.Table,
    changes: Sequence[tuple[sa.Row[Any], Mapping[str, tuple[str, str]]]],
) -> None:
    """Write new texts where the former ones still are: a writer meanwhile takes precedence."""
    for row, change in changes:
        key = zip(table.primary_key, _key_of(table, row), strict=True)
        same = [table.c[name] == old for name, (old, _) in change.items()]
        statement = sa.update(table).where(*(column == value for column, value in key), *same)
        conn.execute(statement.values({name: new for name, (_, new) in change.items()}))


def flows(conn: sa.Connection) -> set[tuple[str, int]]:
    """Return the UUID and lock generation of each locked node: a flow may write what it has read.

    Stacks need no such care: engines read values unsealed, and seal what they write.
    """
    query = sa.select(NODES.c.uuid, NODES.c.lock_generation)
    return {
        (row.uuid, row.lock_generation)
        for row in conn.execute(query.where(NODES.c.reservation.is_not(None)))
    }
