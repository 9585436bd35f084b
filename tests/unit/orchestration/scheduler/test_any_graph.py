"""Whatever the graph, the tasks, the errors and the interruptions: order holds and all ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bloomery.orchestration.graph import Graph
from bloomery.orchestration.scheduler import (
    After,
    DependencyTaskGroup,
    Simulated,
    TaskRunner,
    Timeout,
    Woken,
)


class Trouble(Exception):
    pass


class Interrupted(Exception):
    pass


@dataclass(kw_only=True)
class Case:
    edges: list[tuple[int, int | None]]
    scripts: list[list[Any]]  # what each key's task yields, one after the other
    failing: set[int]
    plain: set[int]  # keys whose task is no generator
    grace: list[float | None]
    reverse: bool
    aggregate: bool
    interrupted_at: int | None  # turn
    timeout_s: float | None
    wait_time: float | None

    began: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)  # in whatever way
    turns: int = 0

    def run(self) -> BaseException | None:
        clock = Simulated()
        group = DependencyTaskGroup(
            Graph(self.edges),
            self.task,
            clock=clock,
            reverse=self.reverse,
            error_wait_time=self.grace.__getitem__,
            aggregate_exceptions=self.aggregate,
        )
        runner = TaskRunner(group, clock=clock)
        try:
            runner.call(self.wait_time, self.timeout_s, self.between)
        except (Exception, Timeout) as exc:  # noqa: BLE001
            return exc
        finally:
            assert runner.done()
        return None

    def between(self) -> None:
        self.turns += 1
        assert self.turns < 1000
        if self.turns == self.interrupted_at:
            raise Interrupted

    def task(self, key: int) -> Any:
        self.began.append(key)
        if key not in self.plain:
            return self.steps(key)
        self.left.append(key)
        return self.end(key)

    def steps(self, key: int) -> Any:
        try:
            yield from self.scripts[key]
            self.end(key)
        finally:
            self.left.append(key)

    def end(self, key: int) -> None:
        if key in self.failing:
            raise Trouble(key)
        self.ended.append(key)

    @property
    def needs(self) -> Graph[int]:
        needs = Graph(self.edges)
        return needs.reverse() if self.reverse else needs


SIZE = 9
KEYS = st.integers(0, SIZE - 1)
EDGES = st.lists(
    st.tuples(KEYS, KEYS).map(lambda pair: (pair[0], min(pair) if pair[0] != min(pair) else None)),
    min_size=1,
    max_size=20,
)
ASKED = st.one_of(
    st.none(),
    st.integers(0, 4),
    st.integers(0, 9).map(After),
    st.just(Woken(lambda: False, timeout_s=3)),
    st.just(Woken(lambda: True)),
)
CASES = st.builds(
    Case,
    edges=EDGES,
    scripts=st.lists(st.lists(ASKED, max_size=4), min_size=SIZE, max_size=SIZE),
    failing=st.sets(KEYS, max_size=2),
    plain=st.sets(KEYS, max_size=3),
    grace=st.lists(st.none() | st.integers(0, 20), min_size=SIZE, max_size=SIZE),
    reverse=st.booleans(),
    aggregate=st.booleans(),
    interrupted_at=st.none() | st.integers(1, 8),
    timeout_s=st.none() | st.integers(1, 20),
    wait_time=st.sampled_from([1, 0.5, 3]),
)


@given(CASES)
def test_each_task_runs_at_most_once_and_after_what_it_requires(case: Case):
    needs = case.needs
    case.run()
    assert len(set(case.began)) == len(case.began)
    assert sorted(case.left) == sorted(case.began)
    for place, key in enumerate(case.began):
        assert set(needs.requires(key)) <= set(case.ended)
        assert set(needs.requires(key)) <= set(case.began[:place])


@given(CASES)
def test_what_is_told_is_what_happened(case: Case):
    exc = case.run()
    if exc is None:
        assert sorted(case.ended) == sorted(case.needs.keys())
    elif isinstance(exc, Timeout):
        assert case.timeout_s is not None
    else:
        told = exc.exceptions if isinstance(exc, ExceptionGroup) else [exc]
        assert isinstance(exc, ExceptionGroup) == case.aggregate
        for each in told:
            assert isinstance(each, Interrupted) or each.args[0] in case.failing - set(case.ended)


@given(CASES)
def test_aggregated_only_what_requires_a_failed_key_does_not_run(case: Case):
    case.aggregate, case.interrupted_at, case.timeout_s = True, None, None
    exc = case.run()
    failed = {each.args[0] for each in exc.exceptions} if exc else set()
    kept = {key for each in failed for key in case.needs.subgraph(each)}
    assert failed == case.failing & set(case.began)
    assert set(case.ended) == set(case.needs.keys()) - kept


@given(CASES)
def test_the_same_case_always_runs_alike(case: Case):
    case.run()
    first = (case.began, case.ended, case.left, case.turns)
    case.began, case.ended, case.left, case.turns = [], [], [], 0
    case.run()
    assert (case.began, case.ended, case.left, case.turns) == first
