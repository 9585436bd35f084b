"""One thread for delayed calls: attempts of waiting flows, retries, periodics.

The calls must return at once; long work goes to the workers.  Their log lines name the request that
scheduled them.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from bloomery import secrets
from bloomery.model.request import IN_LOG, Request

LOG = logging.getLogger(__name__)

_Entry: TypeAlias = tuple[float, int, Callable[..., Any], tuple[Any, ...], Request | None]


class Timers:
    """Callbacks in order of their due times, on one monotonic clock."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        name: str = "timers",
    ) -> None:
        self._clock = clock
        self._wake = threading.Condition()
        self._due: list[_Entry] = []
        self._order = itertools.count()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Drop the pending calls and end the thread."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    def after(self, delay_s: float, call: Callable[..., Any], *args: Any) -> None:
        """Call ``call(*args)`` once, ``delay_s`` seconds from now."""
        with self._wake:
            entry = (self._clock() + delay_s, next(self._order), call, args, IN_LOG.get())
            heapq.heappush(self._due, entry)
            if self._due[0] is entry:
                self._wake.notify()

    def bring_forward(self, call: Callable[..., Any], matches: Callable[..., bool]) -> None:
        """Make the pending calls of ``call`` due whose arguments ``matches`` accepts."""
        with self._wake:
            now = self._clock()
            for at, entry in enumerate(self._due):
                if entry[2] == call and matches(*entry[3]):
                    self._due[at] = (min(now, entry[0]), *entry[1:])
            heapq.heapify(self._due)
            self._wake.notify()

    def due_at(self) -> float | None:
        """Return the time of the next call on the clock, or None if there is none."""
        return self._due[0][0] if self._due else None

    def call_next(self, *, waits: bool = False) -> bool:
        """Make the next due call; return whether there was one.

        ``waits``: wait until a call is due, or the timers stop.
        """
        with self._wake:
            while not self._stopping:
                wait_s = self._due[0][0] - self._clock() if self._due else None
                if wait_s is not None and wait_s <= 0:
                    _, _, call, args, request = heapq.heappop(self._due)
                    break
                if not waits:
                    return False
                self._wake.wait(wait_s)
            else:
                return False
        token = IN_LOG.set(request)
        try:
            call(*args)
        except Exception as exc:  # noqa: BLE001  the supervisor: one bad call must not end it
            report = secrets.report(exc)
            LOG.error("timer call %s failed: %s", call, report)  # noqa: TRY400  masked
        finally:
            IN_LOG.reset(token)
        return True

    def _run(self) -> None:
        while self.call_next(waits=True):
            pass
