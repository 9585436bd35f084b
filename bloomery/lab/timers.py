"""Calls at a later time: one thread and a heap, however many wait.

timers = Timers(pool.submit)
timers.start()
timers.call_in(2.5, beat)
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any


class Timers:
    """``submit`` runs a call in another thread; ``clock`` tells monotonic seconds."""

    def __init__(
        self, submit: Callable[[Callable[[], None]], Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._submit, self.now = submit, clock
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()  # its lock is reentrant
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="lab-timers", daemon=True)

    def call_in(self, seconds: float, work: Callable[[], None]) -> None:
        with self._changed:
            entry = (self.now() + seconds, next(self._numbers), work)
            heapq.heappush(self._heap, entry)
            self._changed.notify()

    def run_due(self) -> float | None:
        """Submit the calls that are due; return the seconds until the next one, None: no call."""
        with self._changed:
            while self._heap and self._heap[0][0] <= self.now():
                self._submit(heapq.heappop(self._heap)[2])
            return self._heap[0][0] - self.now() if self._heap else None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            with self._changed:
                wait_s = self.run_due()
                if not self._stopping:
                    self._changed.wait(wait_s)
