"""The one database of a process, and the edge of its transactions.

Reads see the last commit and need no transaction.  Writes go through ``transact``.  What that
means depends on the database: ``sqlite_edge`` lets one writer in at a time, ``server_edge`` runs
work again that met a deadlock or lost its connection, and never what was committed.  Nothing but
SQL belongs inside: no BMC, RPC or log call.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import sqlalchemy as sa

from bloomery import errors
from bloomery.conf.database import Database as Settings
from bloomery.db.server_edge import ServerEdge
from bloomery.db.sqlite_edge import SqliteEdge

T = TypeVar("T")

_FORMS = {  # of URLs, and the extra that brings the driver
    "postgresql://USER:PASSWORD@HOST/NAME": "bloomery[postgresql]",
    "mysql://USER:PASSWORD@HOST/NAME": "bloomery[mysql]",
}
_DRIVERS: Final = {"postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}


class Database:
    """Connections and transactions; safe to use from any thread."""

    def __init__(
        self,
        url: str | sa.URL,
        settings: Settings | None = None,
        *,
        foreign_writer_timeout_s: float = 5.0,
    ) -> None:
        """``foreign_writer_timeout_s``: patience with another program that locks SQLite's file.

        Raises CannotStart for a URL that is none, or whose driver is not installed.
        """
        self.settings = settings or Settings()
        self.url = parse_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        with _driver_named(self.url):
            self._edge: SqliteEdge | ServerEdge = (
                SqliteEdge(self.url, self.settings, foreign_writer_timeout_s)
                if self.is_sqlite
                else ServerEdge(self.url, self.settings)
            )

    def read(self) -> AbstractContextManager[sa.Connection]:
        """A connection for reading: each statement sees the last commit before it.

        Raises DatabaseBusy: SQLite's file is locked, or the server is away.
        """
        return self._edge.read()

    def snapshot(self) -> AbstractContextManager[sa.Connection]:
        """A connection for reading whose statements all see the same commit, the last one."""
        return self._edge.snapshot()

    def transact(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work`` in one transaction and commit; it may be run again after a deadlock.

        Raises what ``work`` raises, with nothing written; DatabaseBusy when its turn never came
        or the server is away; CommitInDoubt when the server went away with the answer.
        """
        return self._edge.transact(work)

    def alter(self, work: Callable[[sa.Connection], T]) -> T:
        """Run ``work``, which changes the schema, while no other process does so."""
        return self._edge.alter(work)

    def reserved(self) -> Database:
        """Return this database with one connection of its own, for signs of life.

        Whoever uses up the pool does not delay them.  SQLite has one writer: it returns itself.
        The caller closes it.
        """
        if self.is_sqlite:
            return self
        single = dataclasses.replace(self.settings, max_pool_size=1, max_overflow=0)
        return Database(self.url, single)

    def close(self) -> None:
        """Give every connection back; the database may be used again afterwards."""
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
            self._copy_into(target)
        except BaseException:
            target.unlink()
            raise

    def _copy_into(self, target: Path) -> None:
        with self.read() as conn:
            conn.exec_driver_sql("VACUUM INTO ?", (str(target),))
        with target.open("rb") as file:
            os.fsync(file.fileno())


def parse_url(text: str | sa.URL) -> sa.URL:
    """Return the URL, with the driver that we use where it names none.

    MariaDB goes by ``mysql``, which is what SQLAlchemy's options for its tables are called.
    Raises CannotStart that does not repeat the URL: it may hold a password.
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


@contextmanager
def _driver_named(url: sa.URL) -> Iterator[None]:
    try:
        yield
    except sa.exc.NoSuchModuleError:
        raise _unusable(f"SQLAlchemy knows no {url.drivername}") from None
    except ImportError as exc:
        raise _unusable(f"the driver of {url.drivername} is not installed ({exc})") from None
    except (sa.exc.ArgumentError, TypeError) as exc:
        raise _unusable(f"{type(exc).__name__} with {url.drivername}") from None


def _unusable(problem: str) -> errors.CannotStart:
    forms = " or ".join(f"{form} (install {extra})" for form, extra in _FORMS.items())
    return errors.CannotStart(
        reason=f"cannot use [database]connection: {problem}; write {forms}, "
        "or leave it out for SQLite",
    )


class Meter:
    """Counts the statements and commits of a database: for tests and benchmarks."""

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
