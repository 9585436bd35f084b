"""The clock of this machine, for simulations that wait as long as their resources want to."""

from __future__ import annotations

import threading
import time


class Monotonic:
    """A ``scheduler.Clock`` that does wait."""

    def __init__(self) -> None:
        self._news = threading.Event()

    def now(self) -> float:
        return time.monotonic()

    def wait(self, until_s: float | None) -> None:
        self._news.wait(None if until_s is None else max(0.0, until_s - self.now()))
        self._news.clear()

    def wake(self) -> None:
        self._news.set()
