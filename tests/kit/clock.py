"""A clock that a test turns, and timers that go off when it does."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any


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
