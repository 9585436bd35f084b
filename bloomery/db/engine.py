"""The process's database, and its transactions.

Reads see the last commit and need no transaction.  Writes go through ``transact``.  SQLite admits
one writer at a time.  On a server, ``server_edge`` repeats work after a deadlock or a lost
connection, unless it was committed.  Only SQL belongs inside: no BMC, RPC or log call.
"""

from __future__ import annotations

import contextvars
import dataclasses
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import sqlalchemy as sa

from bloomery import errors
from bloomery.conf.default import Database as Settings
from bloomery.db.fair_lock import FairLock, Turn
from bloomery.db.server_edge import ServerEdge

LOG = logging.getLogger(__name__)

T = TypeVar("T")

_FORMS = {  # of URLs, and the extra with the driver
    "postgresql://USER:PASSWORD@HOST/NAME": "bloomery[postgresql]",
    "mysql://USER:PASSWORD@HOST/NAME": "bloomery[mysql]",
}
_DRIVERS: Final = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}

MOST_LOG_BYTES = 8 << 20  # of SQLite's -wal file after a checkpoint: twice the usual size
_BUSY: Final = {  # by SQLite's primary result code
    sqlite3.SQLITE_BUSY: "another program holds a lock on it",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_READONLY: "the file is not writable",
}
_BROKEN: Final = {
    sqlite3.SQLITE_NOTADB: "it is not an SQLite database",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
}
_PRIMARY: Final = 0xFF  # of an extended code
_PAGE_CACHE_KIB = 256  # per connection; 2 MiB cost 16 MiB in all and, measured, saved no time
_CLOSE_S = 1.0
_MOST_TOGETHER: Final = 32  # transactions of SQLite that one commit makes durable


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why SQLite's file refused the last write, and since when."""

    reason: str
    since: datetime

    def __str__(self) -> str:
        return f"nothing can be written since {self.since:%H:%M:%S} UTC: {self.reason}"


class PoolUse(NamedTuple):
    """How many connections work now, and how many may at most."""

    in_use: int
    most: int


