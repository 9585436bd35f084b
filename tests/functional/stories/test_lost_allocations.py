"""Allocations outlive what looks for their nodes: a full pool, a database that refuses, a death."""

from __future__ import annotations

import contextlib
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import allocator
from bloomery.conductor.allocation_queue import Entry
from bloomery.db import records
from bloomery.db.tables import ALLOCATIONS
from bloomery.model.nouns import ALLOCATION
from bloomery.model.request import Request
from tests.kit.servers import peers
from tests.kit.servers.dying import Dead, Mortal
from tests.kit.servers.site import Site, database
from tests.kit.waiting import wait_for


def free_node(site: Site) -> str:
    node = site.enrol(resource_class="large")
    site.set(node, provision_state="available", power_state="power off")
    return node


def ask(site: Site) -> str:
    allocation = str(uuid.uuid4())
    site.order("create_allocation", {"uuid": allocation, "resource_class": "large"}, None)
    return allocation


def row(site: Site, allocation: str) -> Any:
    return site.rows(ALLOCATIONS, uuid=allocation)[0]


def wait_until_active(site: Site, allocation: str) -> None:
    wait_for(lambda: row(site, allocation)["state"] == "active", "the allocation to have a node")


def test_a_full_pool_is_waited_for(make_site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "_RETRY_S", 0.05)
    site = make_site(workers_pool_size=3)
    free_node(site)
    wait_for(lambda: not site.runtime.workers.busy, "the whole pool to be free")
    may_end = threading.Event()
    for _ in range(3):
        site.runtime.workers.spawn(may_end.wait)
    allocation = ask(site)
    assert row(site, allocation)["state"] == "allocating"
    may_end.set()
    wait_until_active(site, allocation)


def test_a_database_that_refuses_is_asked_again(
    make_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocator, "_RETRY_S", 0.05)
    site = make_site()
    free_node(site)
    refusals = [errors.DatabaseBusy(reason="a test")]
    allocate = allocator.allocate

    def refusing(*args: Any) -> bool:
        if refusals:
            raise refusals.pop()
        return allocate(*args)

    monkeypatch.setattr(allocator, "allocate", refusing)
    wait_until_active(site, ask(site))


def test_a_fault_of_ours_fails_one_allocation_and_serves_the_next(
    make_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site()
    free_node(site)
    faults = [ZeroDivisionError("of a test")]
    allocate = allocator.allocate

    def faulty(*args: Any) -> bool:
        if faults:
            raise faults.pop()
        return allocate(*args)

    monkeypatch.setattr(allocator, "allocate", faulty)
    first, second = ask(site), ask(site)
    wait_until_active(site, second)
    assert row(site, first)["state"] == "error"
    assert "unexpected error" in row(site, first)["last_error"]


def test_a_pool_that_starts_no_thread_is_asked_again(
    make_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocator, "_RETRY_S", 0.05)
    site = make_site()
    free_node(site)
    refusals = [RuntimeError("can't start new thread")]
    spawn = site.runtime.workers.spawn

    def refusing(*args: Any, **more: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return spawn(*args, **more)

    monkeypatch.setattr(site.runtime.workers, "spawn", refusing)
    wait_until_active(site, ask(site))


def test_a_failure_that_cannot_be_stored_does_not_stop_the_queue(
    make_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocator, "_RETRY_S", 0.05)
    site = make_site()
    free_node(site)
    faults = [ZeroDivisionError("of a test")]
    unstored: list[Entry] = []
    allocate = allocator.allocate

    def faulty(*args: Any) -> bool:
        if faults:
            raise faults.pop()
        return allocate(*args)

    def never_stored(_runtime: Any, entry: Entry, _reason: str) -> None:
        unstored.append(entry)
        raise KeyError("of a test")

    monkeypatch.setattr(allocator, "allocate", faulty)
    monkeypatch.setattr(allocator, "_fail", never_stored)
    first = ask(site)
    wait_until_active(site, first)
    assert [entry.uuid for entry in unstored] == [first]
    free_node(site)
    wait_until_active(site, ask(site))


def test_what_the_database_never_takes_fails_one_allocation(
    make_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As SQLite does not with a condition for each of a thousand traits."""
    monkeypatch.setattr(allocator, "_RETRY_S", 0.01)
    site = make_site()
    free_node(site)
    looks: list[str] = []
    allocate = allocator.allocate

    def refusing(runtime: Any, entry: Any) -> bool:
        if row(site, entry.uuid)["name"] == "bad":
            looks.append(entry.uuid)
            raise sa.exc.OperationalError("SELECT", {}, Exception("Expression tree is too large"))
        return allocate(runtime, entry)

    monkeypatch.setattr(allocator, "allocate", refusing)
    bad = str(uuid.uuid4())
    site.order("create_allocation", {"uuid": bad, "name": "bad", "resource_class": "large"}, None)
    wait_until_active(site, ask(site))
    wait_for(lambda: row(site, bad)["state"] == "error", "the allocation to fail")
    assert len(looks) == allocator._MOST_FAULTS
    assert "Expression tree is too large" in row(site, bad)["last_error"]


def test_deleting_frees_the_node_that_is_taken_meanwhile(
    make_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site()
    node = free_node(site)
    site.runtime.allocations.close()
    allocation = ask(site)
    transact = site.db.transact

    def late(work: Any) -> Any:
        monkeypatch.undo()
        assert allocator.allocate(site.runtime, Entry(uuid=allocation, request=Request.new()))
        assert site.node(node).allocation_uuid == allocation
        return transact(work)

    monkeypatch.setattr(site.db, "transact", late)
    site.order("destroy_allocation", allocation)
    assert site.node(node).allocation_uuid is site.node(node).instance_uuid is None
    assert site.rows(ALLOCATIONS, uuid=allocation) == []


@pytest.mark.parametrize("commits", [1, 2])
def test_the_next_life_ends_what_a_death_interrupted(tmp_path: Path, commits: int) -> None:
    """After the first commit the allocation is stored, after the second it has its node."""
    path = tmp_path / "site.sqlite"
    db = database(path, Mortal)
    assert isinstance(db, Mortal)
    dead = Site(path, db=db)
    nodes = {free_node(dead), free_node(dead)}
    db.lives = db.commits + commits
    with contextlib.suppress(Dead):
        allocation = ask(dead)
        ask(dead)
    site = dead.restarted()
    wait_until_active(site, allocation)
    wait_for(lambda: not site.rows(ALLOCATIONS, state="allocating"), "the other allocation")
    bound = [site.node(node) for node in nodes if site.node(node).allocation_uuid is not None]
    for node in bound:
        assert row(site, str(node.allocation_uuid))["node_uuid"] == node.uuid
    active = site.rows(ALLOCATIONS, state="active")
    assert len(bound) == len(active)
    site.close()


def test_allocations_of_a_dead_peer_are_taken_over(make_site: Any) -> None:
    site = make_site()
    node = free_node(site)
    peers.join(site.db, "host-b")
    allocation = str(uuid.uuid4())
    record = ALLOCATION.value(uuid=allocation, resource_class="large", conductor_affinity="host-b")
    site.db.transact(lambda conn: records.insert(conn, ALLOCATION, record))
    allocator.adopt(site.runtime)
    assert row(site, allocation)["conductor_affinity"] == "host-b", "it lives"
    peers.leave(site.db, "host-b")
    allocator.adopt(site.runtime)
    wait_until_active(site, allocation)
    assert row(site, allocation)["conductor_affinity"] == site.runtime.host
    assert site.node(node).allocation_uuid == allocation
