"""The edge of transactions on SQLite: one writer at a time, first come, first served.

BEGIN IMMEDIATE (deferred transactions lost 89 % of 3200 updates at 16 threads; immediate ones
none), behind a fair lock, because SQLite's own busy handler polls and starves.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa

from bloomery import errors
from bloomery.conf.database import Database as Settings
from bloomery.db.fair_lock import FairLock

T = TypeVar("T")

MOST_LOG_BYTES = 8 << 20  # of SQLite's -wal file, once nobody reads what is old: twice the usual
_BUSY_SIGNS = {
    "database is locked": "another program holds a lock on it",
    "database or disk is full": "the disk is full",
    "disk I/O error": "the disk failed",
    "attempt to write a readonly database": "the file is not writable",
}
_BROKEN_SIGNS = {
    "file is not a database": "it is not an SQLite database",
    "database disk image is malformed": "it is damaged",
    "unable to open database file": "it cannot be opened",
}
_PAGE_CACHE_KIB = 256  # per connection; 2 MiB cost 16 MiB in all and, measured, saved no time
_CLOSE_S = 1.0


class SqliteEdge:
    """Reads without a transaction, writes one after the other on a connection of their own."""

    def __init__(self, url: sa.URL, settings: Settings, foreign_writer_timeout_s: float) -> None:
        self._url = url
        self._settings = settings
        self._gate = FairLock()
        self._writer: sa.Connection | None = None
        self.engine = _engine(url, settings, foreign_writer_timeout_s)
        self.on_commit: list[Callable[[], None]] = []

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        with self._named_faults(), self.engine.connect() as conn:
            yield conn

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        with self.read() as conn:
            _execute_bare(conn, "BEGIN")
            try:
                yield conn
            finally:
                _roll_back(conn)

    def transact(self, work: Callable[[sa.Connection], T]) -> T:
        with self._turn(), self._named_faults():
            if self._writer is None:
                self._writer = self.engine.connect()
            return self._run(self._writer, work)

    def alter(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work`` with foreign keys off, and check them before the commit.

        SQLite would take the drop of a rebuilt table for the deletion of its rows, and of all
        that refers to them.
        """
        with self._turn(), self.read() as conn:
            conn.exec_driver_sql("PRAGMA foreign_keys=OFF")
            try:
                return self._run(conn, lambda conn: _with_keys_checked(conn, work))
            finally:
                conn.exec_driver_sql("PRAGMA foreign_keys=ON")

    def close(self) -> None:
        if self._gate.enter(_CLOSE_S):  # whoever still writes has it, and keeps the connection
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            self._gate.leave()
        self.engine.dispose()

    @contextmanager
    def _named_faults(self) -> Iterator[None]:
        """Say in one sentence what SQLite refused; other faults stay what they are."""
        try:
            yield
        except sa.exc.DatabaseError as exc:
            if failure := _named(exc, self._url):
                raise failure from exc
            raise

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._gate.enter(self._settings.write_timeout):
            raise errors.DatabaseBusy(
                reason=f"no turn came within {self._settings.write_timeout} s",
            )
        try:
            yield
        finally:
            self._gate.leave()

    def _run(self, conn: sa.Connection, work: Callable[[sa.Connection], T]) -> T:
        _execute_bare(conn, "BEGIN IMMEDIATE")
        try:
            result = work(conn)
            _execute_bare(conn, "COMMIT")
        except BaseException:
            _roll_back(conn)
            raise
        for callback in self.on_commit:
            callback()
        return result


def _engine(url: sa.URL, settings: Settings, foreign_writer_timeout_s: float) -> sa.Engine:
    engine = sa.create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        poolclass=sa.pool.QueuePool,
        pool_size=16,
        max_overflow=-1,
        pool_reset_on_return=None,
        connect_args={"check_same_thread": False, "timeout": foreign_writer_timeout_s},
    )

    def prepare(dbapi: Any, _record: Any) -> None:
        dbapi.execute("PRAGMA journal_mode=WAL")
        dbapi.execute(f"PRAGMA synchronous={settings.synchronous}")
        dbapi.execute("PRAGMA foreign_keys=ON")
        dbapi.execute(f"PRAGMA journal_size_limit={MOST_LOG_BYTES}")
        dbapi.execute(f"PRAGMA cache_size=-{_PAGE_CACHE_KIB}")

    sa.event.listen(engine, "connect", prepare)
    return engine


def _execute_bare(conn: sa.Connection, statement: str) -> None:
    """Run a statement without parameters or rows; SQLAlchemy would add ten times its cost.

    Raises what SQLAlchemy would raise.
    """
    try:
        conn.connection.dbapi_connection.execute(statement)  # type: ignore[union-attr]
    except sqlite3.Error as exc:
        raise sa.exc.DBAPIError.instance(statement, None, exc, sqlite3.Error) from exc


def _with_keys_checked(conn: sa.Connection, work: Callable[[sa.Connection], T]) -> T:
    result = work(conn)
    if broken := conn.exec_driver_sql("PRAGMA foreign_key_check").all():
        raise errors.Failure(reason=f"cannot commit: rows refer to what is not there: {broken}")
    return result


def _roll_back(conn: sa.Connection) -> None:
    if conn.connection.dbapi_connection.in_transaction:  # type: ignore[union-attr]
        _execute_bare(conn, "ROLLBACK")


def _named(exc: sa.exc.DatabaseError, url: sa.URL) -> errors.Failure | None:
    """Return the error that names a fault of SQLite's file, or None for other faults."""
    message = str(exc.orig)
    for sign, meaning in _BUSY_SIGNS.items():
        if sign in message:
            return errors.DatabaseBusy(reason=f"{meaning} ({url.database})", log=message)
    for sign, meaning in _BROKEN_SIGNS.items():
        if sign in message:
            return errors.CannotStart(
                reason=f"cannot use {url.database}: {meaning}; put back a backup of it, "
                "or choose another --state-dir",
                log=message,
            )
    return None