class Database:
    """Connections and transactions; safe to use from any thread."""

    def __init__(
        self,
        url: str | sa.URL,
        settings: Settings | None = None,
        *,
        foreign_writer_timeout_s: float = 5.0,
        idle_s: int | None = None,
    ) -> None:
        """``foreign_writer_timeout_s``: the longest wait for another program's lock on SQLite.

        ``idle_s``: the longest idle transaction on a server; None: [database]statement_timeout.
        Raises CannotStart for an invalid URL, or a missing driver.
        """
        self.settings = settings or Settings()
        self.url = parse_url(url)
        self.backend = self.url.get_backend_name()
        self.is_sqlite = self.backend == "sqlite"
        try:
            self._edge: _SqliteEdge | ServerEdge = (
                _SqliteEdge(self.url, self.settings, foreign_writer_timeout_s)
                if self.is_sqlite
                else ServerEdge(self.url, self.settings, idle_s)
            )
        except sa.exc.NoSuchModuleError:
            raise _unusable(f"SQLAlchemy knows no {self.url.drivername}") from None
        except ImportError as exc:
            what = f"the driver of {self.url.drivername} is not installed ({exc})"
            raise _unusable(what) from None
        except (sa.exc.ArgumentError, TypeError) as exc:
            raise _unusable(f"{type(exc).__name__} with {self.url.drivername}") from None

    @property
    def refusal(self) -> Refusal | None:
        """Return the refusal of the last write by a full or failing disk; None after a commit.

        None on a server, too: a process that writes seldom would not notice the end of the refusal.
        """
        return self._edge.refusal if isinstance(self._edge, _SqliteEdge) else None

    @property
    def pool(self) -> PoolUse | None:
        """Return the use of the server's connections; None on SQLite."""
        if isinstance(self._edge, _SqliteEdge):
            return None
        most = self.settings.max_pool_size + self.settings.max_overflow
        return PoolUse(self._edge.in_use, most)

    def read(self) -> AbstractContextManager[sa.Connection]:
        """Open a connection for reading: each statement sees the last commit before it.

        Raises DatabaseBusy: SQLite's file is locked, or the server is away.
        """
        return self._edge.read()

    def snapshot(self) -> AbstractContextManager[sa.Connection]:
        """Open a connection for reading whose statements all see the same commit, the last one."""
        return self._edge.snapshot()

    def transact(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work`` in one transaction and commit; a deadlock repeats ``work``.

        Raises the errors of ``work``, with nothing written; DatabaseBusy after a time-out or
        without the server; CommitInDoubt when the answer to COMMIT was lost.
        """
        return self._edge.transact(work)

    def alter(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work``, which changes the schema, while no other process does so."""
        return self._edge.alter(work)

    def reserved(self, idle_s: int | None = None) -> Database:
        """Return this database with one connection of its own, such as for heartbeats.

        An exhausted pool does not delay that connection.  SQLite has one writer: it returns itself.
        The caller closes it.  ``idle_s``: as in ``__init__``.
        """
        if self.is_sqlite:
            return self
        single = dataclasses.replace(self.settings, max_pool_size=1, max_overflow=0)
        return Database(self.url, single, idle_s=idle_s)

    def checkpoint(self) -> None:
        """Move the commits of SQLite's log into its file; neither readers nor writers wait."""
        if isinstance(self._edge, _SqliteEdge):
            self._edge.checkpoint()

    def close(self) -> None:
        """Close every connection; the database may be used again afterwards."""
        self._edge.close()

    def backup(self, target: Path) -> None:
        """Copy the SQLite database to ``target`` while it is in use.  Raises CannotStart."""
        if not self.is_sqlite:
            raise errors.CannotStart(reason="cannot back up: use the tools of the database server")
        try:
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as exc:
            raise errors.CannotStart(
                reason=f"cannot back up to {target}: {exc.strerror}; choose another file",
            ) from exc
        try:
            with self.read() as conn:
                conn.exec_driver_sql("VACUUM INTO ?", (str(target),))
            with target.open("rb") as file:
                os.fsync(file.fileno())
        except BaseException:
            target.unlink()
            raise


def parse_url(text: str | sa.URL) -> sa.URL:
    """Return the URL, with our driver where it names none.

    MariaDB's URLs use ``mysql``, SQLAlchemy's name for the options of its tables. Raises
    CannotStart that does not repeat the URL: it may hold a password.
    """
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        raise _unusable("it is not a URL") from None
    backend, _, driver = url.drivername.partition("+")
    backend = {"mariadb": "mysql", "postgres": "postgresql"}.get(backend, backend)
    if not driver:
        return url.set(drivername=_DRIVERS.get(backend, backend))
    return url.set(drivername=f"{backend}+{driver}")


def _unusable(problem: str) -> errors.CannotStart:
    forms = " or ".join(f"{form} (install {extra})" for form, extra in _FORMS.items())
    return errors.CannotStart(
        reason=f"cannot use [database]connection: {problem}; write {forms}, "
        "or leave it out for SQLite",
    )


class _Transaction(Turn):
    """Work that its thread wants done in a transaction, and what came of it."""

    is_errand = True

    def __init__(self, work: Callable[[sa.Connection], Any]) -> None:
        super().__init__()
        self._work = work
        self._context = contextvars.copy_context()
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self, conn: sa.Connection) -> None:
        """Run the work as its thread would; it may run in the thread of another transaction."""
        self._error = None
        self._result = self._context.run(self._work, conn)

    def fail(self, error: BaseException) -> None:
        self._error = error

    def result(self) -> Any:
        """Return what the work has returned, or raise its error."""
        try:
            if self._error is not None:
                raise self._error
            return self._result
        finally:
            self._error = None  # which refers to this frame


