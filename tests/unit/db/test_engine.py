from __future__ import annotations

import contextlib
import re
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.conf.default import Database as Settings
from bloomery.db import engine, schema, settings
from bloomery.db.tables import NODE_TRAITS, SETTINGS
from bloomery.state_dir import StateDir
from tests.kit.servers import disks


def put(conn: sa.Connection, name: str, value: str = "") -> None:
    conn.execute(sa.insert(SETTINGS), {"name": name, "value": value})


def count(db: engine.Database) -> int:
    """Return the number of rows; what migrations have noted is left out."""
    rows = sa.select(sa.func.count()).where(SETTINGS.c.name != "contracted_at")
    with db.read() as conn:
        return conn.execute(rows).scalar_one()


def test_32_threads_lose_no_update(db: engine.Database):
    db.transact(lambda conn: put(conn, "counter", "0"))

    def count_up(conn: sa.Connection) -> None:
        value = int(settings.find(conn, "counter") or "")
        conn.execute(sa.update(SETTINGS).values(value=str(value + 1)))

    def count_25_times(_: int) -> None:
        for _ in range(25):
            db.transact(count_up)

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(count_25_times, range(32)))
    with db.read() as conn:
        assert settings.find(conn, "counter") == "800"


def test_transact_returns_what_the_work_returns(db: engine.Database):
    assert db.transact(lambda conn: settings.settle(conn, "name", "value")) == "value"


def test_an_exception_rolls_back_and_reaches_the_caller(db: engine.Database):
    def fail(conn: sa.Connection) -> None:
        put(conn, "half")
        raise LookupError("in the middle")

    with pytest.raises(LookupError, match="in the middle"):
        db.transact(fail)
    assert count(db) == 0
    db.transact(lambda conn: put(conn, "next"))
    assert count(db) == 1


def test_a_broken_constraint_rolls_the_whole_transaction_back(db: engine.Database):
    def twice(conn: sa.Connection) -> None:
        put(conn, "one")
        put(conn, "one")

    with pytest.raises(sa.exc.IntegrityError):
        db.transact(twice)
    assert count(db) == 0


def test_an_error_that_the_work_handles_spoils_nothing(db: engine.Database):
    def recover(conn: sa.Connection) -> None:
        put(conn, "one")
        with pytest.raises(sa.exc.IntegrityError):
            put(conn, "one")
        put(conn, "two")

    db.transact(recover)
    assert count(db) == 2


def test_an_error_in_the_handling_of_an_error_rolls_back_and_keeps_its_cause(
    db: engine.Database,
):
    def fail_twice(conn: sa.Connection) -> None:
        try:
            put(conn, "one")
            put(conn, "one")
        except sa.exc.IntegrityError as exc:
            raise errors.DuplicateName(name="one") from exc

    with pytest.raises(errors.DuplicateName) as caught:
        db.transact(fail_twice)
    assert isinstance(caught.value.__cause__, sa.exc.IntegrityError)
    assert count(db) == 0


def test_who_gets_no_turn_in_time_is_told_so(path: Path):
    db = engine.Database(f"sqlite:///{path}", Settings(write_timeout=0))

    def write_while_writing(conn: sa.Connection) -> None:
        with pytest.raises(errors.DatabaseBusy, match="no turn came"):
            db.transact(lambda conn: put(conn, "inner"))
        put(conn, "outer")

    db.transact(write_while_writing)
    assert count(db) == 1
    db.close()


def test_a_reader_sees_the_last_commit_while_somebody_writes(db: engine.Database):
    def look_meanwhile(conn: sa.Connection) -> int:
        put(conn, "unseen")
        return count(db)

    assert db.transact(look_meanwhile) == 0
    assert count(db) == 1


def test_reads_one_after_the_other_share_a_connection_until_an_error(db: engine.Database):
    opened: list[object] = []
    sa.event.listen(db._edge.engine, "checkout", lambda *_: opened.append(None))
    for _ in range(3):
        count(db)
    assert len(opened) == 1
    with db.read(), db.read():
        assert len(opened) == 2
    with pytest.raises(sa.exc.OperationalError), db.read() as conn:
        conn.execute(sa.text("nonsense"))
    assert count(db) == 0
    assert len(db._edge._readers) == 1


def test_foreign_keys_are_enforced_on_every_connection(db: engine.Database):
    with pytest.raises(sa.exc.IntegrityError, match="FOREIGN KEY"):
        db.transact(lambda conn: conn.execute(sa.insert(NODE_TRAITS), ORPHAN))
    with db.read() as one, db.read() as other:
        pragma = "PRAGMA foreign_keys"
        assert one.exec_driver_sql(pragma).scalar() == other.exec_driver_sql(pragma).scalar() == 1


