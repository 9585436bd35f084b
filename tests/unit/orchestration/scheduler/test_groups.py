from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

from bloomery.orchestration import graph
from bloomery.orchestration.graph import Graph
from bloomery.orchestration.scheduler import (
    After,
    DependencyTaskGroup,
    PollingTaskGroup,
    Simulated,
    TaskRunner,
    Timeout,
)


class Trouble(Exception):
    pass


# The graph and the tasks of the vectors that Heat was run with.
DIAMOND = (("b", "a"), ("c", "a"), ("d", "b"), ("d", "c"), ("e", None))
YIELDS = {"a": 1, "b": 3, "c": 1, "d": 1, "e": 4}


class Work:
    """Tells what tasks did: (key, number of the step), "end" or "closed"."""

    def __init__(self, yields: dict[str, int] = YIELDS, failing: str = ""):
        self.yields, self.failing = yields, failing
        self.told: list[tuple[str, Any]] = []

    def task(self, key: str):
        try:
            for number in range(self.yields[key]):
                self.told.append((key, number))
                yield
            if key in self.failing:
                raise Trouble(key)
            self.told.append((key, "end"))
        except GeneratorExit:
            self.told.append((key, "closed"))
            raise

    def keys(self, what: Any) -> list[str]:
        return [key for key, told in self.told if told == what]


@pytest.fixture
def clock():
    return Simulated()


@pytest.fixture
def runs(clock: Simulated) -> Callable[..., None]:
    def run(work: Work, edges: Any = DIAMOND, **options: Any) -> None:
        group = DependencyTaskGroup(Graph(edges), work.task, clock=clock, **options)
        TaskRunner(group, clock=clock).call()

    return run


# ----------------------------------------------------------------------- vectors of Heat


def test_each_key_runs_after_what_it_requires(runs: Callable[..., None]):
    work = Work()
    runs(work)
    assert work.keys(0) == ["a", "e", "b", "c", "d"]
    assert sorted(work.keys("end")) == ["a", "b", "c", "d", "e"]


def test_in_reverse_d_and_e_come_first_then_b_and_c_and_a_last(runs: Callable[..., None]):
    work = Work()
    runs(work, reverse=True)
    assert work.keys(0) == ["d", "e", "b", "c", "a"]


def test_without_grace_an_error_ends_everything_in_its_round(runs: Callable[..., None]):
    work = Work(failing="c")
    with pytest.raises(Trouble) as told:
        runs(work)
    assert told.value.args == ("c",)
    assert work.keys("end") == ["a"]
    assert sorted(work.keys("closed")) == ["b", "e"]
    assert work.keys(0) == ["a", "e", "b", "c"]


def test_with_grace_what_runs_ends_and_nothing_begins(runs: Callable[..., None]):
    work = Work(failing="c")
    with pytest.raises(Trouble) as told:
        runs(work, error_wait_time=100)
    assert told.value.args == ("c",)
    assert sorted(work.keys("end")) == ["a", "b", "e"]
    assert "d" not in work.keys(0)


def test_aggregated_what_does_not_require_the_failed_key_goes_on(runs: Callable[..., None]):
    work = Work(failing="c")
    with pytest.raises(ExceptionGroup) as told:
        runs(work, aggregate_exceptions=True)
    assert [exc.args for exc in told.value.exceptions] == [("c",)]
    assert sorted(work.keys("end")) == ["a", "b", "e"]
    assert "d" not in work.keys(0)


# ------------------------------------------------------------------------------ order and turns


def test_keys_that_can_be_called_are_their_own_tasks(clock: Simulated):
    told: list[str] = []
    keys = {name: (lambda name=name: told.append(name)) for name in "abc"}
    edges = [(keys["a"], keys["b"]), (keys["b"], keys["c"])]
    TaskRunner(DependencyTaskGroup(Graph(edges), clock=clock), clock=clock).start()
    assert told == ["c", "b", "a"]


def test_keys_without_an_order_are_refused(clock: Simulated):
    with pytest.raises(graph.Cycle, match="a -> b -> a"):
        DependencyTaskGroup(Graph([("a", "b"), ("b", "a")]), clock=clock)


def test_an_empty_group_is_done_at_once(clock: Simulated):
    runner = TaskRunner(DependencyTaskGroup(Graph[str](), clock=clock), clock=clock)
    runner.start()
    assert runner.done()


