"""The clock of a simulation, which jumps to the awaited moment."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Return seconds that never decrease."""

    def wait(self, until_s: float | None) -> None:
        """Return when ``until_s`` has come, or earlier.  Raises Stuck for None."""


class Stuck(RuntimeError):
    """A stack waits for a call that a simulation never makes."""

    def __init__(self) -> None:
        super().__init__("cannot wait: no time is set, and nobody is left who could wake the stack")


class SimulatedClock:
    """A clock that stands still until it is waited for, and then jumps."""

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s

    def now(self) -> float:
        return self._now_s

    def wait(self, until_s: float | None) -> None:
        """Jump to ``until_s``.  Raises Stuck for None."""
        if until_s is None:
            raise Stuck
        self._now_s = max(self._now_s, until_s)
