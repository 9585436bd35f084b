"""Migrations of servers: by several processes at once, and going on where one broke off."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db import engine, schema, server_pool
from tests.kit.servers.revisions import Scripts

FIRST = """
    op.create_table(
        "rooms", sa.Column("name", sa.String(9), primary_key=True),
        sa.Column("size", sa.Integer, index=True),
    )
    op.execute("INSERT INTO rooms VALUES ('hall', 0)")
    op.execute("UPDATE rooms SET size = size + 1")
"""
SECOND = """
    op.add_column("rooms", sa.Column("colour", sa.String(9)))
    op.execute("UPDATE rooms SET size = size + 1, colour = 'blue'")
    op.create_table("doors", sa.Column("room", sa.String(9)))
    op.create_foreign_key("fk_doors_room", "doors", "rooms", ["room"], ["name"])
    op.create_index("ix_rooms_colour", "rooms", ["colour"])
    op.drop_index("ix_rooms_size", "rooms")
    op.execute("ALTER TABLE rooms RENAME COLUMN colour TO paint")
"""


STATEMENTS = {"before": 34, "after": 32}  # of two revisions; two of them fail


class Died(BaseException):
    """The process ended at this statement."""


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, at: int, moment: str) -> Iterator[list[str]]:
    """Die before or after statement number ``at`` of a change of the schema."""
    statements: list[str] = []
    create = server_pool.create_unbounded

    def on_statement(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)
        if len(statements) == at:
            raise Died

    def create_mortal(*args: Any) -> sa.Engine:
        made = create(*args)
        sa.event.listen(made, f"{moment}_cursor_execute", on_statement)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(server_pool, "create_unbounded", create_mortal)
        yield statements


@pytest.fixture
def line(tmp_path: Path) -> schema.Line:
    scripts = Scripts(tmp_path / "scripts")
    scripts.add(FIRST)
    return scripts.add(SECOND)


@pytest.fixture(params=["some", pytest.param("all", marks=pytest.mark.long)])
def numbers(request: pytest.FixtureRequest, lots: random.Random, moment: str) -> list[int]:
    """Numbers of the statements that two revisions take."""
    every = range(1, STATEMENTS[moment] + 1)
    return lots.sample(every, 5) if request.param == "some" else list(every)


@pytest.mark.only_on("mysql")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_revisions_that_broke_off_go_on(
    empty_databases: Any, line: schema.Line, monkeypatch, moment: str, numbers: list[int]
):
    for at in numbers:
        db = next(empty_databases)
        with dying(monkeypatch, at, moment) as statements, pytest.raises(Died):
            schema.upgrade(db, line=line)
        assert len(statements) == at
        schema.upgrade(db, line=line)
        check(db)


@pytest.mark.only_on("mysql")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_as_many_statements_as_can_break_off(fresh, line: schema.Line, monkeypatch, moment: str):
    with dying(monkeypatch, 0, moment) as statements:
        schema.upgrade(fresh, line=line)
    assert len(statements) == STATEMENTS[moment]


def check(db: engine.Database) -> None:
    assert schema.revision_of(db) == "0002"
    with db.read() as conn:
        assert conn.exec_driver_sql("SELECT * FROM rooms").all() == [("hall", 2, "blue")]
        tables = sa.inspect(conn).get_table_names()
    assert sorted(tables) == ["alembic_version", "doors", "rooms"]


@pytest.mark.only_on("mysql")
def test_the_schema_goes_on_where_it_broke_off(
    fresh: engine.Database, monkeypatch, lots: random.Random
):
    with dying(monkeypatch, lots.randrange(20, 180), "after"), pytest.raises(Died):
        schema.upgrade(fresh)
    with pytest.raises(errors.SchemaOutdated):
        schema.require_head(fresh, state_dir=Path("/srv/b"))
    schema.upgrade(fresh)
    schema.require_head(fresh, state_dir=Path("/srv/b"))


@pytest.mark.only_on("mysql")
def test_a_table_of_somebody_else_is_never_taken_for_ours(
    fresh: engine.Database, line: schema.Line
):
    fresh.alter(lambda conn: conn.exec_driver_sql("CREATE TABLE doors (mine TEXT)"))
    for _ in range(2):
        with pytest.raises(errors.CannotStart, match="'doors' already exists"):
            schema.upgrade(fresh, line=line)
    fresh.alter(lambda conn: conn.exec_driver_sql("DROP TABLE doors"))
    schema.upgrade(fresh, line=line)
    check(fresh)


def test_processes_that_upgrade_at_once_take_turns(fresh: engine.Database):
    others = [engine.Database(fresh.url) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(schema.upgrade, others))
    assert [schema.revision_of(other) for other in others] == [schema.HEAD] * 3
    for other in others:
        other.close()


@pytest.mark.only_on("mysql")
def test_tables_compare_byte_by_byte(fresh: engine.Database):
    schema.upgrade(fresh)
    assert collations(fresh) == ["utf8mb4_nopad_bin"]


def collations(db: engine.Database) -> list[str]:
    """Return those of all texts in our tables."""
    columns = sa.text(
        "SELECT DISTINCT collation_name FROM information_schema.columns WHERE collation_name "
        "IS NOT NULL AND table_schema = database() AND table_name <> 'alembic_version'"
    )
    with db.read() as conn:
        return list(conn.execute(columns).scalars())