def test_a_group_can_run_again(runs: Callable[..., None], clock: Simulated):
    work = Work()
    group = DependencyTaskGroup(Graph(DIAMOND), work.task, clock=clock)
    TaskRunner(group, clock=clock).call()
    once = list(work.told)
    TaskRunner(group, clock=clock).call()
    assert work.told == once * 2


def test_dependants_begin_in_the_turn_in_which_the_last_requirement_ended(clock: Simulated):
    work = Work({"a": 1, "b": 1})
    group = DependencyTaskGroup(Graph([("b", "a")]), work.task, clock=clock)
    runner = TaskRunner(group, clock=clock)
    runner.start()
    assert work.told == [("a", 0)]
    assert not runner.step()
    assert work.told == [("a", 0), ("a", "end"), ("b", 0)]
    assert runner.step()


def test_a_dependant_does_not_begin_in_the_round_in_which_another_task_fails(
    runs: Callable[..., None],
):
    work = Work({"a": 1, "c": 1, "b": 1}, failing="c")
    with pytest.raises(Trouble):
        runs(work, [("b", "a"), ("c", None)], error_wait_time=100)
    assert "b" not in work.keys(0)


class Slow(Simulated):
    """Every look at the clock takes a tenth of a second."""

    def now(self) -> float:
        self.wait(super().now() + 0.1)
        return super().now()


def test_slow_starts_are_spread_over_turns_so_that_messages_are_seen_between():
    clock, between = Slow(), []
    told: list[int] = []
    group = DependencyTaskGroup(Graph((key, None) for key in range(50)), told.append, clock=clock)
    TaskRunner(group, clock=clock).call(progress_callback=lambda: between.append(len(told)))
    assert told == list(range(50))
    assert len(between) > 5


def test_a_group_waits_for_the_first_that_is_due(clock: Simulated):
    turns: list[float] = []

    def task(seconds: int):
        yield After(seconds)

    TaskRunner(
        DependencyTaskGroup(Graph([(60, None), (10, None), (35, 10)]), task, clock=clock),
        clock=clock,
    ).call(progress_callback=lambda: turns.append(clock.now()))
    assert turns == [10, 45, 60]


def test_a_task_that_polls_keeps_the_group_awake(clock: Simulated):
    turns: list[float] = []

    def task(asked: Any):
        yield asked

    group = DependencyTaskGroup(Graph([(3, None), (After(60), None)]), task, clock=clock)
    TaskRunner(group, clock=clock).call(progress_callback=lambda: turns.append(clock.now()))
    assert turns == [0, 1, 2, 60]


def test_groups_stand_inside_groups(clock: Simulated):
    told: list[str] = []

    def inner(key: str):
        yield After(10)
        told.append(key)

    def outer(key: str):
        group = DependencyTaskGroup(Graph([(f"{key}2", f"{key}1")]), inner, clock=clock)
        yield from TaskRunner(group, clock=clock).as_task()

    TaskRunner(DependencyTaskGroup(Graph([("y", "x")]), outer, clock=clock), clock=clock).call()
    assert told == ["x1", "x2", "y1", "y2"]
    assert clock.now() == 40


@pytest.mark.parametrize(
    ("name", "shown"),
    [("create web", "DependencyTaskGroup(create web)"),
     (None, "DependencyTaskGroup((task from work) 2 keys)")],
)  # fmt: skip
def test_a_group_has_a_name(clock: Simulated, name: str | None, shown: str):
    class Named(Work):
        def __str__(self) -> str:
            return "work"

    group = DependencyTaskGroup(Graph([("b", "a")]), Named().task, clock=clock, name=name)
    assert str(group) == shown
    assert str(TaskRunner(group, clock=clock)) == f"Task {shown}"


# --------------------------------------------------------------------------------- when it fails


def test_grace_ends_and_what_still_runs_is_closed(runs: Callable[..., None], clock: Simulated):
    work = Work({"a": 2, "b": 50}, failing="a")
    with pytest.raises(Trouble):
        runs(work, [("a", None), ("b", None)], error_wait_time=10)
    assert work.keys("closed") == ["b"]
    assert clock.now() == 11


