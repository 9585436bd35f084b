from __future__ import annotations

import dataclasses
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db import engine, nodes, rows, schema
from bloomery.model import node as model


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database at the head of the schema, to be copied."""
    path = tmp_path_factory.mktemp("migrated") / "empty.sqlite"
    database = engine.Database(f"sqlite:///{path}")
    schema.upgrade(database)
    database.close()
    return path


@pytest.fixture
def path(migrated: Path, tmp_path: Path) -> Path:
    return shutil.copy(migrated, tmp_path / "test.sqlite")


@pytest.fixture
def db(path: Path) -> Iterator[engine.Database]:
    database = engine.Database(f"sqlite:///{path}", foreign_writer_timeout_s=0.05)
    yield database
    database.close()


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
