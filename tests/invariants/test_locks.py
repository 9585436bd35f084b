"""The property of the locks: never two holders, never a lost update, everybody is told in time.

Threads of several conductors, each with its own gates on one database, do whatever comes to
their minds; what they believe to have done is then compared with the rows.
"""

from __future__ import annotations

import collections
import random
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor import row_updates, task_manager
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.db import nodes as node_rows
from bloomery.db import rows
from bloomery.model import node as model
from tests.kit.probes import probes
from tests.kit.servers.site import Site

THREADS, HOSTS, NODES = 32, 4, 4
LASTS_S = 6.0
PATIENCE_S = 1.0
IN_TIME_S = PATIENCE_S + 2.0  # what a waiter may take: its patience, and room for a busy machine


class Ledger:
    """What the threads believe: who is inside, how often a node was counted up, how it moved."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self.inside: dict[str, str] = {}
        self.counted: collections.Counter[str] = collections.Counter()
        self.moves: collections.Counter[str] = collections.Counter()
        self.did: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []
        self.longest_s = 0.0

    def enter(self, node: str, who: str) -> None:
        with self._mutex:
            if node in self.inside:
                self.wrong.append(f"{who} is inside {node} together with {self.inside[node]}")
            self.inside[node] = who

    def leave(self, node: str) -> None:
        with self._mutex:
            self.inside.pop(node, None)

    def note(self, what: str, node: str | None = None, *, counted: int = 0, moves: int = 0) -> None:
        with self._mutex:
            self.did[what] += 1
            if node is not None:
                self.counted[node] += counted
                self.moves[node] += moves

    def took(self, seconds: float) -> None:
        with self._mutex:
            self.longest_s = max(self.longest_s, seconds)

    def fault(self, what: str) -> None:
        with self._mutex:
            self.wrong.append(what)


class Walker:
    """One thread of one conductor, doing random operations on random nodes."""

    def __init__(
        self, runtime: ConductorRuntime, site: Site, nodes: list[str], ledger: Ledger, seed: str
    ):
        self.runtime, self.site, self.nodes, self.ledger = runtime, site, nodes, ledger
        self.lots = random.Random(seed)
        self.who = seed
        self.pool = ThreadPoolExecutor(1)

    def run(self, until: float) -> None:
        acts = [
            self.look, self.count, self.count, self.move, self.row_updates, self.upgrade,
            self.downgrade, self.spawn, self.fail,
        ]  # fmt: skip
        while time.monotonic() < until:
            node = self.lots.choice(self.nodes)
            act = self.lots.choice(acts)
            try:
                act(node)
            except errors.NodeLocked:
                self.ledger.note("told that it is locked")
            except Exception as exc:  # noqa: BLE001  whatever else it is, it is wrong
                self.ledger.fault(f"{self.who}: {act.__name__} raised {exc!r}")
        self.pool.shutdown(wait=True)

    def context(self) -> Context:
        wait_s = self.lots.choice([0.0, 0.05, PATIENCE_S])
        return Context(runtime=self.runtime, request=self.site.request(wait_s=wait_s))

    def acquire(self, node: str, **more: Any) -> TaskManager:
        began = time.monotonic()
        try:
            return task_manager.acquire(self.context(), node, load_driver=False, **more)
        finally:
            self.ledger.took(time.monotonic() - began)

    def hold(self, node: str) -> TaskManager:
        task = self.acquire(node, retry=self.lots.random() < 0.9)
        self.ledger.enter(node, self.who)
        return task

    def up(self, task: TaskManager) -> None:
        extra = task.node.extra
        before = extra.get("count", 0)
        time.sleep(self.lots.random() * 0.002)  # hold it a moment: an overlap would show
        extra["count"] = before + 1
        task.save()
        self.ledger.note("count", task.node_id, counted=1)

    # ------------------------------------------------------------------------- operations

    def look(self, node: str) -> None:
        with self.acquire(node, shared=True) as task:
            if task.node.uuid != node:
                self.ledger.fault("looked at another node")
        self.ledger.note("look")

    def count(self, node: str) -> None:
        with self.hold(node) as task:
            self.up(task)
            self.ledger.leave(node)

    def move(self, node: str) -> None:
        with self.hold(node) as task:
            for event in ("deploy", "wait", "resume", "fail", "delete", "clean", "done"):
                task.process_event(event)
            self.ledger.note("move", node, moves=7)
            self.ledger.leave(node)

    def row_updates(self, node: str) -> None:
        def work(conn: Any, found: model.Node) -> None:
            extra = found.extra | {"count": found.extra.get("count", 0) + 1}
            node_rows.update(conn, node, rows.encode({"extra": extra}, model.OBJECTS))

        began = time.monotonic()
        try:
            row_updates.change(self.context(), node, work)
        finally:
            self.ledger.took(time.monotonic() - began)
        self.ledger.note("at once", node, counted=1)

    def upgrade(self, node: str) -> None:
        with self.acquire(node, shared=True) as task:
            task.upgrade_lock()
            self.ledger.enter(node, self.who)
            self.up(task)
            self.ledger.leave(node)
        self.ledger.note("upgrade")

    def downgrade(self, node: str) -> None:
        with self.hold(node) as task:
            self.up(task)
            self.ledger.leave(node)
            task.downgrade_lock()
            try:
                task.save()
                self.ledger.fault("a downgraded task saved")
            except errors.ExclusiveLockRequired:
                self.ledger.note("downgrade")

    def spawn(self, node: str) -> None:
        """The lock goes over to a worker; this thread comes back for the node meanwhile."""
        with self.hold(node) as task:
            task.spawn_after(self.pool.submit, self.work, task)

    def work(self, task: TaskManager) -> None:
        self.up(task)
        self.ledger.note("spawn")
        self.ledger.leave(task.node_id)

    def fail(self, node: str) -> None:
        """A spawn that fails: the hook saves under the lock that is still held."""

        def refuse() -> Future[None]:
            raise LookupError

        def hook(exc: Exception, task: TaskManager) -> None:
            self.up(task)
            self.ledger.leave(node)

        try:
            with self.hold(node) as task:
                task.set_spawn_error_hook(hook, task)
                task.spawn_after(refuse)
        except LookupError:
            self.ledger.note("fail")


@pytest.fixture
def houses(site: Site) -> list[ConductorRuntime]:
    fast = {"node_locked_retry_interval": 1}
    return [site.runtime, *(site.another_host(f"host-{n}", **fast) for n in range(1, HOSTS))]


def test_locks_hold_whatever_is_done_with_them(
    site: Site, houses: list[ConductorRuntime], seed: int
):
    nodes = [site.enrol(provision_state="available") for _ in range(NODES)]
    ledger = Ledger()
    until = time.monotonic() + LASTS_S
    walkers = [
        Walker(houses[n % HOSTS], site, nodes, ledger, f"{seed}-{n}") for n in range(THREADS)
    ]
    probes.run_all([threading.Thread(target=walker.run, args=(until,)) for walker in walkers])

    assert ledger.wrong == []
    assert ledger.longest_s < IN_TIME_S
    for node in nodes:
        found = site.node(node)
        assert found.reservation is None
        assert found.provision_state == "available"
        assert found.extra.get("count", 0) == ledger.counted[node], "an update was lost"
        assert len(site.history(node)) == ledger.moves[node]
    assert [runtime.node_locks.in_use for runtime in houses] == [0] * HOSTS
    assert [runtime.node_locks.waiting for runtime in houses] == [0] * HOSTS
    expected = {"look", "count", "move", "at once", "upgrade", "downgrade", "spawn", "fail"}
    assert expected <= set(ledger.did), f"the test did not get round to everything: {ledger.did}"


def test_every_waiter_of_one_process_is_served(site: Site):
    """32 who agreed to wait all get the node, one after the other."""
    node = site.enrol(provision_state="available")
    site.patience_s = 30
    inside: list[int] = []

    def take(number: int) -> None:
        with site.acquire(node) as task:
            task.node.extra["count"] = task.node.extra.get("count", 0) + 1
            task.save()
            inside.append(number)

    probes.run_all([threading.Thread(target=take, args=(n,)) for n in range(THREADS)])
    assert sorted(inside) == list(range(THREADS))
    assert site.node(node).extra == {"count": THREADS}
