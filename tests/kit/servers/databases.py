"""The databases that tests run on: SQLite files, or those of a server.

BLOOMERY_TEST_DATABASE says which: sqlite, postgresql or mariadb; a test may change it.  The server
is the one that ``tools/servers.py`` has named.  A path stands for one database on each of them:

    db = databases.open_at(tmp_path / "site.sqlite")     # at the head of the schema, empty
    conf = Conf(database=databases.settings(tmp_path / "state"))
    databases.release(tmp_path)                          # who opens the path next finds it empty

On a server a database is made once and emptied after each test, which takes milliseconds; to make
one takes up to a second.  ``make_engines_cheap`` is called once, before all tests.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from bloomery.conf.default import Database as Settings
from bloomery.db import engine, schema, server_pool
from bloomery.db.engine import Database
from bloomery.db.tables import METADATA, NODE_COUNTS

SQLITE: Final = "sqlite"
VARIABLE: Final = "BLOOMERY_TEST_DATABASE"
KIND: Final = os.environ.get(VARIABLE, SQLITE)  # of every test that does not say otherwise
URLS: Final = {"postgresql": "BLOOMERY_TEST_POSTGRESQL", "mariadb": "BLOOMERY_TEST_MARIADB"}
ON_SERVER: Final = KIND != SQLITE
_RESET_COUNTERS: Final = (
    "SELECT setval(quote_ident(sequencename)::regclass, 1, false) FROM pg_sequences"
    " WHERE last_value IS NOT NULL"
)


def make_engines_cheap() -> None:
    """Compile each statement once for all databases of a server; that was a third of a short test.

    And let SQLite leave it to the kernel when it writes to the disk: no test sees a power cut.
    """
    of_file, of_server = engine._engine, server_pool.create

    def open_file(url: sa.URL, settings: Settings, *more: Any) -> sa.Engine:
        careless = dataclasses.replace(settings, synchronous="OFF")
        return _with_shared_statements(of_file(url, careless, *more))

    engine._engine = open_file
    server_pool.create = lambda *arguments: _with_shared_statements(of_server(*arguments))


def _with_shared_statements(made: sa.Engine) -> sa.Engine:
    """Let the engine use the dialect, and what was compiled for it, of the first of its server.

    In MariaDB a dialect has one database: it finds the names of tables there.  The first engine
    that connects tells the dialect about the server.
    """
    url, own = made.url, made.dialect
    database = url.database if made.dialect.name == "mysql" else None
    server = (url.drivername, url.host, url.port, database)
    made.dialect, made._compiled_cache = _compiled.setdefault(
        server, (made.dialect, made._compiled_cache)
    )
    made._compiled_cache.capacity = _MOST_STATEMENTS
    if (shared := made.dialect) is not own:
        own.initialize = lambda conn: shared.server_version_info or shared.initialize(conn)
    return made


_compiled: Final[dict[tuple[Any, ...], tuple[Any, Any]]] = {}  # by server: dialect, statements
_MOST_STATEMENTS: Final = 3000  # that are kept; a whole suite makes some hundreds


def open_at(path: Path, kind: type[Database] = Database) -> Database:
    """Open the database of this path; it is made, empty, where there is none."""
    if server := _server():
        return kind(server.url(path))
    if not path.exists():
        shutil.copy(empty_file(), path)
    return kind(f"sqlite:///{path}")


def settings(path: Path) -> Settings:
    """What [database] says of it; an SQLite file is that of the state dir ``path``."""
    if not (server := _server()):
        place_in(path)
        return Settings()
    return Settings(connection=server.url(path).render_as_string(hide_password=False))


def place_in(state_dir: Path) -> None:
    """Put an empty SQLite file into a new state dir: to run all migrations takes a start longer."""
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not any(state_dir.iterdir()):
        shutil.copy(migrated_file(), state_dir / "bloomery.sqlite")


def release(folder: Path) -> None:
    """Empty the databases of all paths below; nobody may use them any more."""
    if server := _server():
        server.release(folder)


@functools.cache
def empty_file() -> Path:
    """An SQLite file with all tables, to be copied."""
    path = Path(tempfile.mkdtemp(prefix="bloomery-tests-")) / "empty.sqlite"
    db = Database(f"sqlite:///{path}")
    db.alter(METADATA.create_all)
    db.close()
    return path


@functools.cache
def migrated_file() -> Path:
    """An SQLite file that the migrations have made, to be copied."""
    path = Path(tempfile.mkdtemp(prefix="bloomery-tests-")) / "migrated.sqlite"
    path.touch(mode=0o600)
    db = Database(f"sqlite:///{path}")
    schema.upgrade(db)
    db.close()
    return path


def _server() -> Server | None:
    """The server whose databases the test uses, or None if they are files."""
    kind = os.environ.get(VARIABLE, SQLITE)
    return None if kind == SQLITE else _server_of(kind)


@functools.cache
def _server_of(kind: str) -> Server:
    url = sa.make_url(os.environ[URLS[kind]])
    if kind == "mariadb":
        url = url.update_query_dict(
            {"ssl_disabled": "1"}
        )  # PyMySQL reads all authorities each time
    return _until_closed.enter_context(contextlib.closing(Server(url)))


_until_closed: Final = contextlib.ExitStack()
close: Final = _until_closed.close  # after the last test


class Server:
    """Databases of one server, of this process alone; they are dropped with it."""

    def __init__(self, admin_url: sa.URL) -> None:
        self._admin_url = admin_url
        self._admin = sa.create_engine(admin_url, isolation_level="AUTOCOMMIT")
        self._by_path: dict[Path, str] = {}
        self._empty: list[str] = []
        self._all: list[str] = []
        self._first_rows: dict[sa.Table, list[dict[str, Any]]] = {}  # what migrations insert

    def url(self, path: Path) -> sa.URL:
        """The URL of the path's database."""
        if path not in self._by_path:
            self._by_path[path] = self._empty.pop() if self._empty else self._make()
        return self._admin_url.set(database=self._by_path[path])

    def release(self, folder: Path) -> None:
        """Empty the databases of the paths in this folder, and keep them for others."""
        for path in [path for path in self._by_path if path.is_relative_to(folder)]:
            name = self._by_path.pop(path)
            self._disconnect(name)
            self._clear(name)
            self._empty.append(name)

    def close(self) -> None:
        """Drop every database."""
        for name in self._all:
            self._disconnect(name)
            with self._admin.connect() as conn:
                conn.exec_driver_sql(f"DROP DATABASE {name}")
        self._admin.dispose()

    def _make(self) -> str:
        name = f"bloomery_test_{uuid.uuid4().hex}"
        with self._admin.connect() as conn:
            conn.exec_driver_sql(f"CREATE DATABASE {name}")
            if conn.dialect.name == "postgresql":
                conn.exec_driver_sql(f"ALTER DATABASE {name} SET synchronous_commit = off")
        self._all.append(name)
        db = Database(self._admin_url.set(database=name))
        schema.upgrade(db)
        if len(self._all) == 1:
            with db.read() as conn:
                for table in METADATA.sorted_tables:
                    rows = [dict(row) for row in conn.execute(sa.select(table)).mappings()]
                    self._first_rows[table] = rows
        db.close()
        return name

    def _disconnect(self, name: str) -> None:
        """End the connections of threads that a test has left behind, and their locks."""
        with self._admin.connect() as conn:
            if self._admin.dialect.name == "postgresql":
                conn.exec_driver_sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    f" WHERE datname = '{name}'"
                )
                return
            listed = "SELECT id FROM information_schema.processlist WHERE db = "
            for thread in conn.exec_driver_sql(f"{listed}'{name}'").scalars().all():
                with contextlib.suppress(sa.exc.OperationalError):  # it ended by itself
                    conn.exec_driver_sql(f"KILL {thread}")

    def _clear(self, name: str) -> None:
        """Leave the rows of a database that was made just now; MariaDB goes on counting them."""
        url = self._admin_url.set(database=name)
        emptying = _with_shared_statements(sa.create_engine(url, poolclass=sa.NullPool))
        with emptying.begin() as conn:
            used = set(conn.execute(_used_tables()).scalars())
            for table in reversed(METADATA.sorted_tables):
                if table.name in used:
                    conn.execute(sa.delete(table))
            conn.execute(sa.delete(NODE_COUNTS))  # after the nodes, whose triggers write there
            for table in METADATA.sorted_tables:
                if table.name in used and self._first_rows[table]:
                    conn.execute(sa.insert(table), self._first_rows[table])
            if conn.dialect.name == "postgresql":
                conn.exec_driver_sql(_RESET_COUNTERS)


@functools.cache
def _used_tables() -> sa.CompoundSelect[tuple[str]]:
    """The names of tables that have rows."""
    return sa.union_all(*(
        sa.select(sa.literal(table.name)).where(sa.exists(sa.select(table)))
        for table in METADATA.sorted_tables
    ))  # fmt: skip
