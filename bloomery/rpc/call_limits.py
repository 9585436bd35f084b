"""Limit the threads of a process that wait for conductors.

A dead or paused conductor answers no call before the time-out; without limits the threads of the
API would all wait for it.  At most half of them wait for conductors at a time, and three quarters
of those for one host.  Further calls queue while other calls return, and are refused if none
returned lately.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from bloomery import errors

QUEUE_S: Final = 10.0  # the longest time in the queue
LATELY_S: Final = 1.0  # without an answer, queued calls are refused


class CallLimits:
    """``threads``: those of the process that call; safe to use from any of them."""

    def __init__(self, threads: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = max(1, threads // 2)
        self.most_per_host = max(1, self.most * 3 // 4)
        self._clock = clock
        self._room = threading.Condition()
        self._calls: Counter[str] = Counter()
        self._heard_at: dict[str, float] = {}  # the last answer, or the beginning of the wait

    @property
    def calls(self) -> int:
        """Return the number of waiting calls."""
        return self._calls.total()

    @contextmanager
    def call(self, host: str) -> Iterator[None]:
        """Count a call to ``host`` while it runs; wait for room while earlier calls get answers.

        Raises ConductorCallsBusy.
        """
        with self._room:
            give_up_at = self._clock() + QUEUE_S
            while not self._has_room(host):
                is_full = self._calls[host] >= self.most_per_host
                hosts = (host,) if is_full else tuple(+self._calls)  # whose answers make room
                heard_at = max(self._heard_at[each] for each in hosts)
                left_s = min(give_up_at, heard_at + LATELY_S) - self._clock()
                if left_s <= 0:
                    raise errors.ConductorCallsBusy(
                        host=host, count=self._calls[host] if is_full else self.calls,
                        whom="it" if is_full else "conductors",
                    )  # fmt: skip
                self._room.wait(left_s)
            if not self._calls[host]:
                self._heard_at[host] = self._clock()
            self._calls[host] += 1
        try:
            yield
        finally:
            with self._room:
                self._calls[host] -= 1
                if not self._calls[host]:
                    del self._calls[host]
                self._room.notify_all()

    def came_back(self, host: str) -> None:
        """Store the time of an answer of ``host``."""
        self._heard_at[host] = self._clock()

    def _has_room(self, host: str) -> bool:
        return self._calls[host] < self.most_per_host and self.calls < self.most