class _SqliteEdge:
    """Read without a transaction; serialize writes on one connection.

    BEGIN IMMEDIATE (deferred transactions lost 89 % of 3200 updates at 16 threads; immediate ones
    none), behind a fair lock, because SQLite's own busy handler polls and starves.

    Transactions that wait while another one runs join it, each in a savepoint: one commit, and one
    sync of the disk, is for all of them.
    """

    def __init__(self, url: sa.URL, settings: Settings, foreign_writer_timeout_s: float) -> None:
        self._naming_faults = _NamingFaults(url)
        self._settings = settings
        self._gate = FairLock()
        self._writer: sa.Connection | None = None
        self._readers: list[sa.Connection] = []  # idle connections
        self._files = _OpenFiles(url.database)
        self.engine = _engine(url, settings, foreign_writer_timeout_s)
        self.on_commit: list[Callable[[], None]] = []
        self.refusal: Refusal | None = None

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Yield a pooled connection: opening and closing one costs as much as reading a row.

        A connection is closed after an error.
        """
        with self._naming_faults:
            self._files.require()
            try:
                conn = self._readers.pop()
            except IndexError:
                conn = self.engine.connect()
            try:
                yield conn
            except BaseException:
                conn.close()
                raise
        self._readers.append(conn)

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        with self.read() as conn:
            _execute_bare(conn, "BEGIN")
            try:
                yield conn
            finally:
                _roll_back(conn)

    def transact(self, work: Callable[[sa.Connection], T]) -> T:
        transaction = _Transaction(work)
        self._enter(transaction)
        if not transaction.is_done:
            try:
                self._run_together(transaction)
            finally:
                self._gate.leave()
        result: T = transaction.result()
        return result

    def _run_together(self, first: _Transaction) -> None:
        """Run ``first`` and the transactions that wait by then, and commit them together.

        A transaction that fails is rolled back alone.  If the disk fails, or the commit, each of
        them is run again by itself.
        """
        group = [first]

        def run_group(conn: sa.Connection) -> None:
            first.run(conn)
            while len(group) < _MOST_TOGETHER and (joined := self._gate.take_errand()):
                assert isinstance(joined, _Transaction)
                group.append(joined)
                self._run_in_savepoint(conn, joined)

        try:
            self._write(run_group)
        except BaseException as exc:  # noqa: BLE001  its thread raises it
            first.fail(exc)
            for transaction in group if len(group) > 1 else ():
                try:
                    self._write(transaction.run)
                except BaseException as failure:  # noqa: BLE001  its thread raises it
                    transaction.fail(failure)
        finally:
            for transaction in group[1:]:
                transaction.finish()

    def _run_in_savepoint(self, conn: sa.Connection, transaction: _Transaction) -> None:
        """Run a transaction after others that are not committed yet; its failure is its own."""
        _execute_bare(conn, "SAVEPOINT joined")
        try:
            with self._naming_faults:
                transaction.run(conn)
        except errors.DatabaseBusy:
            raise  # the disk fails, for all of them
        except BaseException as exc:
            if not _in_transaction(conn):  # SQLite has rolled everything back
                raise
            transaction.fail(exc)
            _execute_bare(conn, "ROLLBACK TO joined")
        _execute_bare(conn, "RELEASE joined")

    def _write(self, work: Callable[[sa.Connection], None]) -> None:
        with self._noting_refusals(), self._naming_faults:
            self._files.require()
            if self._writer is None:
                self._writer = self.engine.connect()
            self._run(self._writer, work)
            self._files.note()

    def checkpoint(self) -> None:
        with self.read() as conn:
            conn.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)").all()

    @contextmanager
    def _noting_refusals(self) -> Iterator[None]:
        """Store a refusal of the disk, and log its beginning and end once."""
        rows_before = self._count_changes()
        try:
            yield
        except errors.DatabaseBusy as exc:
            if self.refusal is None and exc.facts.get("disk_file"):
                self.refusal = Refusal(exc.facts["reason"], datetime.now(UTC))
                LOG.error("database: %s", self.refusal)  # noqa: TRY400  no fault of ours
            raise
        if self.refusal is not None and self._count_changes() != rows_before:
            LOG.warning(
                "database: writes are committed again; before, nothing could be since %s UTC: %s",
                f"{self.refusal.since:%H:%M:%S}",
                self.refusal.reason,
            )
            self.refusal = None

    def _count_changes(self) -> int:
        """Count the changed rows of the writer: an empty commit proves nothing of the disk."""
        if self._writer is None:
            return 0
        count: int = self._writer.connection.dbapi_connection.total_changes  # type: ignore[union-attr]
        return count

    def alter(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work`` with foreign keys off, and check them before the commit.

        SQLite would treat the drop of a rebuilt table as the deletion of its rows, and cascade it.
        """

        def work_and_check(conn: sa.Connection) -> T:
            result = work(conn)
            if broken := conn.exec_driver_sql("PRAGMA foreign_key_check").all():
                raise errors.Failure(
                    reason=f"cannot commit: rows refer to what is not there: {broken}"
                )
            return result

        with self._turn(), self.read() as conn:
            conn.exec_driver_sql("PRAGMA foreign_keys=OFF")
            try:
                result = self._run(conn, work_and_check)
                conn.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)").all()
            finally:
                conn.exec_driver_sql("PRAGMA foreign_keys=ON")
            return result

    def close(self) -> None:
        if self._gate.enter(_CLOSE_S):  # a running writer keeps the connection
            if self._writer is not None:
                self._files.forget()
                self._writer.close()
                self._writer = None
            self._gate.leave()
        while self._readers:
            self._readers.pop().close()
        self.engine.dispose()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        self._enter()
        try:
            yield
        finally:
            self._gate.leave()

    def _enter(self, turn: Turn | None = None) -> None:
        if not self._gate.enter(self._settings.write_timeout, turn):
            raise errors.DatabaseBusy(
                reason=f"no turn came within {self._settings.write_timeout} s",
            )

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


