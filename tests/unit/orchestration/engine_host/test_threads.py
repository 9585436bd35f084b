"""Groups are stepped when they are due or woken, one worker each; waiting ones cost no thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from bloomery import errors
from bloomery.orchestration.engine_host.threads import NEVER, ThreadGroupManager
from tests.kit.clock import HandClock
from tests.kit.waiting import wait_for


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def groups(clock: HandClock) -> Iterator[ThreadGroupManager]:
    manager = ThreadGroupManager(2, clock=clock)
    yield manager
    manager.stop(grace_s=10)


class Script:
    """A step that returns what it was given, in order, and notes how it was called."""

    def __init__(self, *results: float | None) -> None:
        self.results = list(results)
        self.calls: list[bool] = []

    def __call__(self, woken: bool) -> float | None:
        self.calls.append(woken)
        return self.results.pop(0)


def run_what_is_due(groups: ThreadGroupManager) -> None:
    """One look at the clock, as the thread that watches it takes."""
    with groups._mutex:
        while groups._due and groups._due[0][0] <= groups._clock():
            groups._take_due(groups._clock())


def at_rest(groups: ThreadGroupManager) -> bool:
    with groups._mutex:
        return not groups._running and all(
            group.state.name == "PARKED" for group in groups._groups.values()
        )


def test_a_group_is_stepped_until_it_ends(groups: ThreadGroupManager) -> None:
    step = Script(0.0, 0.0, None)
    assert groups.start("tree", step)
    wait_for(lambda: "tree" not in groups, "its end")
    assert step.calls == [False, False, False]


def test_a_group_that_waits_is_stepped_when_its_time_has_come(
    groups: ThreadGroupManager, clock: HandClock
) -> None:
    step = Script(1060.0, None)
    groups.start("tree", step)
    wait_for(lambda: step.calls and at_rest(groups), "it to wait")
    clock.now = 1059.0
    run_what_is_due(groups)
    assert groups.roots() == ["tree"]
    clock.now = 1060.0
    run_what_is_due(groups)
    wait_for(lambda: "tree" not in groups, "its end")


def test_a_group_that_is_woken_is_stepped_before_its_time(groups: ThreadGroupManager) -> None:
    step = Script(NEVER, None)
    groups.start("tree", step)
    wait_for(lambda: step.calls and at_rest(groups), "it to wait")
    assert groups.wake("tree")
    wait_for(lambda: "tree" not in groups, "its end")
    assert step.calls == [False, True]


def test_news_during_a_step_are_looked_at_by_another_one(groups: ThreadGroupManager) -> None:
    begun, go_on, calls = threading.Event(), threading.Event(), list[bool]()

    def step(woken: bool) -> float | None:
        calls.append(woken)
        begun.set()
        assert go_on.wait(10)
        return NEVER if len(calls) == 1 else None

    groups.start("tree", step)
    assert begun.wait(10)
    assert groups.wake("tree")
    go_on.set()
    wait_for(lambda: "tree" not in groups, "its end")
    assert calls == [False, True]


def test_news_in_the_moment_of_the_end_are_not_lost() -> None:
    late: list[str] = []
    groups = ThreadGroupManager(1, on_late_wake=late.append)

    def step(woken: bool) -> float | None:
        assert groups.wake("tree")
        return None

    groups.start("tree", step)
    wait_for(lambda: late, "the late news")
    assert late == ["tree"]
    groups.stop(grace_s=10)


def test_nobody_is_woken_who_is_not_here(groups: ThreadGroupManager) -> None:
    assert not groups.wake("tree")


def test_a_group_is_never_stepped_by_two(groups: ThreadGroupManager) -> None:
    inside, most, calls = [0], [0], [0]

    def step(woken: bool) -> float | None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        calls[0] += 1
        inside[0] -= 1
        return 0.0 if calls[0] < 200 else None

    groups.start("tree", step)
    while "tree" in groups:
        groups.wake("tree")
    assert most == [1]
    assert not groups.start("tree", step) or calls[0] >= 200


def test_a_step_that_fails_is_tried_again_later_and_later_and_ends_no_worker(
    groups: ThreadGroupManager, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_woken: bool) -> float | None:
        raise ZeroDivisionError

    groups.start("bad", fails)
    for pause_s in (2.0, 4.0, 8.0):
        wait_for(lambda: at_rest(groups), "it to fail")
        with groups._mutex:
            [(due_at, _, group)] = groups._due
        assert due_at == clock.now + pause_s
        assert group.failures
        clock.now = due_at
        run_what_is_due(groups)
    assert "step failed" in caplog.text


def test_a_stop_lets_a_step_end_and_begins_no_other(clock: HandClock) -> None:
    groups = ThreadGroupManager(1, clock=clock)
    begun, go_on, waiting = threading.Event(), threading.Event(), Script(None)

    def slow(_woken: bool) -> float | None:
        begun.set()
        assert go_on.wait(10)
        return 0.0

    groups.start("slow", slow)
    assert begun.wait(10)
    groups.start("waiting", waiting)
    assert not groups.stop(grace_s=0)
    go_on.set()
    assert groups.stop(grace_s=10)
    assert waiting.calls == []
    assert not groups.start("another", waiting)


def test_a_woken_group_leaves_no_trail_in_the_heap(
    groups: ThreadGroupManager, clock: HandClock
) -> None:
    step = Script(*[2000.0 + number for number in range(50)])
    groups.start("tree", step)
    wait_for(lambda: step.calls and at_rest(groups), "it to wait")
    for number in range(1, 50):
        groups.wake("tree")
        wait_for(lambda n=number: len(step.calls) > n and at_rest(groups), "a step")
    assert len(groups._due) == 1
    clock.now = 2049.0 - 0.5  # the entry is older than the time that counts
    run_what_is_due(groups)
    assert len(step.calls) == 50


def test_timers_are_called_again_and_again(groups: ThreadGroupManager, clock: HandClock) -> None:
    calls: list[float] = []
    groups.add_timer("sweep", 60.0, lambda: calls.append(clock.now))
    for _ in range(3):
        wait_for(lambda: at_rest(groups) and groups._due, "the timer to wait")
        clock.now += 60
        run_what_is_due(groups)
    wait_for(lambda: len(calls) == 3, "three calls")
    assert calls == [1060.0, 1120.0, 1180.0]


class Lock:
    root_uuid = "tree"

    def __init__(self, holder: str | None = None) -> None:
        self.holder = holder

    def acquire(self, is_live: Callable[[str], bool]) -> str:
        if self.holder is not None and is_live(self.holder):
            raise errors.Conflict(reason="the stack is busy")
        return "lease"


def test_a_tree_is_worked_on_under_its_lock(groups: ThreadGroupManager) -> None:
    step = Script(0.0, None)
    leases: list[str] = []

    def make(lease: str) -> Script:
        leases.append(lease)
        return step

    assert groups.start_with_lock(Lock("dead"), lambda engine: engine != "dead", make)
    wait_for(lambda: "tree" not in groups, "its end")
    assert leases == ["lease"]
    assert len(step.calls) == 2


def test_a_tree_of_a_live_engine_is_left_alone(groups: ThreadGroupManager) -> None:
    step = Script(None)
    groups.start_with_lock(Lock("alive"), lambda engine: True, lambda lease: step)
    wait_for(lambda: "tree" not in groups, "its end")
    assert step.calls == []


def test_a_group_that_has_failed_a_thousand_times_is_stepped_again(
    groups: ThreadGroupManager, clock: HandClock
) -> None:
    calls: list[bool] = []

    def step(woken: bool) -> float:
        calls.append(woken)
        raise RuntimeError("broken")

    groups.start("web", step)
    wait_for(lambda: bool(calls) and at_rest(groups), "the step to fail")
    groups._groups["web"].failures = 5000
    for count in (2, 3):
        clock.now += 61
        run_what_is_due(groups)
        wait_for(lambda count=count: len(calls) == count and at_rest(groups), "the next one")
