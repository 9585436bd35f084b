from __future__ import annotations

import math

import pytest

from bloomery.orchestration.scheduler import After, Simulated, Stuck, TaskRunner, Woken


def test_time_jumps_to_what_is_waited_for_and_never_back():
    clock = Simulated(100)
    clock.wait(160)
    clock.wait(130)
    assert clock.now() == 160


def test_entries_are_done_in_the_order_of_their_moments_and_end_the_wait():
    clock, told = Simulated(), []
    for at, name in [(20, "b"), (10, "a"), (20, "c"), (90, "late")]:
        clock.call_at(at, lambda name=name: told.append((clock.now(), name)))
    for _ in range(3):
        clock.wait(50)
    assert told == [(10, "a"), (20, "b"), (20, "c")]
    clock.wait(50)
    assert clock.now() == 50


def test_an_entry_that_lies_behind_is_done_next():
    clock, told = Simulated(50), []
    clock.call_at(10, lambda: told.append(clock.now()))
    clock.wait(60)
    assert told == [50]


def test_a_wake_up_ends_the_next_wait_once():
    clock = Simulated()
    clock.wake()
    clock.wait(10)
    assert clock.now() == 0
    clock.wait(10)
    assert clock.now() == 10


def test_an_entry_that_wakes_ends_one_wait_not_two():
    clock = Simulated()
    clock.call_at(3, clock.wake)
    clock.wait(10)
    clock.wait(10)
    assert clock.now() == 10


def test_waiting_for_nobody_is_told():
    with pytest.raises(Stuck):
        Simulated().wait(None)


def test_a_task_that_nobody_can_wake_is_closed_and_the_caller_told():
    told = []

    def task():
        try:
            yield Woken(lambda: False)
        finally:
            told.append("closed")

    with pytest.raises(Stuck):
        TaskRunner(task, clock=Simulated()).call()
    assert told == ["closed"]


def test_a_task_is_woken_by_what_was_entered():
    clock, inbox = Simulated(), []

    def task():
        yield Woken(inbox.__len__)
        assert clock.now() == 30
        yield After(5)

    clock.call_at(30, lambda: inbox.append("signal"))
    TaskRunner(task, clock=clock).call()
    assert clock.now() == 35


@pytest.mark.parametrize(
    ("wish", "due_at"),
    [
        (After(5), 105),
        (Woken(lambda: 1), -math.inf),
        (Woken(lambda: 0), math.inf),
        (Woken(lambda: 0, timeout_s=7), 107),
    ],
)
def test_a_wish_tells_when_it_is_due(wish: After | Woken, due_at: float):
    assert wish.due_at(100) == due_at
