"""A conductor reads only the rows of its shares of the ring."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any, Final

import pytest
import sqlalchemy as sa

from bloomery.conductor.states import State
from bloomery.db import conductors, engine, nodes, steps
from bloomery.db.tables import NODES
from bloomery.model.node import POWER_FAILURE, RING_BITS
from bloomery.rpc.ring import Ring

HOSTS: Final = "abcde"
NODE_COUNT: Final = 400
SET: Final[dict[str, Any]] = {"driver": "fake-hardware", "conductor_group": ""}


@pytest.fixture
def ring(db: engine.Database, add_node: Any) -> Ring:
    def fill(conn: sa.Connection) -> None:
        for host in HOSTS:
            conductors.register(
                conn, hostname=host, group="", drivers=["fake-hardware"], interfaces=[]
            )
        for number in range(NODE_COUNT):
            add_node(conn, uuid=str(uuid.UUID(int=number)), **SET)

    db.transact(fill)
    return Ring(db)


def test_servers_compute_the_position_of_a_node(db: engine.Database, add_node: Any):
    uuids = [str(uuid.UUID(int=number)) for number in range(20)]
    db.transact(lambda conn: [add_node(conn, uuid=each) for each in uuids])
    with db.read() as conn:
        stored = conn.exec_driver_sql("SELECT uuid, ring_position FROM nodes").tuples().all()
    assert dict(stored) == {
        each: int(hashlib.md5(each.encode()).hexdigest(), 16) >> 128 - RING_BITS for each in uuids
    }


LISTS: Final[dict[str, tuple[dict[str, Any], Any]]] = {  # columns of the nodes, and the list
    "power sync": ({"provision_state": "active"},
        lambda conn, shares: [row.key for row in nodes.list_for_power_sync(conn, shares)]),
    "sensors": ({"provision_state": "active"},
        lambda conn, shares: [
            row.key for row in nodes.list_for_sensors(conn, shares, also_free=False)]),
    "faults": ({"maintenance": True, "fault": POWER_FAILURE, "provision_state": "active"},
        lambda conn, shares: [
            row.key for row in nodes.list_with_fault(conn, shares, POWER_FAILURE)]),
    "unattended": ({"provision_state": "deploying"},
        lambda conn, shares: nodes.list_unattended(conn, shares, [State.DEPLOYING])),
    "waiting": ({"provision_state": "wait call-back", "provision_updated_at": sa.func.now()},
        lambda conn, shares: [key for key, _ in nodes.list_waiting(
            conn, shares, State.DEPLOYWAIT, "provision_updated_at")]),
    "deploy interface": ({"provision_state": "wait call-back", "deploy_interface": "agent"},
        lambda conn, shares: [key for key, _ in nodes.list_of_interface(
            conn, shares, "deploy_interface", "agent", [State.DEPLOYWAIT])]),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "find"), LISTS.values(), ids=LISTS)
def test_a_list_reads_the_nodes_of_its_conductor(db: engine.Database, ring: Ring, columns, find):
    db.transact(lambda conn: conn.execute(sa.update(NODES).values(columns)))
    everything: list[str] = []
    for host in HOSTS:
        with db.read() as conn:
            keys = find(conn, ring.list_shares(host))
        served = ring.list_served(host, keys)
        assert sorted(key.uuid for key in keys) == sorted(served), "no row of another conductor"
        everything += served
    assert sorted(everything) == [str(uuid.UUID(int=number)) for number in range(NODE_COUNT)]


def test_a_conductor_without_a_share_reads_no_row(db: engine.Database, ring: Ring):
    with db.read() as conn:
        assert nodes.list_for_power_sync(conn, ring.list_shares("unknown")) == []
        assert steps.list_deadlines(conn, ring.list_shares("unknown")) == []


@pytest.mark.only_on("postgresql")
def test_a_small_share_is_read_by_the_index(db: engine.Database, ring: Ring):
    arcs = ring.list_shares("a")[0].arcs
    assert arcs
    share = ring.list_shares("a")[0]._replace(arcs=arcs[:1])
    db.transact(lambda conn: conn.exec_driver_sql("ANALYZE nodes"))
    with db.snapshot() as conn:
        conn.exec_driver_sql("SET LOCAL enable_seqscan = off")  # the few rows here fit in a page
        query = sa.select(NODES.c.uuid).where(nodes.is_in(conn, [share]))
        text = query.compile(conn.engine, compile_kwargs={"literal_binds": True})
        plan = conn.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {text}").scalar_one()
    assert "ix_nodes_ring_position" in json.dumps(plan)
