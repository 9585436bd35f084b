"""``bloomery db copy`` over a server: all kinds of values come back as they went."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db import copying, schema, tables
from bloomery.db.engine import Database
from tests.kit.servers import filled
from tests.kit.waiting import wait_for

PROGRAM = "from bloomery.cli.main import main; main()"


@pytest.fixture
def make_file(tmp_path: Path):
    def make(name: str) -> Database:
        file = Database(f"sqlite:///{tmp_path}/{name}.sqlite")
        schema.upgrade(file)
        return file

    return make


@contextlib.contextmanager
def _nobody_writes(db: Database, table: str) -> Iterator[None]:
    """Let everybody read the table, and whoever writes to it wait."""
    admin = sa.create_engine(db.url)
    with admin.connect() as conn:
        conn.exec_driver_sql(f"LOCK TABLE {table} IN SHARE MODE")
        yield
    admin.dispose()


def _somebody_waits(db: Database) -> bool:
    with db.read() as conn:
        return bool(
            conn.exec_driver_sql(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ).scalar()
        )


def test_to_a_server_and_back_nothing_changes(make_file, db: Database):
    source, back = make_file("source"), make_file("back")
    filled.fill(source, 40)
    source.transact(lambda conn: conn.execute(sa.delete(tables.EVENTS)))
    there = copying.copy(source, db)
    assert filled.contents(db) == filled.contents(source)
    assert copying.copy(db, back) == there
    assert filled.contents(back) == filled.contents(source)
    assert filled.next_ids(db)["events"] == 41
    assert filled.next_ids(back)["events"] >= 41


def test_a_service_of_the_server_cannot_disturb_the_snapshot(make_file, db: Database):
    """What is written to the source while it is read is not in the copy, in no table."""
    target = make_file("target")
    filled.fill(db, 3)
    before = filled.contents(db)

    def meddle(_report: copying.TableReport) -> None:
        db.transact(lambda conn: conn.execute(sa.delete(tables.EVENTS)))

    copying.copy(db, target, on_table=meddle)
    assert filled.contents(target) == before


def test_what_is_too_long_for_the_server_is_named(make_file, db: Database):
    source, before = make_file("source"), filled.contents(db)
    filled.fill(source, 2)
    source.transact(
        lambda conn: conn.execute(sa.update(tables.CHASSIS).values(description="x" * 256))
    )
    with pytest.raises(errors.CannotCopy, match=r"rows of chassis: id 1, uuid .*; id 2"):
        copying.copy(source, db)
    assert filled.contents(db) == before


@pytest.mark.only_on("postgresql")
def test_a_copy_that_is_killed_is_begun_anew(make_file, db: Database, tmp_path: Path):
    source, before = make_file("source"), filled.contents(db)
    filled.fill(source, 40)
    expected = filled.contents(source)
    source.close()
    env = os.environ | {
        "BLOOMERY_COPY_FROM": f"sqlite:///{tmp_path}/source.sqlite",
        "BLOOMERY_COPY_TO": db.url.render_as_string(hide_password=False),
    }
    command = [sys.executable, "-c", PROGRAM, "db", "copy"]
    with _nobody_writes(db, "stack_events"):
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
        wait_for(lambda: _somebody_waits(db), "the copy to wait for the table", timeout_s=60)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert filled.contents(db) == before
    printed = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "equal in both" in printed
    assert filled.contents(db) == expected
