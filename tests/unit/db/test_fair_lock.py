from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings
from hypothesis import strategies as st

from bloomery.db.fair_lock import FairLock

LONG_S = 20.0


def wait_until(condition: Callable[[], bool]) -> None:
    tick = threading.Event()
    for _ in range(20_000):
        if condition():
            return
        tick.wait(0.001)
    raise AssertionError("the condition never came true")


def queue_up(gate: FairLock, count: int, work: Callable[[int], None]) -> list[threading.Thread]:
    """Start ``count`` threads that wait at a held gate, one after the other."""

    def pass_through(number: int) -> None:
        assert gate.enter(LONG_S)
        work(number)
        gate.leave()

    threads = []
    for number in range(count):
        threads.append(threading.Thread(target=pass_through, args=(number,)))
        threads[-1].start()
        wait_until(lambda: gate.waiting == len(threads))
    return threads


def test_a_new_gate_is_idle_and_lets_the_first_one_in():
    gate = FairLock()
    assert gate.idle
    assert gate.enter(0)
    assert not gate.idle


def test_those_who_wait_are_served_in_the_order_of_their_coming():
    gate = FairLock()
    served: list[int] = []
    gate.enter(0)
    threads = queue_up(gate, 16, served.append)
    gate.leave()
    for thread in threads:
        thread.join(LONG_S)
    assert served == list(range(16))
    assert gate.idle


def test_who_runs_out_of_time_is_told_so_and_leaves_the_queue():
    gate = FairLock()
    gate.enter(0)
    assert not gate.enter(0.01)
    assert gate.waiting == 0


def test_the_next_one_is_served_after_another_gave_up():
    gate = FairLock()
    served: list[int] = []
    gate.enter(0)
    assert not gate.enter(0)
    (thread,) = queue_up(gate, 1, served.append)
    gate.leave()
    thread.join(LONG_S)
    assert served == [0]


def test_who_is_handed_the_gate_while_giving_up_holds_it():
    gate = FairLock()
    gate.enter(0)
    turn = threading.Lock()
    turn.acquire()
    gate._queue.append(turn)
    gate.leave()
    assert gate._give_up(turn)
    assert not gate.idle
    gate.leave()
    assert gate.idle


@settings(max_examples=20, deadline=None)
@given(
    patience=st.lists(st.sampled_from([0, 0.0001, 0.001, 1]), min_size=2, max_size=24),
    turns=st.integers(1, 20),
)
def test_never_two_inside_and_nobody_keeps_the_gate_under_any_hand_over(
    patience: list[float], turns: int
):
    gate = FairLock()
    inside = 0
    most_inside = 0

    def come_and_go(timeout_s: float) -> None:
        nonlocal inside, most_inside
        for _ in range(turns):
            if gate.enter(timeout_s):
                inside += 1
                most_inside = max(most_inside, inside)
                inside -= 1
                gate.leave()

    with ThreadPoolExecutor(len(patience)) as pool:
        list(pool.map(come_and_go, patience))
    assert most_inside <= 1
    assert gate.idle
    assert gate.enter(0)
