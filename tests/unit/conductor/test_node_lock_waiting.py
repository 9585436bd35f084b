"""Threads of the API that wait: for nodes and for BMCs together, no more than half of them."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor.manager import ConductorManager
from bloomery.conductor.node_lock import NodeLocks
from bloomery.conductor.runtime import Context
from tests.kit.waiting import wait_for


@pytest.fixture
def pool() -> Any:
    with ThreadPoolExecutor(8) as made:
        yield made


@pytest.fixture
def runtime(site):
    """A house with two places."""
    return dataclasses.replace(site.runtime, node_locks=NodeLocks(8, 2))


class SlowManagement:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = threading.Event()

    def validate(self, task: Any) -> None:
        """All is well."""

    def get_boot_device(self, task: Any) -> dict[str, Any]:
        self.asked.append(threading.current_thread().name)
        assert self.may_answer.wait(20), "nobody let the BMC answer"
        return {"boot_device": "pxe", "persistent": True}


@pytest.fixture
def bmc(runtime, monkeypatch) -> SlowManagement:
    slow = SlowManagement()
    interface = runtime.registry.interfaces["management"]["fake"]
    for name in ("validate", "get_boot_device"):
        monkeypatch.setattr(interface, name, getattr(slow, name), raising=False)
    return slow


def test_waits_for_bmcs_and_for_nodes_share_the_places(site, runtime, bmc, pool) -> None:
    manager = ConductorManager(runtime)
    asked, busy, another = (site.enrol() for _ in range(3))
    assert runtime.node_locks.enter(busy, 0)
    first = pool.submit(manager.get_boot_device, site.request(), asked)
    wait_for(lambda: bmc.asked, "the BMC to be asked")
    second = pool.submit(manager.set_maintenance, site.request(wait_s=20), busy, True, None)
    wait_for(lambda: runtime.node_locks.places.in_use == 2, "both to wait")
    with pytest.raises(errors.ApiThreadsBusy, match=r"get boot device of node .*\[api\]threads"):
        manager.get_boot_device(site.request(), another)
    with pytest.raises(errors.NodeLocked):
        manager.set_maintenance(site.request(wait_s=20), busy, False, None)
    manager.set_maintenance(site.request(), another, True, None)  # who need not wait is served
    bmc.may_answer.set()
    runtime.node_locks.leave(busy)
    assert first.result(timeout=10)["boot_device"] == "pxe"
    second.result(timeout=10)
    assert (runtime.node_locks.places.in_use, runtime.node_locks.in_use) == (0, 0)
    assert manager.get_boot_device(site.request(), another)["persistent"] is True


def test_a_bmc_is_asked_by_a_worker_and_a_full_pool_is_told_at_once(site, runtime, bmc) -> None:
    manager, node = ConductorManager(runtime), site.enrol()
    bmc.may_answer.set()
    manager.get_boot_device(site.request(), node)
    assert bmc.asked[0] != threading.current_thread().name
    site.service.periodics.stop()
    wait_for(lambda: not runtime.workers.busy, "the workers to be free")
    slots = [runtime.workers.slot() for _ in range(runtime.conf.conductor.workers_pool_size)]
    with pytest.raises(errors.NoFreeConductorWorker):
        manager.get_boot_device(site.request(), node)
    for slot in slots:
        slot.__exit__(None, None, None)
    assert (runtime.node_locks.places.in_use, runtime.node_locks.in_use, len(bmc.asked)) == (
        0,
        0,
        1,
    )


def test_who_waits_for_another_process_takes_a_place(site, runtime) -> None:
    """The holder is another process, so that nobody queues at a gate here."""
    node = site.enrol()
    context = Context(runtime=runtime, request=site.request(wait_s=20))
    assert runtime.node_locks.places.take()
    seen: list[int] = []

    def attempt() -> None:
        seen.append(runtime.node_locks.places.in_use)
        if len(seen) < 2:
            raise errors.NodeLocked(node=node, holder="somebody")

    context.wait_in_queue(node, attempt)
    runtime.node_locks.leave(node)
    assert seen == [1, 2]
    assert runtime.node_locks.places.take()
    seen.clear()
    with pytest.raises(errors.NodeLocked):
        context.wait_in_queue(node, attempt)
    runtime.node_locks.places.give_back()
    runtime.node_locks.places.give_back()
    assert (runtime.node_locks.places.in_use, runtime.node_locks.in_use, len(seen)) == (0, 0, 1)
