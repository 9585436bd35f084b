"""Calls at a later time: one thread, however many wait.

timers = Timers(pool.submit)
timers.start()
timers.call_in(2.5, beat)
"""

from __future__ import annotations

import sched
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
        self._submit, self.now, self._waiting = submit, clock, sched.scheduler(clock)
        self._wake, self._stopping = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="lab-timers", daemon=True)

    def call_in(self, seconds: float, work: Callable[[], None]) -> None:
        self._waiting.enter(seconds, 0, self._submit, (work,))
        self._wake.set()

    def run_due(self) -> float | None:
        """Submit the calls that are due; return the seconds until the next one, None: no call."""
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
