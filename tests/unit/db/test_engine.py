from __future__ import annotations

import contextlib
import contextvars
import re
import sqlite3
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.conf.default import Database as Settings
from bloomery.db import engine, schema, settings
from bloomery.db.tables import NODE_TRAITS, SETTINGS
from bloomery.state_dir import StateDir
from tests.kit.servers import disks
from tests.kit.waiting import wait_for

Work = Callable[[sa.Connection], Any]


class Died(BaseException):
    """No Exception, such as KeyboardInterrupt."""


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


# ------------------------------------------------- transactions that share a commit

SEEN: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="")


def put_together(db: engine.Database, *works: Work, first: Work | None = None) -> list[Future[Any]]:
    """Run ``works`` in transactions that have waited, in this order, while ``first`` ran."""
    queue = db._edge._gate
    futures: list[Future[Any]] = []

    def wait_for_all(conn: sa.Connection) -> None:
        put(conn, "first")
        for number, work in enumerate(works[len(futures) :], 1):  # none, if this runs again
            futures.append(pool.submit(db.transact, work))
            wait_for(lambda number=number: queue.waiting == number, "a transaction to wait")
        if first is not None:
            first(conn)

    with ThreadPoolExecutor(len(works) + 1) as pool:
        leader = pool.submit(db.transact, wait_for_all)
        leader.exception()  # a pool that shuts down takes no more
    return [leader, *futures]


def putting(name: str, value: str = "", then: BaseException | None = None) -> Work:
    def work(conn: sa.Connection) -> str:
        put(conn, name, value)
        if then is not None:
            raise then
        return name

    return work


def names(db: engine.Database) -> set[str]:
    with db.read() as conn:
        every = set(conn.execute(sa.select(SETTINGS.c.name)).scalars())
    return every - {"contracted_at"}


def test_transactions_that_wait_share_one_commit(db: engine.Database):
    meter = engine.Meter(db)
    first, *others = put_together(db, *(putting(str(number)) for number in range(16)))
    assert first.result() is None
    assert [other.result() for other in others] == [str(number) for number in range(16)]
    assert meter.commits == 1
    assert len(names(db)) == 17


def test_a_commit_is_for_so_many_transactions_at_most(db: engine.Database, monkeypatch):
    monkeypatch.setattr(engine, "_MOST_TOGETHER", 4)
    meter = engine.Meter(db)
    put_together(db, *(putting(str(number)) for number in range(9)))
    assert meter.commits == 3
    assert len(names(db)) == 10


FAILURES: dict[str, Work] = {
    "an error of the work": putting("b", then=LookupError("b")),
    "an error that is none of Exception": putting("b", then=Died("b")),
    "a broken constraint": putting("first"),
    "a broken constraint after a write": lambda conn: (put(conn, "b"), put(conn, "first")),
    "nonsense": lambda conn: (put(conn, "b"), conn.exec_driver_sql("nonsense")),
    "a savepoint of its own": lambda conn: (
        put(conn, "b"), conn.exec_driver_sql("SAVEPOINT own"), put(conn, "first")
    ),
}  # fmt: skip


@pytest.mark.parametrize("work", FAILURES.values(), ids=FAILURES)
def test_a_transaction_that_fails_fails_alone(db: engine.Database, work: Work):
    meter = engine.Meter(db)
    first, a, b, c = put_together(db, putting("a"), work, putting("c"))
    assert b.exception() is not None
    assert [other.result() for other in (first, a, c)] == [None, "a", "c"]
    assert names(db) == {"first", "a", "c"}
    assert meter.commits == 1


def test_the_first_transaction_of_several_fails_alone(db: engine.Database):
    first, a, b = put_together(
        db, putting("a"), putting("b"), first=putting("x", then=LookupError("x"))
    )
    assert isinstance(first.exception(), LookupError)
    assert [a.result(), b.result()] == ["a", "b"]
    assert names(db) == {"a", "b"}


def test_a_full_disk_fails_the_transactions_that_it_has_no_room_for(db: engine.Database):
    disks.fill(db)
    large = "x" * 10_000_000
    first, a, b, c = put_together(db, putting("a"), putting("b", large), putting("c", large))
    for future in (b, c):
        with pytest.raises(errors.DatabaseBusy, match="the disk is full"):
            future.result()
    disks.make_room(db)
    stored = {name for name, future in zip(("first", "a"), (first, a), strict=True)
              if future.exception() is None}  # fmt: skip
    assert names(db) == stored
    db.transact(putting("after"))
    assert db.refusal is None


def test_a_commit_that_fails_is_tried_for_each_transaction_alone(db: engine.Database, monkeypatch):
    commits = []
    execute = engine._execute_bare

    def fail_first_commit(conn: sa.Connection, statement: str) -> None:
        if statement == "COMMIT":
            commits.append(statement)
            if len(commits) == 1:
                failure = sqlite3.OperationalError("disk I/O error")
                raise sa.exc.DBAPIError.instance(statement, None, failure, sqlite3.Error)
        execute(conn, statement)

    monkeypatch.setattr(engine, "_execute_bare", fail_first_commit)
    first, a, b = put_together(db, putting("a"), putting("b", then=LookupError("b")))
    assert [first.result(), a.result()] == [None, "a"]
    assert isinstance(b.exception(), LookupError)
    assert len(commits) == 3
    assert names(db) == {"first", "a"}


def test_a_transaction_sees_those_that_came_before_it_and_the_context_of_its_thread(
    db: engine.Database,
):
    def look(conn: sa.Connection) -> tuple[str, str | None]:
        return SEEN.get(), settings.find(conn, "a")

    def transact() -> tuple[str, str | None]:
        SEEN.set("mine")
        return db.transact(look)

    looked: list[Future[Any]] = []
    with ThreadPoolExecutor(1) as pool:

        def join(_conn: sa.Connection) -> None:
            looked.append(pool.submit(contextvars.copy_context().run, transact))
            wait_for(lambda: db._edge._gate.waiting == 2, "the other transaction to wait")

        put_together(db, putting("a", "before"), first=join)
    assert looked[0].result() == ("mine", "before")
    assert SEEN.get() == ""


def test_a_change_of_the_schema_joins_no_transaction(db: engine.Database):
    meter = engine.Meter(db)
    with ThreadPoolExecutor(1) as pool:
        altered: list[Future[Any]] = []

        def alter(_conn: sa.Connection) -> None:
            altered.append(pool.submit(db.alter, putting("altered")))
            wait_for(lambda: db._edge._gate.waiting == 2, "the change to wait")

        put_together(db, putting("a"), first=alter)
    assert altered[0].result() == "altered"
    assert meter.commits == 2
    assert names(db) == {"first", "a", "altered"}


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
