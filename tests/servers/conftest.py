from __future__ import annotations

import contextlib
import dataclasses
import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.conf.default import Database as Settings
from bloomery.db import engine, schema, tables
from tests.kit.servers.tcp_proxy import TcpProxy
from tests.unit.db.conftest import add_node  # noqa: F401  the same fixture

SERVERS = {"postgresql": "BLOOMERY_TEST_POSTGRESQL", "mariadb": "BLOOMERY_TEST_MARIADB"}


@pytest.fixture(scope="session", params=SERVERS)
def server(request: pytest.FixtureRequest) -> sa.URL:
    """A server that the suite runs on; each test runs once on each that there is."""
    variable = SERVERS[request.param]
    if not (url := os.environ.get(variable)):
        pytest.skip(f"{variable} names no server")
    return sa.make_url(url)


@pytest.fixture(autouse=True)
def _only_where_it_means_something(request: pytest.FixtureRequest) -> None:
    """Skip a test that is marked for one kind of server on the others."""
    if marker := request.node.get_closest_marker("only_on"):
        backend = request.getfixturevalue("server").get_backend_name()
        if backend not in marker.args:
            pytest.skip(f"says something of {marker.args[0]} only")


@pytest.fixture(scope="session")
def admin(server: sa.URL) -> Iterator[sa.Engine]:
    """Connections for making and dropping databases."""
    made = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    yield made
    made.dispose()


@pytest.fixture
def empty_databases(server: sa.URL, admin: sa.Engine) -> Iterator[Iterator[engine.Database]]:
    """As many empty databases as a test asks for, dropped after it."""
    made: list[engine.Database] = []

    def make() -> Iterator[engine.Database]:
        while True:
            made.append(create(server, admin))
            yield made[-1]

    yield make()
    for database in made:
        drop(admin, database)


@pytest.fixture
def fresh(empty_databases: Iterator[engine.Database]) -> engine.Database:
    """An empty database of the test's own."""
    return next(empty_databases)


@dataclasses.dataclass(frozen=True, slots=True)
class Migrated:
    """A database at the head of the schema, and the rows that it was made with, by table."""

    db: engine.Database
    rows: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="session")
def migrated(server: sa.URL, admin: sa.Engine) -> Iterator[Migrated]:
    """A database for all tests, which is as new before each."""
    database = create(server, admin)
    schema.upgrade(database)
    with database.read() as conn:
        rows_of = {
            table.name: [dict(row) for row in conn.execute(sa.select(table)).mappings()]
            for table in tables.METADATA.sorted_tables
        }
    yield Migrated(database, rows_of)
    drop(admin, database)


@pytest.fixture
def db(migrated: Migrated, admin: sa.Engine) -> Iterator[engine.Database]:
    """A database at the head of the schema."""
    yield migrated.db
    migrated.db.close()
    with admin.connect() as conn:
        hang_up(conn, migrated.db)
    migrated.db.alter(lambda conn: renew(conn, migrated))


def create(server: sa.URL, admin: sa.Engine) -> engine.Database:
    name = f"bloomery_test_{uuid.uuid4().hex}"
    with admin.connect() as conn:
        conn.exec_driver_sql(f"CREATE DATABASE {name}")
    return engine.Database(server.set(database=name))


def drop(admin: sa.Engine, database: engine.Database) -> None:
    database.close()
    with admin.connect() as conn:
        hang_up(conn, database)
        conn.exec_driver_sql(f"DROP DATABASE {database.url.database}")


def hang_up(conn: sa.Connection, database: engine.Database) -> None:
    """End the connections that somebody still has to a database."""
    if conn.dialect.name == "postgresql":
        gone = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s"
        conn.exec_driver_sql(gone, (database.url.database,))
        return
    processes = "SELECT id FROM information_schema.processlist WHERE db = %s"
    for number in conn.exec_driver_sql(processes, (database.url.database,)).scalars().all():
        with contextlib.suppress(sa.exc.OperationalError):  # it has ended by itself
            conn.exec_driver_sql(f"KILL {number}")


def renew(conn: sa.Connection, migrated: Migrated) -> None:
    """Bring back the rows of the beginning, and count from one again."""
    names = [table.name for table in reversed(tables.METADATA.sorted_tables)]
    if conn.dialect.name == "postgresql":
        conn.exec_driver_sql(f"TRUNCATE {', '.join(names)} RESTART IDENTITY CASCADE")
    else:
        used = [name for name in names if conn.exec_driver_sql(f"DELETE FROM {name}").rowcount]
        for name in {"events", *used}:
            conn.exec_driver_sql(f"ALTER TABLE {name} AUTO_INCREMENT = 1")
    for name, kept in migrated.rows.items():
        if kept:
            conn.execute(sa.insert(tables.METADATA.tables[name]), kept)


@pytest.fixture
def proxy(db: engine.Database) -> Iterator[TcpProxy]:
    default = 5432 if db.url.get_backend_name() == "postgresql" else 3306
    with TcpProxy((db.url.host or "127.0.0.1", db.url.port or default)) as proxy:
        yield proxy


@pytest.fixture
def far(db: engine.Database, proxy: TcpProxy) -> Iterator[engine.Database]:
    """The database, reached through the proxy."""
    url = db.url.set(host=proxy.host, port=proxy.port)
    database = engine.Database(url, Settings(connect_timeout=2, lock_timeout=2))
    yield database
    database.close()
