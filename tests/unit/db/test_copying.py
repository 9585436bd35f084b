"""What a copy refuses and keeps, file to file; tests/servers has the way over servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db import copying, schema, tables
from bloomery.db.engine import Database
from tests.kit.servers import filled

MakeDatabase = Callable[[str], Database]
_SET = "UPDATE alembic_version SET version_num = '{}'"


@pytest.fixture
def make_database(tmp_path: Path) -> Iterator[MakeDatabase]:
    databases: list[Database] = []

    def make(name: str) -> Database:
        db = Database(f"sqlite:///{tmp_path}/{name}.sqlite")
        databases.append(db)
        schema.upgrade(db)
        return db

    yield make
    for db in databases:
        db.close()


@pytest.fixture
def source(make_database: MakeDatabase) -> Database:
    db = make_database("source")
    filled.fill(db)
    return db


@pytest.fixture
def target(make_database: MakeDatabase) -> Database:
    return make_database("target")


def test_every_row_comes_and_is_reported(source: Database, target: Database):
    told: list[copying.TableReport] = []
    report = copying.copy(source, target, on_table=told.append)
    assert filled.contents(target) == filled.contents(source)
    assert report == told
    assert {each.table for each in report} == {table.name for table in copying.copied_tables()}
    assert {each.rows for each in report} == {3}


def test_batches_make_no_difference(source: Database, target: Database, monkeypatch):
    monkeypatch.setattr(copying, "BATCH", 2)
    copying.copy(source, target)
    assert filled.contents(target) == filled.contents(source)


def test_a_number_is_not_given_twice_though_its_row_is_gone(source: Database, target: Database):
    source.transact(lambda conn: conn.execute(sa.delete(tables.EVENTS)))
    copying.copy(source, target)
    assert filled.next_ids(target)["events"] == 4
    assert filled.next_ids(target) == filled.next_ids(source)


def test_a_target_with_rows_is_refused(source: Database, target: Database):
    filled.fill(target, 1)
    before = filled.contents(target)
    with pytest.raises(errors.CannotCopy, match=r"target.sqlite is not empty.* nodes") as caught:
        copying.copy(source, target)
    assert "name a database that was made for the copy" in str(caught.value)
    assert filled.contents(target) == before


@pytest.mark.parametrize("which", ["source", "target"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "DELETE FROM alembic_version",
            "not there yet.*run bloomery db upgrade for .*{}.sqlite, then copy again",
        ),
        (_SET.format("9999"), "9999.*copy with the release that wrote it"),
        (_SET.format("0001"), "0001.*run bloomery db upgrade of an earlier release"),
        (_SET.format("heat"), "no release of Bloomery calls a schema heat"),
    ],
)
def test_another_schema_is_refused_with_the_command(
    source, target, which, request, change, message
):
    db = request.getfixturevalue(which)
    db.transact(lambda conn: conn.exec_driver_sql(change))
    with pytest.raises(errors.SchemaOutdated, match=message.format(which)):
        copying.copy(source, target)


def test_a_copy_that_differs_is_refused_and_leaves_nothing(source: Database, target: Database):
    target.transact(
        lambda conn: conn.exec_driver_sql(
            "CREATE TRIGGER meddle AFTER INSERT ON chassis WHEN new.id = 2"
            " BEGIN UPDATE chassis SET description = 'other' WHERE id = 2; END"
        )
    )
    before = filled.contents(target)
    with pytest.raises(errors.CannotCopy, match=r"the copy of chassis differs: 3 rows"):
        copying.copy(source, target)
    assert filled.contents(target) == before


def test_rows_that_the_target_does_not_take_are_named(source: Database, target: Database):
    target.transact(
        lambda conn: conn.exec_driver_sql(
            "CREATE UNIQUE INDEX blind ON runbooks (lower(substr(name, 3)))"
        )
    )
    before = filled.contents(target)
    with pytest.raises(errors.CannotCopy) as caught:
        copying.copy(source, target)
    assert "sqlite does not take rows of runbooks: id 2, uuid '1é" in str(caught.value)
    assert "id 3, uuid '2é" in str(caught.value)
    assert filled.contents(target) == before


def test_what_a_checksum_says_does_not_depend_on_the_order():
    one, other = copying.Checksum(), copying.Checksum()
    one.add([(1, "a"), (2, "b")])
    other.add([(2, "b")])
    other.add([(1, "a")])
    assert one.report(tables.NODES) == other.report(tables.NODES)
    other.add([(1, "a")])
    assert one.report(tables.NODES) != other.report(tables.NODES)
