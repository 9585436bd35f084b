from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bloomery.conductor.node_lock import NodeLocks, TooManyWaiting
from tests.kit.waiting import wait_for


@pytest.fixture
def node_locks() -> NodeLocks:
    return NodeLocks(max_waiters_per_node=2, max_waiters=3)


@pytest.fixture
def pool() -> Any:
    with ThreadPoolExecutor(8) as made:
        yield made


def queue_up(
    node_locks: NodeLocks, pool: ThreadPoolExecutor, node: str, timeout_s: float = 5
) -> Any:
    before = node_locks.waiting
    future = pool.submit(node_locks.enter, node, timeout_s)
    wait_for(lambda: node_locks.waiting > before or future.done(), "a waiter")
    return future


def test_nodes_have_gates_of_their_own(node_locks: NodeLocks):
    assert node_locks.enter("a", 0)
    assert node_locks.enter("b", 0)
    assert not node_locks.enter("a", 0)
    assert (node_locks.in_use, node_locks.waiting) == (2, 0)


def test_a_lock_that_nobody_uses_takes_no_memory(node_locks: NodeLocks):
    for number in range(100):
        assert node_locks.enter(str(number), 0)
        node_locks.leave(str(number))
    assert node_locks._locks == {}
    assert node_locks._users == {}


def test_the_leaver_wakes_who_waits(node_locks: NodeLocks, pool):
    assert node_locks.enter("a", 0)
    waiter = queue_up(node_locks, pool, "a")
    node_locks.leave("a")
    assert waiter.result(timeout=5)
    assert (node_locks.in_use, node_locks.waiting) == (1, 0)
    node_locks.leave("a")
    assert node_locks.in_use == 0


def test_time_is_up_after_the_time_that_was_agreed(node_locks: NodeLocks):
    assert node_locks.enter("a", 0)
    began = time.monotonic()
    assert not node_locks.enter("a", 0.05)
    assert 0.05 <= time.monotonic() - began < 2
    assert node_locks.waiting == 0
    node_locks.leave("a")
    assert node_locks.enter("a", 0)


def test_so_many_may_wait_for_one_node_and_the_next_is_told_at_once(node_locks: NodeLocks, pool):
    assert node_locks.enter("a", 0)
    waiters = [queue_up(node_locks, pool, "a") for _ in range(2)]
    began = time.monotonic()
    with pytest.raises(TooManyWaiting):
        node_locks.enter("a", 5)
    assert time.monotonic() - began < 1
    assert node_locks.enter("b", 0)
    for _ in range(3):
        node_locks.leave("a")
    assert all(waiter.result(timeout=5) for waiter in waiters)


def test_so_many_may_wait_in_all(node_locks: NodeLocks, pool):
    for node in "abc":
        assert node_locks.enter(node, 0)
    waiters = [queue_up(node_locks, pool, node) for node in "aab"]
    with pytest.raises(TooManyWaiting):
        node_locks.enter("c", 5)
    assert node_locks.enter("d", 0), "who need not wait is let in"
    for node in "aab":
        node_locks.leave(node)
    assert all(waiter.result(timeout=5) for waiter in waiters)


def test_the_patient_may_always_wait(node_locks: NodeLocks, pool):
    assert node_locks.enter("a", 0)
    crowd = [queue_up(node_locks, pool, "a") for _ in range(2)]
    patient = pool.submit(node_locks.enter, "a", threading.TIMEOUT_MAX, patient=True)
    wait_for(lambda: node_locks.waiting == 3, "the patient one to wait")
    for _ in range(3):
        node_locks.leave("a")
    assert patient.result(timeout=5)
    assert all(waiter.result(timeout=5) for waiter in crowd)


def test_who_is_in_place_already_takes_no_other_place(node_locks: NodeLocks, pool):
    for node in "abcd":
        assert node_locks.enter(node, 0)
    crowd = [queue_up(node_locks, pool, node) for node in "abc"]
    assert node_locks.places.in_use == 3
    with pytest.raises(TooManyWaiting):
        node_locks.enter("d", 5)
    placed = pool.submit(node_locks.enter, "d", 5, in_place=True)
    wait_for(lambda: node_locks.waiting == 4, "the one in place to wait")
    assert node_locks.places.in_use == 3
    for node in "abcd":
        node_locks.leave(node)
    assert all(waiter.result(timeout=5) for waiter in [*crowd, placed])
    assert node_locks.places.in_use == 0


def test_the_patient_take_no_place(node_locks: NodeLocks, pool):
    assert node_locks.enter("a", 0)
    patient = [pool.submit(node_locks.enter, "a", 20, patient=True) for _ in range(4)]
    wait_for(lambda: node_locks.waiting == 4, "the patient ones to wait")
    assert node_locks.places.in_use == 0
    for _ in range(5):
        node_locks.leave("a")
    assert all(waiter.result(timeout=5) for waiter in patient)


def test_one_at_a_time_whatever_happens(node_locks: NodeLocks):
    """Many come and go, some give up: never two inside, and nothing is left behind."""
    node_locks = NodeLocks(100, 100)
    inside: list[int] = []
    overlaps: list[int] = []

    def come_and_go(number: int) -> None:
        for turn in range(60):
            if node_locks.enter("a", 0.002 if turn % 3 else 1):
                inside.append(number)
                if len(inside) > 1:
                    overlaps.append(number)
                inside.remove(number)
                node_locks.leave("a")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(come_and_go, range(16)))
    assert overlaps == []
    assert (node_locks.in_use, node_locks.waiting, node_locks._locks) == (0, 0, {})
