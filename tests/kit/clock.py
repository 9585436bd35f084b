"""A clock that a test turns, and timers that go off when it does."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

from bloomery.orchestration.simulation import SimulatedClock


class HandClock:
    """``clock()`` is the time; ``after`` is that of ``Timers``."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._due: list[tuple[float, int, Callable[..., Any], tuple[Any, ...]]] = []
        self._order = itertools.count()

    def __call__(self) -> float:
        return self.now

    @property
    def is_armed(self) -> bool:
        return bool(self._due)

    def after(self, delay_s: float, call: Callable[..., Any], *args: Any) -> None:
        heapq.heappush(self._due, (self.now + delay_s, next(self._order), call, args))

    def turn_to_next(self) -> None:
        """Turn the clock to what is due next, and let all go off that is due then."""
        self.turn(self._due[0][0] - self.now)

    def turn(self, seconds: float) -> None:
        """Turn the clock; each timer goes off at its own time."""
        until = self.now + seconds
        while self._due and self._due[0][0] <= until:
            self.now, _, call, args = heapq.heappop(self._due)
            call(*args)
        self.now = until


class EnteredClock(SimulatedClock):
    """The clock of a simulation in which things happen from outside, at moments that are known."""

    def __init__(self) -> None:
        super().__init__()
        self._entered: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()

    def call_at(self, at_s: float, call: Callable[[], object]) -> None:
        heapq.heappush(self._entered, (at_s, next(self._order), call))

    def wait(self, until_s: float | None) -> None:
        """Jump to what is entered next, or to ``until_s`` if that is earlier."""
        if self._entered and (until_s is None or self._entered[0][0] <= until_s):
            at_s, _, call = heapq.heappop(self._entered)
            super().wait(at_s)
            call()
        else:
            super().wait(until_s)
