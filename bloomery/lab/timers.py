"""Durations, and calls at a later time: one thread, however many wait.

timers = Timers(pool.submit)
timers.start()
timers.call_in(draw(Distribution("uniform", 2, 3), random.Random()), work)
"""

from __future__ import annotations

import random
import sched
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias


class Distribution(NamedTuple):
    """``uniform``: least and most; ``lognormal``: median and sigma."""

    kind: str
    first: float
    second: float


Seconds: TypeAlias = float | Distribution


def draw(seconds: Seconds, source: random.Random) -> float:
    """Return one value."""
    if not isinstance(seconds, Distribution):
        return seconds
    if seconds.kind == "uniform":
        return source.uniform(seconds.first, seconds.second)
    return seconds.first * source.lognormvariate(0, seconds.second)


class Timers:
    """``submit`` runs a call in another thread; ``clock`` tells monotonic seconds."""

    def __init__(
        self, submit: Callable[[Callable[[], None]], Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._submit, self.now, self._waiting = submit, clock, sched.scheduler(clock)
        self._wake, self._stopping = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="lab-timers", daemon=True)

    def call_in(self, seconds: float, work: Callable[[], None]) -> None:
        self._waiting.enter(seconds, 0, self._submit, (work,))
        self._wake.set()

    def run_due(self) -> float | None:
        """Submit the calls that are due; return the seconds until the next one, or None."""
        return self._waiting.run(blocking=False)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._wake.clear()
            if self._stopping:
                return
            self._wake.wait(self.run_due())
