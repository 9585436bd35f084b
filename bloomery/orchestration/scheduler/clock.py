"""What time it is, and how it is waited for."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds that only ever grow."""

    def wait(self, until_s: float | None) -> None:
        """Return when ``until_s`` has come, or ``wake`` was called since the last return.

        None waits for a wake-up alone.  To return early is allowed, and costs a turn.
        """

    def wake(self) -> None:
        """End the present wait, or the next one; for whoever brings news, from any thread."""


class Stuck(RuntimeError):
    """Everyone waits to be woken, and nobody is left who could."""


class Simulated:
    """A clock that stands still until it is waited for, and then jumps.

    An hour of time-outs passes in no time, always in the same way.  What is to happen from
    outside is entered beforehand, and wakes whoever waits::

        clock.call_at(30, lambda: inbox.append("signal"))
    """

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s
        self._woken = False
        self._entered: list[tuple[float, int, Callable[[], object]]] = []
        self._number = itertools.count()  # keeps entries of one moment in the order they came

    def now(self) -> float:
        return self._now_s

    def wake(self) -> None:
        self._woken = True

    def call_at(self, at_s: float, action: Callable[[], object]) -> None:
        """Do ``action`` when the clock comes to ``at_s``; one that lies behind is done next."""
        heapq.heappush(self._entered, (at_s, next(self._number), action))

    def wait(self, until_s: float | None) -> None:
        """Jump to ``until_s`` or to the next entry.  Raises Stuck when there is neither."""
        if self._woken:
            self._woken = False
        elif self._entered and (until_s is None or self._entered[0][0] <= until_s):
            at_s, _number, action = heapq.heappop(self._entered)
            self._jump(at_s)
            action()
            self._woken = False  # the return is the wake-up
        elif until_s is None:
            raise Stuck("cannot wait: no time is set and nothing is entered in the clock")
        else:
            self._jump(until_s)

    def _jump(self, at_s: float) -> None:
        self._now_s = max(self._now_s, at_s)
