"""Transactions on a database server.

The driver commits each statement by itself, and this module sends BEGIN and COMMIT.  After a lost
connection or a deadlock the transaction is repeated: nothing of it was committed.  If the answer to
COMMIT is lost, ``commit_tokens`` shows whether it was committed, so that nothing runs twice.

A process that hangs inside a transaction (SIGSTOP, swapping) keeps its rows until the server ends
the transaction, after ``[database]statement_timeout``.  API callers are asked to retry; a starting
process (``outlasting_rows``) waits for longer than that time-out, and logs the transaction.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

import sqlalchemy as sa

from bloomery import errors
from bloomery.conf.default import Database as Settings
from bloomery.db import commit_tokens, server_faults, server_pool

LOG = logging.getLogger(__name__)

T = TypeVar("T")

_WROTE: Final = "bloomery.wrote"  # of a connection: its transaction has more than SELECTs
_SNAPSHOT: Final = {
    "postgresql": ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"],
    "mysql": [
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    ],
}
_SCHEMA_TURN: Final = 0x626C6F6F6D  # PostgreSQL's advisory lock for changes of the schema
_OUTLASTS: Final = ContextVar("bloomery.outlasts_kept_rows", default=False)
_WITHOUT_LIMIT_S: Final = 600  # where the server ends no transaction
_TABLE: Final = re.compile(r"(?:UPDATE|INTO|FROM)\s+\"?(\w+)")
_OLDEST: Final = {  # the oldest other transaction on this database: program, address, seconds
    "postgresql": "SELECT application_name, client_addr || ':' || client_port,"
    " extract(epoch FROM now() - xact_start)::int FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend' AND xact_start IS NOT NULL ORDER BY xact_start LIMIT 1",
    "mysql": "SELECT concat('connection ', p.id), p.host,"
    " timestampdiff(SECOND, t.trx_started, now()) FROM information_schema.innodb_trx t"
    " JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id"
    " WHERE p.db = database() AND p.id <> connection_id() ORDER BY t.trx_started LIMIT 1",
}


class ServerEdge:
    """Reads and transactions on the connections of one pool."""

    def __init__(self, url: sa.URL, settings: Settings, idle_s: int | None = None) -> None:
        self._url = url
        self._settings = settings
        self.engine = server_pool.create(url, settings, idle_s)
        self.on_commit: list[Callable[[], None]] = []
        sa.event.listen(self.engine, "before_cursor_execute", _note_write)

    @property
    def in_use(self) -> int:
        """Return the number of connections that work now."""
        pool: Any = self.engine.pool
        return int(pool.checkedout())

    # ------------------------------------------------------------------------------ reading

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        try:
            with self._connection() as conn:
                yield conn
        except sa.exc.DBAPIError as exc:  # named errors for faults of the server; others pass
            if failure := server_faults.named(exc, self._url):
                raise failure from exc
            raise

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        with self.read() as conn:
            for statement in _SNAPSHOT[self._url.get_backend_name()]:
                _send(conn, statement)
            try:
                yield conn
            finally:
                _roll_back(conn)

    @contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        """Yield a connection of the pool.  Raises DatabaseAway, DatabaseBusy."""
        try:
            try:
                conn = self.engine.connect()
            except sa.exc.DBAPIError as exc:  # once more if a new one breaks while it is opened
                if not server_faults.is_lost(exc):
                    raise
                conn = self.engine.connect()
        except sa.exc.TimeoutError as exc:
            ours = self._settings
            raise errors.DatabaseBusy(
                reason=f"all {ours.max_pool_size + ours.max_overflow} connections of this process "
                f"were in use for {ours.pool_timeout} s; if that happens often, raise "
                "[database]max_pool_size",
            ) from exc
        except sa.exc.DBAPIError as exc:
            raise server_faults.away(exc, self._url) from exc
        with conn:
            yield conn

    # ------------------------------------------------------------------------------ writing

    def transact(self, work: Callable[[sa.Connection], T]) -> T:
        began = time.monotonic()
        while True:
            try:
                return self._transact(work)
            except errors.RowKept as exc:
                if not _OUTLASTS.get():
                    raise
                patience_s = self._settings.statement_timeout or _WITHOUT_LIMIT_S
                waited_s = time.monotonic() - began
                with self.read() as conn:
                    reason = f"{_described(conn, exc)}, for {waited_s:.0f} s now"
                if waited_s > patience_s:
                    raise errors.RowKept(reason=reason) from exc
                LOG.warning("start: waiting: %s", reason)

    def _transact(self, work: Callable[[sa.Connection], T]) -> T:
        give_up_at = time.monotonic() + self._settings.connect_timeout
        for attempt in range(1, self._settings.max_retries + 1):
            try:
                with self._connection() as conn:
                    return self._run(conn, work)
            except (sa.exc.DBAPIError, errors.DatabaseBusy) as exc:
                is_last = attempt == self._settings.max_retries or time.monotonic() > give_up_at
                if is_last or not server_faults.may_pass(exc):
                    failure = server_faults.named(exc, self._url)
                    if failure is None or failure is exc:
                        raise
                    raise failure from exc
                time.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311  jitter
        raise AssertionError("unreachable")

    def _run(self, conn: sa.Connection, work: Callable[[sa.Connection], T]) -> T:
        """Commit ``work``; without an answer, find out whether it was committed.

        Raises the server's errors, with nothing committed; CommitInDoubt.
        """
        _send(conn, "BEGIN")
        conn.info[_WROTE] = False
        try:
            result = work(conn)
        except BaseException:
            _roll_back(conn)
            raise
        token = commit_tokens.make() if conn.info[_WROTE] else None
        try:
            for statement in commit_tokens.commit_statements(token, self.engine.dialect):
                _send(conn, statement)
        except sa.exc.DBAPIError as exc:
            if not exc.connection_invalidated:
                _roll_back(conn)
                raise
            if token is not None and not self._was_committed(token):
                raise
        for callback in self.on_commit:
            callback()
        return result

    def _was_committed(self, token: str) -> bool:
        """Ask on another connection, for as long as a server may take to restart."""
        give_up_at = time.monotonic() + self._settings.connect_timeout
        while True:
            try:
                with self._connection() as conn:
                    return commit_tokens.claim(conn, token)
            except (sa.exc.DBAPIError, errors.DatabaseBusy) as exc:
                if server_faults.named(exc, self._url) is None:
                    raise
                if time.monotonic() > give_up_at:
                    name = server_faults.server_name(self._url)
                    reason = f"the database {name} went away while it was stored"
                    raise errors.CommitInDoubt(reason=reason) from exc
            time.sleep(random.uniform(0.05, 0.5))  # noqa: S311  jitter

    # ------------------------------------------------------------------------------ altering

    def alter(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work`` once while no other process changes the schema.

        On MariaDB and MySQL each change of a table is committed by itself.
        """
        engine = server_pool.create_unbounded(self._url, self._settings)
        try:
            with engine.connect() as conn, _schema_turn(conn):
                result = work(conn)
                _send(conn, "COMMIT")
                return result
        finally:
            engine.dispose()

    def close(self) -> None:
        """Close the connections; those in use are closed once they are given back."""
        pool = self.engine.pool
        self.engine.dispose()  # begins another pool, for whoever uses the database again
        sa.event.listen(pool, "checkin", lambda _connection, record: record.close())


