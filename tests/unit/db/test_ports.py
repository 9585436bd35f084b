from __future__ import annotations

import uuid
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db import engine, records
from bloomery.model.nouns import PORT
from bloomery.model.port import Port

ANY = str(uuid.uuid4())


def add_port(conn: sa.Connection, node_uuid: str, **values: Any) -> str:
    said = {
        "uuid": str(uuid.uuid4()),
        "address": f"52:54:00:{uuid.uuid4().hex[:6]}",
        "node_uuid": node_uuid,
        "extra": {"a": [1]},
    }
    said |= values
    records.insert(conn, PORT, Port(**said))
    return str(said["uuid"])


@pytest.fixture
def node(db: engine.Database, add_node) -> str:
    return db.transact(add_node)


def test_a_port_comes_back_as_it_was_stored(db: engine.Database, node: str):
    one = db.transact(lambda conn: add_port(conn, node, name="eth0"))
    with db.read() as conn:
        port = records.get(conn, PORT, "eth0")
        assert records.list_where(conn, PORT, node_uuid=node) == [port]
    assert (port.uuid, port.extra, port.pxe_enabled) == (one, {"a": [1]}, True)


@pytest.mark.parametrize(
    ("clash", "named"),
    [
        ({"uuid": ANY}, errors.PortAlreadyExists),
        ({"name": "eth0"}, errors.PortDuplicateName),
        ({"address": "52:54:00:12:34:56"}, errors.MACAlreadyExists),
    ],
)
def test_what_must_be_unique_is_named(db: engine.Database, node: str, clash, named):
    first = {"uuid": ANY, "name": "eth0", "address": "52:54:00:12:34:56"}
    db.transact(lambda conn: add_port(conn, node, **first))
    with pytest.raises(named):
        db.transact(lambda conn: add_port(conn, node, **clash))
    other = db.transact(lambda conn: add_port(conn, node))
    with pytest.raises(named):
        db.transact(lambda conn: records.update(conn, PORT, other, clash))


def test_a_node_or_port_group_that_is_not_there_is_named(db: engine.Database, node: str):
    with pytest.raises(errors.NodeNotFound, match=ANY):
        db.transact(lambda conn: add_port(conn, ANY))
    with pytest.raises(errors.PortgroupNotFound, match=ANY):
        db.transact(lambda conn: add_port(conn, node, portgroup_uuid=ANY))


def test_a_port_is_deleted_once(db: engine.Database, node: str):
    port = db.transact(lambda conn: add_port(conn, node))
    assert db.transact(lambda conn: records.delete(conn, PORT, port))
    assert not db.transact(lambda conn: records.delete(conn, PORT, port))