def test_each_key_has_its_own_grace_and_may_refuse_it(runs: Callable[..., None]):
    work = Work({"a": 2, "b": 5, "c": 5, "d": 50}, failing="a")
    grace = {"a": 1, "b": 20, "c": None, "d": 10}
    with pytest.raises(Trouble):
        runs(work, [(key, None) for key in grace], error_wait_time=grace.get)
    assert (work.keys("end"), work.keys("closed")) == (["b"], ["c", "d"])


def test_the_first_error_is_raised_and_the_others_are_noted_in_it(runs: Callable[..., None]):
    work = Work({"a": 2, "b": 3, "c": 4}, failing="abc")
    with pytest.raises(Trouble) as told:
        runs(work, [(key, None) for key in "abc"], error_wait_time=100)
    assert told.value.args == ("a",)
    assert told.value.__notes__ == ["besides: Trouble('b')", "besides: Trouble('c')"]
    assert "besides: Trouble('b')" in "".join(traceback.format_exception(told.value))


def test_grace_is_given_once_however_many_fail(clock: Simulated):
    asked: list[int] = []

    def task(key: int) -> Any:
        yield
        raise ValueError(key)

    def grace_s(key: int) -> float:
        asked.append(key)
        return 100.0

    group = DependencyTaskGroup(
        Graph((key, None) for key in range(50)), task, clock=clock, error_wait_time=grace_s
    )
    with pytest.raises(ValueError, match=r"^0"):
        TaskRunner(group, clock=clock).call()
    assert len(asked) == len(set(asked))


def test_a_second_error_does_not_lengthen_the_grace(runs: Callable[..., None], clock: Simulated):
    work = Work({"a": 2, "b": 9, "c": 99}, failing="ab")
    with pytest.raises(Trouble):
        runs(work, [(key, None) for key in "abc"], error_wait_time=10)
    assert clock.now() == 11


def test_an_error_of_a_start_counts_as_any(clock: Simulated):
    told = []

    def task(key: str) -> None:
        if key == "b":
            raise Trouble
        told.append(key)

    group = DependencyTaskGroup(Graph((key, None) for key in "abc"), task, clock=clock)
    with pytest.raises(Trouble):
        TaskRunner(group, clock=clock).start()
    assert told == ["a"]


def test_aggregated_errors_are_all_held(runs: Callable[..., None]):
    work = Work(dict.fromkeys("abcdef", 1), failing="bd")
    edges = [("b", "a"), ("c", "b"), ("d", None), ("e", "d"), ("e", "c"), ("f", "a")]
    with pytest.raises(ExceptionGroup, match="failed") as told:
        runs(work, edges, aggregate_exceptions=True)
    assert sorted(exc.args[0] for exc in told.value.exceptions) == ["b", "d"]
    assert work.keys("end") == ["a", "f"]


def awkward(key: str):
    """Of two tasks the first fails; the second fails too when it is closed."""
    try:
        yield
        if key == "a":
            raise Trouble(key)
        yield
    except GeneratorExit:
        raise Trouble(f"closing {key}") from None


def test_who_fails_at_being_closed_does_not_keep_others_open(clock: Simulated):
    group = DependencyTaskGroup(Graph((key, None) for key in "abc"), awkward, clock=clock)
    with pytest.raises(Trouble) as told:
        TaskRunner(group, clock=clock).call()
    assert told.value.args == ("a",)
    assert told.value.__notes__ == [
        "besides: Trouble('closing b')",
        "besides: Trouble('closing c')",
    ]


def test_what_is_thrown_in_from_outside_is_raised_at_the_end(clock: Simulated):
    work = Work({"a": 3, "b": 3, "c": 1}, failing="b")
    group = DependencyTaskGroup(
        Graph([("a", None), ("b", None), ("c", "a")]), work.task, clock=clock, error_wait_time=100
    )
    steps = group()
    next(steps)
    steps.throw(KeyError("first"))
    steps.throw(KeyError("last"))
    with pytest.raises(KeyError) as told:
        next(steps)
    assert told.value.args == ("last",)
    assert told.value.__notes__ == ["besides: Trouble('b')", "besides: KeyError('first')"]
    assert work.keys("end") == ["a"]
    assert work.keys(0) == ["a", "b"]


