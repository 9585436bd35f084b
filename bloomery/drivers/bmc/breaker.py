"""A circuit breaker: whoever failed too often is left alone for a while, then gets one try.

closed --(failures in a row)--> open --(pause)--> half open: one try --> closed, or open again
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


class Breaker:
    """Counts failures in a row.  Whoever is admitted reports back exactly once.

    ``longest_s``: the pause doubles with each further failure up to this; None: it stays.
    """

    def __init__(
        self,
        most: int,
        pause_s: float,
        clock: Callable[[], float] = time.monotonic,
        longest_s: float | None = None,
    ) -> None:
        self._most, self._pause_s, self._clock = most, pause_s, clock
        self._longest_s = pause_s if longest_s is None else longest_s
        self._mutex = threading.Lock()
        self._failures = 0
        self._next_try_at = 0.0
        self._trying = False
        self.since: datetime | None = None
        self.last: Exception | None = None

    @property
    def is_open(self) -> bool:
        return self._failures >= self._most

    @property
    def failures(self) -> int:
        """How many calls in a row failed; 0 for one that answers."""
        return self._failures

    @property
    def next_try_at(self) -> datetime | None:
        """When the next try will be let through; None for one that is closed."""
        if not self.is_open:
            return None
        left_s = max(self._next_try_at - self._clock(), 0.0)
        return datetime.now(UTC) + timedelta(seconds=left_s)

    def admit(self, *, insists: bool = False) -> float:
        """Return 0: go ahead; or the seconds until the next try.

        ``insists``: a person asked; the pause need not be over, but there is one try at a time.
        """
        with self._mutex:
            if not self.is_open:
                return 0.0
            left_s = self._next_try_at - self._clock()
            if (left_s <= 0 or insists) and not self._trying:
                self._trying = True
                return 0.0
            return max(left_s, 1.0)

    def succeeded(self) -> None:
        with self._mutex:
            self._failures, self._trying = 0, False
            self.since = self.last = None

    def failed(self, why: Exception) -> None:
        with self._mutex:
            if not self._failures:
                self.since = datetime.now(UTC)
            self._failures, self._trying, self.last = self._failures + 1, False, why
            doublings = min(max(self._failures - self._most, 0), 32)
            pause_s = min(self._pause_s * 2**doublings, self._longest_s)
            self._next_try_at = self._clock() + pause_s

    def abandoned(self) -> None:
        """Whoever was admitted ended without an answer, for reasons of its own."""
        with self._mutex:
            self._trying = False

    def told(self, left_s: float) -> str:
        """Say why nobody is admitted."""
        since = f"{self.since:%H:%M:%S} UTC" if self.since else "a moment ago"
        times = "1 failure" if self._failures == 1 else f"{self._failures} failures in a row"
        return f"left alone after {times} since {since}; next try in {left_s:.0f} s"
