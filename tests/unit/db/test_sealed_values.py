from __future__ import annotations

import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet
from sqlalchemy.dialects import sqlite

from bloomery import errors
from bloomery.db import nodes, rows, sealed_values
from bloomery.db.engine import Database
from bloomery.db.sealed_values import COLUMNS
from bloomery.db.tables import METADATA, NODES
from bloomery.secrets import Sealer
from tests.kit.servers import filled

OLD, NEW = Fernet.generate_key(), Fernet.generate_key()
OLD_SEALER, BOTH = Sealer(OLD), Sealer(NEW, OLD)


@pytest.fixture
def sealed(db: Database) -> Database:
    """Rows in every table, with a sealed value in each text column."""
    filled.fill(db)
    text = OLD_SEALER.seal_text("hunter2")

    def seal(conn: sa.Connection) -> None:
        for table, texts in COLUMNS.items():
            conn.execute(sa.update(table).values(dict.fromkeys(texts, text)))

    db.transact(seal)
    return db


def texts(db: Database) -> list[str]:
    with db.read() as conn:
        return [
            text
            for table, columns in COLUMNS.items()
            for row in conn.execute(sa.select(*columns).select_from(table))
            for text in row
        ]


def test_no_sealed_column_is_missing() -> None:
    """A sealed value is text without a limit; every such column of every table is passed over."""
    unlimited = {
        column
        for table in METADATA.sorted_tables
        for column in table.c
        if column.type.compile(sqlite.dialect()) == "TEXT"
    }
    assert unlimited == {column for columns in COLUMNS.values() for column in columns}


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_every_column_of_every_table_is_sealed_anew(sealed: Database, batch: int) -> None:
    assert sealed_values.reseal(sealed, BOTH, OLD_SEALER.key_id, batch=batch) > len(COLUMNS)
    assert {Sealer(NEW).open_text(text) for text in texts(sealed)} == {"hunter2"}
    assert sealed_values.reseal(sealed, BOTH, OLD_SEALER.key_id) == 0


def test_values_need_their_former_key(sealed: Database) -> None:
    with pytest.raises(errors.KeyMissing, match=OLD_SEALER.key_id):
        sealed_values.reseal(sealed, Sealer(NEW), OLD_SEALER.key_id)


def test_a_row_that_is_written_meanwhile_keeps_what_was_written(
    db: Database, add_node, monkeypatch
) -> None:
    first = OLD_SEALER.seal({"password": "first"})
    node = db.transact(lambda conn: add_node(conn, driver_info=first))
    later = rows.dump(OLD_SEALER.seal({"password": "later"}))
    write = sealed_values._write

    def write_late(conn: sa.Connection, *args) -> None:
        nodes.update(conn, node, {"driver_info": later})
        write(conn, *args)

    monkeypatch.setattr(sealed_values, "_write", write_late)
    sealed_values.reseal(db, BOTH, OLD_SEALER.key_id)
    monkeypatch.undo()
    with db.read() as conn:
        assert conn.execute(sa.select(NODES.c.driver_info)).scalar_one() == later
    assert sealed_values.reseal(db, BOTH, OLD_SEALER.key_id) == 1