ORPHAN = {"node_uuid": "nobody", "trait": "CUSTOM_X"}


def test_altering_lets_rows_dangle_meanwhile(db: engine.Database):
    def dangle_and_mend(conn: sa.Connection) -> None:
        conn.execute(sa.insert(NODE_TRAITS), ORPHAN)
        conn.execute(sa.delete(NODE_TRAITS))
        put(conn, "mended")

    db.alter(dangle_and_mend)
    assert count(db) == 1


def test_altering_refuses_to_commit_rows_that_dangle(db: engine.Database):
    def dangle(conn: sa.Connection) -> None:
        put(conn, "never")
        conn.execute(sa.insert(NODE_TRAITS), ORPHAN)

    with pytest.raises(errors.Failure, match="node_traits"):
        db.alter(dangle)
    assert count(db) == 0


def test_a_lock_of_another_program_is_named_and_harmless(db: engine.Database, path: Path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(errors.DatabaseBusy, match="another program holds a lock"):
        db.transact(lambda conn: put(conn, "one"))
    other.execute("ROLLBACK")
    other.close()
    db.transact(lambda conn: put(conn, "one"))
    assert count(db) == 1


def test_a_database_that_another_program_locks_whole_is_named_at_start(tmp_path: Path):
    path = tmp_path / "rollback-journal.sqlite"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN EXCLUSIVE")
    db = engine.Database(f"sqlite:///{path}", foreign_writer_timeout_s=0.05)
    with pytest.raises(errors.DatabaseBusy, match="another program holds a lock"):
        schema.revision_of(db)
    other.close()


def test_a_full_disk_is_named_and_damages_nothing(
    db: engine.Database, caplog: pytest.LogCaptureFixture
):
    db.transact(lambda conn: put(conn, "before"))
    assert db.refusal is None
    disks.fill(db)
    for _ in range(2):
        with pytest.raises(errors.DatabaseBusy, match="the disk is full"):
            db.transact(lambda conn: put(conn, "large", "x" * 10_000_000))
    disks.make_room(db)
    db.transact(lambda conn: conn.execute(sa.delete(NODE_TRAITS)))
    assert "the disk is full" in str(db.refusal), "a commit of no rows has proved nothing"
    db.transact(lambda conn: put(conn, "after"))
    assert db.refusal is None
    refused, ended = (record.getMessage() for record in caplog.records)
    assert re.match("database: nothing can be written since .* UTC: the disk is full", refused)
    assert ended.startswith("database: writes are committed again; before, nothing could be")
    assert count(db) == 2
    with db.read() as conn:
        assert conn.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


def test_a_file_that_cannot_be_written_is_named(db: engine.Database):
    db.transact(lambda conn: conn.exec_driver_sql("PRAGMA query_only=ON").close())
    with pytest.raises(errors.DatabaseBusy, match="not writable"):
        db.transact(lambda conn: put(conn, "one"))


def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path):
    path = tmp_path / "letter.sqlite"
    path.write_text("Dear Sir or Madam, " * 100)
    db = engine.Database(f"sqlite:///{path}")
    with pytest.raises(errors.CannotStart, match=f"{path}: it is not an SQLite database"):
        schema.revision_of(db)
    assert path.read_text().startswith("Dear Sir")


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path):
    db = engine.Database(f"sqlite:///{tmp_path}/missing/file.sqlite")
    with pytest.raises(errors.CannotStart, match="cannot be opened"):
        schema.revision_of(db)


def test_a_file_with_a_damaged_schema_is_named(tmp_path: Path):
    path = tmp_path / "damaged.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as damaged:
        damaged.execute("CREATE TABLE t (x)")
        damaged.execute("PRAGMA writable_schema=ON")
        damaged.execute("UPDATE sqlite_master SET sql = 'nonsense'")
        damaged.commit()
    with pytest.raises(errors.CannotStart, match=f"cannot use {path}: it is damaged"):
        schema.revision_of(engine.Database(f"sqlite:///{path}"))


def test_a_backup_is_whole_private_and_made_while_somebody_writes(
    db: engine.Database, tmp_path: Path
):
    target = tmp_path / "copy.sqlite"
    db.transact(lambda conn: put(conn, "committed"))

    def back_up_meanwhile(conn: sa.Connection) -> None:
        put(conn, "not yet committed")
        db.backup(target)

    db.transact(back_up_meanwhile)
    copy = engine.Database(f"sqlite:///{target}")
    assert schema.revision_of(copy) == schema.HEAD
    assert count(copy) == 1
    assert target.stat().st_mode & 0o777 == 0o600
    copy.close()


