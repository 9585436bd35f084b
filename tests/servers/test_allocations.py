"""Two conductors that give out the nodes of one database: none is given twice, none is lost."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bloomery.conductor import allocator, lifecycle
from bloomery.conductor.allocation_queue import Entry
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import allocations, conductors, engine, nodes, records
from bloomery.db.allocations import Criteria
from bloomery.model.allocation import AllocationState
from bloomery.model.nouns import ALLOCATION
from bloomery.model.request import Request
from bloomery.secrets import Sealer
from tests.kit.servers import site as kit

FREE = {"resource_class": "large", "provision_state": "available", "power_state": "power off"}


@pytest.fixture
def hosts(db: engine.Database) -> list[ConductorRuntime]:
    return [lifecycle.build(kit.conf(name), db, Sealer(kit.KEY)) for name in ("a", "b")]


def ask(db: engine.Database, **values: Any) -> str:
    record = ALLOCATION.value(
        **{"uuid": str(uuid.uuid4()), "resource_class": "large", "conductor_affinity": "a"} | values
    )
    db.transact(lambda conn: records.insert(conn, ALLOCATION, record))
    return str(record.uuid)


def get(db: engine.Database, allocation: str) -> Any:
    with db.read() as conn:
        return records.get(conn, ALLOCATION, allocation)


def entry(allocation: str) -> Entry:
    return Entry(uuid=allocation, request=Request.new())


def test_many_at_once_get_a_node_each(db: engine.Database, add_node: Any, hosts: Any) -> None:
    free = {db.transact(lambda conn: add_node(conn, **FREE)) for _ in range(30)}
    wishes = [ask(db) for _ in range(33)]
    pairs = [(host, wish) for wish in wishes for host in hosts]  # both look at every allocation
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda pair: allocator.allocate(pair[0], entry(pair[1])), pairs))
    for wish in wishes:  # who met nodes that were just being taken comes again, by its timer
        assert allocator.allocate(hosts[0], entry(wish))
    settled = [get(db, wish) for wish in wishes]
    taken = [each.node_uuid for each in settled if each.state == AllocationState.ACTIVE]
    assert len(taken) == 30
    assert set(taken) == free
    for each in settled:
        if each.node_uuid is None:
            assert (each.state, each.last_error is None) == (AllocationState.ERROR, False)
            continue
        with db.read() as conn:
            node = nodes.get(conn, each.node_uuid)
        assert node.allocation_uuid == node.instance_uuid == each.uuid


def test_node_that_another_session_is_taking_is_passed_over(
    db: engine.Database, add_node: Any
) -> None:
    node = db.transact(lambda conn: add_node(conn, **FREE))
    criteria = Criteria(resource_class="large")
    is_taken, may_commit = threading.Event(), threading.Event()

    def take(conn: Any) -> None:
        assert allocations.find_free(conn, criteria).uuid == node
        is_taken.set()
        may_commit.wait(30)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(db.transact, take)
        is_taken.wait(30)
        assert db.transact(lambda conn: allocations.find_free(conn, criteria)) is None
        with db.read() as conn:
            assert allocations.count_suitable(conn, criteria) == 1, "it is waited for"
        may_commit.set()
        other.result()


def test_allocations_of_a_dead_conductor_are_adopted_once(db: engine.Database) -> None:
    for name in ("a", "b"):
        db.transact(lambda conn, name=name: conductors.register(
            conn, hostname=name, group="", drivers=[], interfaces=[]))  # fmt: skip
    own, lost = ask(db), ask(db, conductor_affinity="dead")
    with ThreadPoolExecutor(2) as pool:
        adopted = pool.map(
            lambda host: db.transact(lambda conn: allocations.adopt(conn, host)), ("a", "b")
        )
        found = [allocation for each in adopted for allocation in each]
    assert sorted(found) == sorted([own, lost])


def test_failing_is_told_once(db: engine.Database, hosts: Any) -> None:
    wish = ask(db, traits=["CUSTOM_A"], name="web", owner="p", candidate_nodes=[str(uuid.uuid4())])
    for host in hosts:
        assert allocator.allocate(host, entry(wish))
    assert "none of the requested nodes" in get(db, wish).last_error
