"""When each BMC may get its next command, and which cipher suite it took last.

Kept for the process, because the minimum gap between two commands holds across interfaces and
across callers; a BMC that is not asked any more costs an entry of some hundred bytes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Pace:
    """The clock and the pause are given, so that a test can turn them."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self.clock = clock
        self.pause = pause
        self._mutex = threading.Lock()
        self._free_at: dict[str, float] = {}
        self._suites: dict[str, int | None] = {}

    def rest_s(self, key: str) -> float:
        """How many seconds until the BMC may get a command."""
        return max(0.0, self._free_at.get(key, 0.0) - self.clock())

    def claim(self, key: str, gap_s: float, within_s: float) -> float | None:
        """Take the next place in the row of commands; return how many seconds until its turn.

        None, and no place taken, where that is not within so many seconds.
        """
        with self._mutex:
            rest_s = self.rest_s(key)
            if rest_s >= within_s:
                return None
            self._free_at[key] = self.clock() + rest_s + gap_s
            return rest_s

    def ended(self, key: str, gap_s: float) -> None:
        """A command is over: the gap counts from here."""
        with self._mutex:
            self._free_at[key] = max(self._free_at.get(key, 0.0), self.clock() + gap_s)

    def remember_suite(self, key: str, suite: int | None) -> None:
        self._suites[key] = suite

    def by_luck(self, key: str, suites: list[int | None]) -> list[int | None]:
        """The suites in the order of trying: the one that worked last comes first."""
        lucky = self._suites.get(key)
        return sorted(suites, key=lambda suite: suite != lucky)