@contextmanager
def _schema_turn(conn: sa.Connection) -> Iterator[None]:
    """Wait until no other process changes the schema, and begin a transaction.

    Raises DatabaseBusy.  The lock ends with the connection, at the latest.
    """
    if conn.dialect.name == "postgresql":
        _send(conn, "BEGIN")
        _send(conn, f"SET LOCAL lock_timeout = '{server_pool.ALTERING_TURN_S}s'")
        _send(conn, f"SELECT pg_advisory_xact_lock({_SCHEMA_TURN})")
        _send(conn, f"SET LOCAL lock_timeout = '{server_pool.ALTERING_LOCK_S}s'")
    else:
        name = sa.func.concat("bloomery.schema.", sa.func.database())
        turn = sa.select(sa.func.get_lock(name, server_pool.ALTERING_TURN_S))
        if not conn.execute(turn).scalar():
            raise errors.DatabaseBusy(reason="another process changes the schema")
        wait_s = server_pool.ALTERING_LOCK_S
        _send(conn, f"SET SESSION lock_wait_timeout = {wait_s}, autocommit = 0")
    try:
        yield
    except BaseException:
        _roll_back(conn)
        raise


def _note_write(conn: sa.Connection, _cursor: Any, statement: str, *_: Any) -> None:
    if not statement.startswith("SELECT"):
        conn.info[_WROTE] = True


def _send(conn: sa.Connection, statement: str) -> None:
    """Run a statement without parameters or rows; SQLAlchemy would add ten times its cost.

    Raises what SQLAlchemy would raise, and gives up a connection that is gone.
    """
    dialect = conn.dialect
    dbapi: Any = conn.connection.dbapi_connection
    errors_of_driver = dialect.loaded_dbapi.Error
    try:
        if hasattr(dbapi, "pgconn"):  # psycopg would prepare it after some repetitions
            with dbapi.cursor() as cursor:
                cursor.execute(statement, prepare=False)
        else:
            dbapi.query(statement)
    except errors_of_driver as exc:
        is_lost = dialect.is_disconnect(exc, dbapi, None)
        if is_lost:
            conn.invalidate(exc)
        raise sa.exc.DBAPIError.instance(
            statement, None, exc, errors_of_driver, connection_invalidated=is_lost
        ) from exc


def _roll_back(conn: sa.Connection) -> None:
    """End a failed transaction; a lost connection has ended it already."""
    if conn.invalidated:
        return
    try:
        _send(conn, "ROLLBACK")
    except sa.exc.DBAPIError as exc:
        conn.invalidate(exc)


@contextmanager
def outlasting_rows() -> Iterator[None]:
    """Let transactions of this thread wait for rows until the server frees them."""
    token = _OUTLASTS.set(True)
    try:
        yield
    finally:
        _OUTLASTS.reset(token)


def _described(conn: sa.Connection, exc: errors.RowKept) -> str:
    """Return the error, and the oldest transaction, which most likely has the row."""
    table = _TABLE.search(getattr(exc.__cause__, "statement", None) or "")
    what = f"another transaction keeps a row of {table[1] if table else 'a table'}"
    try:
        oldest = conn.exec_driver_sql(_OLDEST[conn.dialect.name]).one_or_none()
    except sa.exc.DBAPIError:  # MariaDB needs the PROCESS privilege
        return what
    if oldest is None:
        return what
    program, address, seconds = oldest
    who = f"{program or 'somebody'} at {address or 'a local socket'}"
    return f"{what}; the oldest is open for {seconds} s, of {who}"