def test_a_backup_replaces_nothing(db: engine.Database, tmp_path: Path):
    target = tmp_path / "precious"
    target.write_text("mine")
    with pytest.raises(errors.CannotStart, match="precious: File exists"):
        db.backup(target)
    assert target.read_text() == "mine"


def test_a_backup_that_fails_leaves_no_half_file(db: engine.Database, tmp_path: Path, path: Path):
    db.close()
    path.write_text("not a database any more " * 100)
    with pytest.raises(errors.CannotStart):
        db.backup(tmp_path / "copy.sqlite")
    assert not (tmp_path / "copy.sqlite").exists()


def test_a_closed_database_can_be_used_again(db: engine.Database):
    db.transact(lambda conn: put(conn, "one"))
    db.close()
    db.transact(lambda conn: put(conn, "two"))
    assert count(db) == 2


def test_threads_that_fail_leave_the_gate_open_for_the_others(db: engine.Database):
    def write(number: int) -> None:
        def work(conn: sa.Connection) -> None:
            put(conn, str(number))
            if number % 2:
                raise threading.ThreadError

        db.transact(work)

    with ThreadPoolExecutor(16) as pool:
        failed = [pool.submit(write, number).exception() is not None for number in range(64)]
    assert sum(failed) == 32
    assert count(db) == 32


def test_the_log_of_writes_shrinks_when_a_long_reader_has_ended(tmp_path: Path):
    """While somebody reads, nothing of the log can be let go of; afterwards it need not stay."""
    db = engine.Database(f"sqlite:///{tmp_path / 'long.sqlite'}")
    log = tmp_path / "long.sqlite-wal"
    write = sa.text("INSERT INTO filler VALUES (zeroblob(1000000))")
    db.transact(lambda conn: conn.execute(sa.text("CREATE TABLE filler (value BLOB)")))
    with db.read() as reader:
        reader.exec_driver_sql("BEGIN")
        reader.exec_driver_sql("SELECT count(*) FROM filler").all()
        for _ in range(3 * engine.MOST_LOG_BYTES // 1_000_000):
            db.transact(lambda conn: conn.execute(write))
        assert log.stat().st_size > 2 * engine.MOST_LOG_BYTES
        reader.exec_driver_sql("ROLLBACK")
    for _ in range(2):  # the next commit empties the log, the one after that begins it anew
        db.transact(lambda conn: conn.execute(sa.text("UPDATE filler SET value = NULL")))
        db.transact(lambda conn: conn.execute(sa.text("INSERT INTO filler VALUES (NULL)")))
    assert log.stat().st_size <= engine.MOST_LOG_BYTES
    db.close()


@pytest.mark.parametrize(
    ("url", "missing", "problem"),
    [
        ("postgresql+psycopg://ann:s3cret@host/db", "psycopg", "psycopg is not installed"),
        ("postgresql://ann:s3cret@host/db", "psycopg", "psycopg is not installed"),
        ("mysql://ann:s3cret@host/db", "pymysql", "pymysql is not installed"),
        ("mariadb://ann:s3cret@host/db", "pymysql", "pymysql is not installed"),
        ("flubber", None, "not a URL"),
        ("postgresql+psycopg://ann:s3cret@host:port/db", None, "not a URL"),
        ("flubber://ann:s3cret@host/db", None, "knows no flubber"),
    ],
)
def test_unusable_url_is_told_in_one_sentence(monkeypatch, tmp_path, url, missing, problem):
    if missing:
        monkeypatch.setitem(sys.modules, missing, None)
    settings = Settings(connection=url)
    with pytest.raises(errors.CannotStart, match=problem) as refused, StateDir(tmp_path) as home:
        home.open_database(settings)
    told = str(refused.value)
    assert "[database]connection" in told
    assert "postgresql://USER:PASSWORD@HOST/NAME (install bloomery[postgresql])" in told
    assert "s3cret" not in told
    assert "\n" not in told


@pytest.mark.parametrize("suffix", ["", "-wal"])
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_lost_file_is_neither_read_nor_written(tmp_path: Path, suffix: str, how: str):
    """SQLite would go on with the files that it has open, and lose what it writes."""
    with StateDir(tmp_path) as home:
        db = home.open_database(Settings())
        schema.prepare(db)
        db.transact(lambda conn: put(conn, "first"))
        path = tmp_path / f"bloomery.sqlite{suffix}"
        content = path.read_bytes()
        path.unlink()
        if how == "replaced":
            path.with_suffix(".new").write_bytes(content)
            path.with_suffix(".new").replace(path)
        for use in (lambda: db.transact(lambda conn: put(conn, "second")), lambda: count(db)):
            with pytest.raises(errors.DatabaseBusy, match=f"{path} was removed or replaced"):
                use()
        assert "was removed" in str(db.refusal)
        db.close()