class _OpenFiles:
    """The database file and its log, as long as the writer has them open.

    SQLite goes on with files that were removed or replaced, and whatever it writes is lost.
    """

    def __init__(self, database: str | None) -> None:
        self._paths: tuple[str, ...] = ()
        if database and not database.startswith((":memory:", "file:")):
            self._paths = (database, f"{database}-wal")
        self._identities: tuple[tuple[str, tuple[int, int]], ...] = ()

    def note(self) -> None:
        """Note the files, unless they are noted; the log exists from the first commit on."""
        self._identities = self._identities or tuple(
            (path, self._identity(path)) for path in self._paths
        )

    def forget(self) -> None:
        self._identities = ()

    def require(self) -> None:
        """Raise DatabaseBusy if a file is gone, or another one has its name."""
        for path, identity in self._identities:
            if self._identity(path) != identity:
                raise errors.DatabaseBusy(
                    reason=f"{path} was removed or replaced while the service runs: stop the "
                    "service, put back a backup (bloomery db backup makes one), and start it",
                    disk_file=path,
                )

    @staticmethod
    def _identity(path: str) -> tuple[int, int]:
        try:
            status = os.stat(path)  # noqa: PTH116  at each read
        except OSError:
            return (0, 0)
        return (status.st_dev, status.st_ino)


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


def _in_transaction(conn: sa.Connection) -> bool:
    is_inside: bool = conn.connection.dbapi_connection.in_transaction  # type: ignore[union-attr]
    return is_inside


def _roll_back(conn: sa.Connection) -> None:
    if _in_transaction(conn):
        _execute_bare(conn, "ROLLBACK")


class _NamingFaults:
    """Raise named errors for SQLite's refusals; other errors pass."""

    def __init__(self, url: sa.URL) -> None:
        self._url = url

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, exc: BaseException | None, _tb: object) -> None:
        if not isinstance(exc, sa.exc.DatabaseError):
            return
        message, code = str(exc.orig), getattr(exc.orig, "sqlite_errorcode", 0) & _PRIMARY
        file = self._url.database
        if code in _BUSY:
            raise errors.DatabaseBusy(
                reason=f"{_BUSY[code]} ({file})", log=message,
                disk_file=None if code == sqlite3.SQLITE_BUSY else file,
            ) from exc  # fmt: skip
        if code in _BROKEN:
            raise errors.CannotStart(
                reason=f"cannot use {file}: {_BROKEN[code]}; put back a backup of it, "
                "or choose another --state-dir",
                log=message,
            ) from exc


class Meter:
    """Count the statements and commits of a database, for tests and benchmarks."""

    def __init__(self, db: Database) -> None:
        self._mutex = threading.Lock()
        self.statements: list[str] = []
        self.commits = 0
        edge = db._edge  # noqa: SLF001  of this module
        sa.event.listen(edge.engine, "before_cursor_execute", self._on_statement)
        edge.on_commit.append(self._committed)

    def _on_statement(self, _c: Any, _cur: Any, statement: str, *_: Any) -> None:
        with self._mutex:
            self.statements.append(statement)

    def _committed(self) -> None:
        with self._mutex:
            self.commits += 1

    def reset(self) -> None:
        with self._mutex:
            self.statements, self.commits = [], 0
