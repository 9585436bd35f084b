from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bloomery.db.fair_lock import FairLock, Turn

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
    turn = Turn()
    gate._queue.append(turn)
    gate.leave()
    assert gate._give_up(turn)
    assert not gate.idle
    gate.leave()
    assert gate.idle


class Wish(Turn):
    is_errand = True


def test_an_errand_is_done_by_the_holder_and_its_thread_goes_on_without_the_gate():
    gate, wish, ended = FairLock(), Wish(), []
    gate.enter(0)
    thread = threading.Thread(target=lambda: ended.append(gate.enter(LONG_S, wish)))
    thread.start()
    wait_until(lambda: gate.waiting == 1)
    taken = gate.take_errand()
    assert taken is wish
    wish.finish()
    thread.join(LONG_S)
    assert (ended, wish.is_done, gate.waiting, gate.idle) == ([True], True, 0, False)


def test_an_errand_that_was_begun_is_waited_for_whatever_its_thread_has_time_for():
    gate, wish = FairLock(), Wish()
    gate.enter(0)
    gate._queue.append(wish)
    gate.take_errand()
    threading.Timer(0.01, wish.finish).start()
    assert gate._give_up(wish)
    assert wish.is_done


@pytest.mark.parametrize("queue", [[], [Turn, Wish]], ids=["empty", "plain turn first"])
def test_no_errand_is_taken_out_of_its_order(queue: list[type[Turn]]):
    gate = FairLock()
    gate.enter(0)
    gate._queue.extend(kind() for kind in queue)
    assert gate.take_errand() is None
    assert gate.waiting == len(queue)


def test_an_errand_that_nobody_does_gets_the_gate():
    gate = FairLock()
    assert gate.enter(0, Wish())
    wish = Wish()
    gate._queue.append(wish)
    gate.leave()
    assert gate._give_up(wish)
    assert not wish.is_done
    assert not gate.idle


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
