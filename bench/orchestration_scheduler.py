"""What the scheduler of stacks adds to the tasks that it runs: CPU of a turn and of a chain."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench import harness
from bench.harness import Line
from bloomery.orchestration.graph import Graph
from bloomery.orchestration.scheduler import After, DependencyTaskGroup, Simulated, TaskRunner

TASKS = 1000
TURNS = 20  # of which one is told: a single one is too short to measure


def measure() -> Sequence[Line]:
    turn = Line(what=f"scheduler turn over {TASKS} ready tasks", unit="ms", at_most=25,
                ratio=True, synchronous=None)  # fmt: skip
    timed = Line(what=f"scheduler turn over {TASKS} tasks that are due", unit="ms", at_most=50,
                 ratio=True, synchronous=None)  # fmt: skip
    chain = Line(what=f"chain of {TASKS} no-op tasks", unit="ms", at_most=100, ratio=True,
                 synchronous=None)  # fmt: skip
    for _ in harness.rounds():
        floor = _ms(_advance_alone) / TURNS
        turn.add(_ms(_turns(None)) / TURNS, floor)
        timed.add(_ms(_turns(After(1))) / TURNS, floor)
        chain.add(_ms(_chain()), _ms(_call_alone))
    return turn, timed, chain


def _turns(asked: Any) -> Callable[[], None]:
    """A group of endless tasks that have begun, and a function that makes some turns."""
    clock = Simulated()
    tasks = Graph((key, None) for key in range(TASKS))
    group = DependencyTaskGroup(tasks, lambda _key: _endless(asked), clock=clock)
    runner = TaskRunner(group, clock=clock)
    runner.start()

    def turns() -> None:
        for _ in range(TURNS):
            clock.wait(clock.now() + 1)
            runner.step()

    return turns


def _chain() -> Callable[[], None]:
    """Build the graph of a chain, and a function that builds its group and runs it."""
    clock = Simulated()
    chain = Graph((key, key - 1) for key in range(1, TASKS))

    def run() -> None:
        TaskRunner(DependencyTaskGroup(chain, _nothing, clock=clock), clock=clock).call()

    return run


def _advance_alone() -> None:
    """As many generators, advanced as often, with nothing of ours."""
    tasks = [_endless(None) for _ in range(TASKS)]
    for _ in range(TURNS):
        for task in tasks:
            next(task)


def _call_alone() -> None:
    for key in range(TASKS):
        _nothing(key)


def _endless(asked: Any) -> Iterator[Any]:
    while True:
        yield asked


def _nothing(_key: int) -> None: ...


def _ms(function: Callable[[], None]) -> float:
    before = time.process_time()
    function()
    return (time.process_time() - before) * 1000


if __name__ == "__main__":
    harness.main(measure)
