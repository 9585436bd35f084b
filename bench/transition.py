"""One transition: FSM, node row, history, event row and commit, against a bare update and commit.

Both in this process, on files beside each other; the bare one writes a new value each time.
Told twice: by the clock, where the disk has its share, and by CPU alone.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import bare, harness, inside
from bench.harness import Line
from bloomery.conductor import task_manager
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager

COUNT = 300
WAY = ("manage", "provide", "done")  # available, manageable, cleaning and back
_MOST = 4

Clock = Callable[[], float]


def measure() -> Sequence[Line]:
    clock = Line(what="one transition, by the clock", unit="ms", at_most=_MOST, ratio=True)
    cpu = Line(what="one transition, CPU", unit="ms", at_most=_MOST, ratio=True)
    with harness.folder() as folder, inside.conductor(folder / "home") as runtime:
        context = inside.context(runtime)
        uuid = inside.enrol(context, State.AVAILABLE)
        floor = _floor(folder / "floor.sqlite")
        with task_manager.acquire(context, uuid, purpose="measure") as task:
            for _ in harness.rounds():
                raw = _timed(lambda: _update(floor))
                ours = _timed(lambda: _move(task))
                clock.add(ours[0], raw[0])
                cpu.add(ours[1], raw[1])
    return clock, cpu


def _timed(work: Callable[[], None]) -> tuple[float, float]:
    """Return milliseconds per operation by the clock, and of CPU."""
    work()
    before = time.perf_counter(), time.process_time()
    work()
    after = time.perf_counter(), time.process_time()
    return (after[0] - before[0]) * 1000 / COUNT, (after[1] - before[1]) * 1000 / COUNT


def _move(task: TaskManager) -> None:
    for number in range(COUNT):
        task.process_event(WAY[number % len(WAY)])


def bare_commit_ms(path: Path) -> float:
    """Return the CPU of one bare update and commit."""
    path.unlink(missing_ok=True)
    floor = _floor(path)
    return _timed(lambda: _update(floor))[1]


def _floor(path: Path) -> sqlite3.Connection:
    connection = bare.open_raw(path)
    connection.execute("CREATE TABLE floor (id INTEGER PRIMARY KEY, state TEXT)")
    connection.execute("INSERT INTO floor VALUES (1, '')")
    return connection


def _update(connection: sqlite3.Connection) -> None:
    for _ in range(COUNT):
        with bare.committing(connection):
            connection.execute("UPDATE floor SET state = ? WHERE id = 1", (str(time.time_ns()),))


if __name__ == "__main__":
    harness.main(measure)
