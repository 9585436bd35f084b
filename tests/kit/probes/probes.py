"""What must hold, as functions that fail when it does not: for the tests, and for the mutants."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from concurrent.futures import Executor, Future
from typing import Any
from unittest import mock

import pytest

from bloomery import errors
from bloomery.conductor import task_manager, verbs, writes
from bloomery.conductor.manager import ConductorManager
from bloomery.conductor.node_lock import NodeLocks, Places, TooManyWaiting
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.db import locks
from bloomery.model.request import ProvisionArguments
from tests.kit.servers.site import HOST, Site
from tests.kit.waiting import wait_for


class NoGates:
    """Gates of which there are none: only the reservation in the database is left."""

    task = waiting = 0

    def __init__(self) -> None:
        self.places = Places(1000)

    def enter(self, uuid: str, timeout_s: float, **more: Any) -> bool:
        return True

    def leave(self, uuid: str) -> None:
        """Nobody waits."""


def without_gates(runtime: ConductorRuntime) -> ConductorRuntime:
    return dataclasses.replace(runtime, node_locks=NoGates())  # type: ignore[arg-type]


def context_of(runtime: ConductorRuntime, site: Site, **more: Any) -> Context:
    return Context(runtime=runtime, request=site.request(**more))


# ------------------------------------------------------------------------- gate, reservation


def second_holder_is_told_who_holds(site: Site, node: str) -> None:
    with site.acquire(node, purpose="deploy"):
        with pytest.raises(errors.NodeLocked) as told:
            site.acquire(node, retry=False)
        assert told.value.status == 409
        assert str(told.value).startswith(f"Node {node} is locked by host {HOST} (deploy)")


def reservation_excludes_without_gates(site: Site, node: str) -> None:
    """The row alone arbitrates, as it does between processes."""
    runtime = without_gates(site.runtime)
    with task_manager.acquire(context_of(runtime, site), node), pytest.raises(errors.NodeLocked):
        task_manager.acquire(context_of(runtime, site), node, retry=False)


def an_order_loses_no_change_of_another_process(site: Site, node: str) -> None:
    """The other process changes the node after the order has read it, and before it moves it."""
    other, check = without_gates(site.runtime), verbs.TABLE["deploy"].check
    manager, changed = ConductorManager(other), list[str]()

    def change_first(task: TaskManager, arguments: ProvisionArguments) -> None:
        if not changed:
            changed.append(node)
            patch = [{"op": "add", "path": "/instance_info/by", "value": "another"}]
            manager.update_node(site.request(), node, patch, False)
        check(task, arguments)
        task.node.instance_info = task.node.instance_info | {"by_order": True}

    verb = dataclasses.replace(verbs.TABLE["deploy"], check=change_first)
    with mock.patch.dict(verbs.TABLE, {"deploy": verb}):
        site.deploy(node)
    site.wait_for_state(node, "active")
    info = site.node(node).instance_info
    assert (info.get("by"), info.get("by_order")) == ("another", True)


def no_more_than_so_many_threads_wait() -> None:
    """Three nodes, one caller for each, two places: the third caller is told at once."""
    node_locks = NodeLocks(max_waiters_per_node=8, max_waiters=2)
    nodes = ("a", "b", "c")
    for node in nodes:
        assert node_locks.enter(node, 0)
    crowd = [threading.Thread(target=node_locks.enter, args=(node, 20)) for node in nodes[:2]]
    for one in crowd:
        one.start()
    try:
        wait_for(lambda: node_locks.waiting == 2, "two waiters")
        with pytest.raises(TooManyWaiting):
            node_locks.enter("c", 0)
    finally:
        for node in nodes:
            node_locks.leave(node)
        for one in crowd:
            one.join()


def waiters_are_served_in_order(site: Site, node: str, pool: Executor) -> None:
    """Whoever came first is served first, at once, with no polling of the database."""
    served: list[int] = []
    task = site.acquire(node)

    def wait_and_note(number: int) -> None:
        with site.acquire(node):
            served.append(number)

    waiting: list[Future[None]] = []
    try:
        for number in range(6):
            waiting.append(pool.submit(wait_and_note, number))
            wait_for(lambda n=number: site.runtime.node_locks.waiting > n, "a waiter", timeout_s=2)
    finally:
        task.release_resources()
        for future in waiting:
            future.result(timeout=10)
    assert served == list(range(6))


# ------------------------------------------------------------------------------ lost updates


def no_acknowledged_patch_is_lost(
    site: Site, node: str, clients: int, rounds: int, manager: ConductorManager | None = None
) -> int:
    """Clients patch keys of their own on one node; return how many patches were refused."""
    refused: list[str] = []
    acknowledged: list[str] = []
    begin = threading.Barrier(clients)
    asked = manager or site.service.manager

    def client(number: int) -> None:
        begin.wait()
        for turn in range(rounds):
            key = f"client-{number}-{turn}"
            patch = [{"op": "add", "path": f"/extra/{key}", "value": turn}]
            try:
                asked.update_node(site.request(), node, patch, False)
                acknowledged.append(key)
            except errors.NodeLocked:
                refused.append(key)

    run_all([threading.Thread(target=client, args=(n,)) for n in range(clients)])
    assert set(site.node(node).extra) == set(acknowledged)
    assert len(acknowledged) + len(refused) == clients * rounds
    return len(refused)


def run_all(threads: list[threading.Thread], *, timeout_s: float = 60) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=timeout_s)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"


# --------------------------------------------------------------------------------- the fence


def a_holder_that_was_voided_writes_nothing(site: Site, node: str, write: str) -> None:
    """Another conductor took the node over: the first one's writes fail, whatever the table."""
    task = site.acquire(node)
    _take_over(site, node)
    before = site.everything()
    task.node.description = "from beyond"
    try:
        with pytest.raises(errors.LockLost):
            _write(task, write)
        assert site.everything() == before
    finally:
        with contextlib.suppress(Exception):
            task.release_resources()
    assert site.everything() == before, "releasing wrote"


def _write(task: task_manager.TaskManager, how: str) -> None:
    if how == "save":
        task.save()
    elif how == "journal":
        task.save(writes.history_entry(task.context, task.node, "from beyond", event_type="test"))
    elif how == "release":
        task.save(release=True)
    else:
        task.process_event("manage")


def _take_over(site: Site, node: str) -> None:
    """The same host name takes the node again, as a conductor does that was started anew."""
    site.db.transact(lambda conn: locks.void_all(conn, HOST))
    site.db.transact(lambda conn: locks.reserve(conn, node, holder=HOST, purpose="its next life"))


# --------------------------------------------------------------------------- short operations


def a_held_node_is_not_patched(site: Site, node: str) -> None:
    """Who holds a node saves fields of it; a patch in between would be lost or half seen."""
    site.patience_s = 0.02
    patch = [{"op": "add", "path": "/extra/a", "value": 1}]
    with site.acquire(node, purpose="deploy"):
        before = site.everything()
        with pytest.raises(errors.NodeLocked, match=r"\(deploy\)"):
            site.order("update_node", node, patch, False)
        assert site.everything() == before
