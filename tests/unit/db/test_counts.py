"""The meter counts what the counting suites rely on."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from bloomery.db import engine, settings
from bloomery.db.tables import SETTINGS


def test_a_read_is_one_statement_and_no_commit(db: engine.Database):
    meter = engine.Meter(db)
    with db.read() as conn:
        settings.find(conn, "name")
    assert len(meter.statements) == 1
    assert meter.statements[0].startswith("SELECT")
    assert meter.commits == 0


def test_a_transaction_counts_its_statements_and_one_commit(db: engine.Database):
    meter = engine.Meter(db)
    db.transact(lambda conn: settings.settle(conn, "name", "value"))
    assert [statement.split()[0] for statement in meter.statements] == [
        "SELECT",
        "INSERT",
        "SELECT",
    ]
    assert meter.commits == 1


def test_what_is_rolled_back_is_no_commit(db: engine.Database):
    meter = engine.Meter(db)

    def fail(conn: sa.Connection) -> None:
        conn.execute(sa.insert(SETTINGS), {"name": "name", "value": ""})
        raise LookupError

    with pytest.raises(LookupError):
        db.transact(fail)
    assert len(meter.statements) == 1
    assert meter.commits == 0


def test_many_rows_in_one_call_are_one_statement(db: engine.Database):
    meter = engine.Meter(db)
    many = [{"name": str(number), "value": ""} for number in range(10)]
    db.transact(lambda conn: conn.execute(sa.insert(SETTINGS), many))
    assert len(meter.statements) == 1


def test_a_reset_meter_counts_from_nothing(db: engine.Database):
    meter = engine.Meter(db)
    db.transact(lambda conn: settings.settle(conn, "name", "value"))
    meter.reset()
    assert (meter.statements, meter.commits) == ([], 0)
