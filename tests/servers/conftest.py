from __future__ import annotations

import dataclasses
import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db import engine, nodes, rows, schema
from bloomery.model import node as model


@pytest.fixture(scope="session")
def server() -> sa.URL:
    """The PostgreSQL that the suite runs on."""
    if not (url := os.environ.get("BLOOMERY_TEST_POSTGRESQL")):
        pytest.skip("BLOOMERY_TEST_POSTGRESQL names no server")
    return sa.make_url(url)


@pytest.fixture
def fresh(server: sa.URL) -> Iterator[engine.Database]:
    """An empty database of the test's own, dropped after it."""
    name = f"bloomery_test_{uuid.uuid4().hex}"
    admin = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as conn:
        conn.exec_driver_sql(f"CREATE DATABASE {name}")
    database = engine.Database(server.set(database=name))
    yield database
    database.close()
    with admin.connect() as conn:
        conn.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    admin.dispose()


@pytest.fixture
def db(fresh: engine.Database) -> engine.Database:
    """A database at the head of the schema."""
    schema.upgrade(fresh)
    return fresh


AddNode = Callable[..., str]


@pytest.fixture
def add_node() -> AddNode:
    """Insert a node with these attributes on a connection; return its UUID."""

    def add(conn: sa.Connection, **values: Any) -> str:
        values = {"uuid": str(uuid.uuid4()), "driver": "fake-hardware"} | values
        node = model.Node(created_at=rows.now(), **values)
        columns = dataclasses.asdict(node)
        for name in ("id", "traits", "updated_at"):
            del columns[name]
        nodes.insert(conn, rows.encode(columns, model.OBJECTS))
        return node.uuid

    return add