def test_what_is_thrown_in_is_aggregated_too(clock: Simulated):
    work = Work({"a": 3, "b": 1})
    group = DependencyTaskGroup(
        Graph([("b", "a")]), work.task, clock=clock, aggregate_exceptions=True
    )
    steps = group()
    next(steps)
    with pytest.raises(ExceptionGroup) as told:
        steps.throw(KeyError("outside"))
    assert [type(exc) for exc in told.value.exceptions] == [KeyError]
    assert work.told == [("a", 0), ("a", "closed")]


def test_a_time_out_cancels_all_without_grace(clock: Simulated):
    work = Work({"a": 50, "b": 50})
    group = DependencyTaskGroup(
        Graph([("a", None), ("b", None)]), work.task, clock=clock, error_wait_time=100
    )
    with pytest.raises(Timeout):
        TaskRunner(group, clock=clock).call(timeout=5)
    assert work.keys("closed") == ["a", "b"]
    assert clock.now() == 5


def test_an_extraordinary_exception_of_a_task_cancels_all_without_grace(clock: Simulated):
    work = Work({"b": 50})

    def task(key: str):
        if key == "a":
            yield
            raise KeyboardInterrupt
        yield from work.task(key)

    group = DependencyTaskGroup(
        Graph([("a", None), ("b", None)]), task, clock=clock, error_wait_time=100
    )
    with pytest.raises(KeyboardInterrupt):
        TaskRunner(group, clock=clock).call()
    assert work.keys("closed") == ["b"]


def test_what_fails_when_all_is_cancelled_is_noted(clock: Simulated):
    group = DependencyTaskGroup(Graph([("b", None)]), awkward, clock=clock)
    runner = TaskRunner(group, clock=clock)
    with pytest.raises(Timeout) as told:
        runner.call(timeout=0.5)
    assert told.value.__notes__ == ["besides: Trouble('closing b')"]


def test_closing_a_group_closes_its_tasks(clock: Simulated):
    work = Work()
    runner = TaskRunner(DependencyTaskGroup(Graph(DIAMOND), work.task, clock=clock), clock=clock)
    runner.start()
    runner.cancel()
    assert work.told == [("a", 0), ("e", 0), ("a", "closed"), ("e", "closed")]


# ------------------------------------------------------------------------------- a polling group


def test_polled_tasks_begin_in_order_and_take_turns(clock: Simulated):
    work = Work({"a": 1, "b": 2})
    calls = [(("a",), {}), ((), {"key": "b"})]
    group = PollingTaskGroup.from_task_with_args(work.task, calls, clock=clock)
    TaskRunner(group, clock=clock).call()
    assert work.told == [("a", 0), ("b", 0), ("a", "end"), ("b", 1), ("b", "end")]


def test_a_polled_task_that_fails_cancels_the_rest(clock: Simulated):
    work = Work({"a": 9, "b": 1, "c": 9}, failing="b")
    calls = [((key,), {}) for key in "abc"]
    group = PollingTaskGroup.from_task_with_args(work.task, calls, clock=clock)
    with pytest.raises(Trouble):
        TaskRunner(group, clock=clock).call()
    assert work.told[-2:] == [("a", "closed"), ("c", "closed")]


def test_a_polled_task_that_fails_at_its_start_keeps_the_later_ones_from_starting(
    clock: Simulated,
):
    told = []

    def fail() -> None:
        raise Trouble

    group = PollingTaskGroup([lambda: told.append(1), fail, lambda: told.append(2)], clock=clock)
    with pytest.raises(Trouble):
        TaskRunner(group, clock=clock).start()
    assert told == [1]


def test_a_polling_group_waits_for_the_first_that_is_due(clock: Simulated):
    turns: list[float] = []

    def task(seconds: int):
        yield After(seconds)

    group = PollingTaskGroup.from_task_with_args(task, [((5,), {}), ((9,), {})], clock=clock)
    TaskRunner(group, clock=clock).call(progress_callback=lambda: turns.append(clock.now()))
    assert turns == [5, 9]


def test_a_polling_group_has_a_name(clock: Simulated):
    assert str(PollingTaskGroup([awkward, awkward], clock=clock)) == (
        "PollingTaskGroup(awkward, awkward)"
    )
    assert str(PollingTaskGroup([awkward], clock=clock, name="pair")) == "PollingTaskGroup(pair)"
    calls = [((key,), {}) for key in "ab"]
    assert str(PollingTaskGroup.from_task_with_args(awkward, calls, clock=clock)) == (
        "PollingTaskGroup(awkward)"
    )
