from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bloomery.conductor.gates import GateFull, NodeGates
from tests.kit.waiting import wait_for


@pytest.fixture
def gates() -> NodeGates:
    return NodeGates(max_waiters_per_node=2, max_waiters=3)


@pytest.fixture
def pool() -> Any:
    with ThreadPoolExecutor(8) as made:
        yield made


def queue_up(gates: NodeGates, pool: ThreadPoolExecutor, node: str, timeout_s: float = 5) -> Any:
    before = gates.waiting
    future = pool.submit(gates.enter, node, timeout_s)
    wait_for(lambda: gates.waiting > before or future.done(), "a waiter")
    return future


def test_nodes_have_gates_of_their_own(gates: NodeGates):
    assert gates.enter("a", 0)
    assert gates.enter("b", 0)
    assert not gates.enter("a", 0)
    assert (gates.held, gates.waiting) == (2, 0)


def test_a_gate_that_nobody_uses_takes_no_memory(gates: NodeGates):
    for number in range(100):
        assert gates.enter(str(number), 0)
        gates.leave(str(number))
    assert gates._gates == {}
    assert gates._users == {}


def test_the_leaver_wakes_who_waits(gates: NodeGates, pool):
    assert gates.enter("a", 0)
    waiter = queue_up(gates, pool, "a")
    gates.leave("a")
    assert waiter.result(timeout=5)
    assert (gates.held, gates.waiting) == (1, 0)
    gates.leave("a")
    assert gates.held == 0


def test_time_is_up_after_the_time_that_was_agreed(gates: NodeGates):
    assert gates.enter("a", 0)
    began = time.monotonic()
    assert not gates.enter("a", 0.05)
    assert 0.05 <= time.monotonic() - began < 2
    assert gates.waiting == 0
    gates.leave("a")
    assert gates.enter("a", 0)


def test_so_many_may_wait_for_one_node_and_the_next_is_told_at_once(gates: NodeGates, pool):
    assert gates.enter("a", 0)
    waiters = [queue_up(gates, pool, "a") for _ in range(2)]
    began = time.monotonic()
    with pytest.raises(GateFull):
        gates.enter("a", 5)
    assert time.monotonic() - began < 1
    assert gates.enter("b", 0)
    for _ in range(3):
        gates.leave("a")
    assert all(waiter.result(timeout=5) for waiter in waiters)


def test_so_many_may_wait_in_all(gates: NodeGates, pool):
    for node in "abc":
        assert gates.enter(node, 0)
    waiters = [queue_up(gates, pool, node) for node in "aab"]
    with pytest.raises(GateFull):
        gates.enter("c", 5)
    assert gates.enter("d", 0), "who need not wait is let in"
    for node in "aab":
        gates.leave(node)
    assert all(waiter.result(timeout=5) for waiter in waiters)


def test_the_patient_may_always_wait(gates: NodeGates, pool):
    assert gates.enter("a", 0)
    crowd = [queue_up(gates, pool, "a") for _ in range(2)]
    patient = pool.submit(gates.enter, "a", threading.TIMEOUT_MAX, patient=True)
    wait_for(lambda: gates.waiting == 3, "the patient one to wait")
    for _ in range(3):
        gates.leave("a")
    assert patient.result(timeout=5)
    assert all(waiter.result(timeout=5) for waiter in crowd)


def test_who_is_in_place_already_takes_no_other_place(gates: NodeGates, pool):
    for node in "abcd":
        assert gates.enter(node, 0)
    crowd = [queue_up(gates, pool, node) for node in "abc"]
    assert gates.places.taken == 3
    with pytest.raises(GateFull):
        gates.enter("d", 5)
    placed = pool.submit(gates.enter, "d", 5, in_place=True)
    wait_for(lambda: gates.waiting == 4, "the one in place to wait")
    assert gates.places.taken == 3
    for node in "abcd":
        gates.leave(node)
    assert all(waiter.result(timeout=5) for waiter in [*crowd, placed])
    assert gates.places.taken == 0


def test_the_patient_take_no_place(gates: NodeGates, pool):
    assert gates.enter("a", 0)
    patient = [pool.submit(gates.enter, "a", 20, patient=True) for _ in range(4)]
    wait_for(lambda: gates.waiting == 4, "the patient ones to wait")
    assert gates.places.taken == 0
    for _ in range(5):
        gates.leave("a")
    assert all(waiter.result(timeout=5) for waiter in patient)


def test_one_at_a_time_whatever_happens(gates: NodeGates):
    """Many come and go, some give up: never two inside, and nothing is left behind."""
    gates = NodeGates(100, 100)
    inside: list[int] = []
    overlaps: list[int] = []

    def come_and_go(number: int) -> None:
        for turn in range(60):
            if gates.enter("a", 0.002 if turn % 3 else 1):
                inside.append(number)
                if len(inside) > 1:
                    overlaps.append(number)
                inside.remove(number)
                gates.leave("a")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(come_and_go, range(16)))
    assert overlaps == []
    assert (gates.held, gates.waiting, gates._gates) == (0, 0, {})
