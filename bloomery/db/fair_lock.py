"""A first-come, first-served lock.

``threading.Lock`` has no order and SQLite's busy handler polls; both starve threads.  Here the
holder hands the lock to the longest waiter.
"""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._held = False
        self._queue: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def idle(self) -> bool:
        return not self._held and not self._queue

    def enter(self, timeout_s: float) -> bool:
        """Wait up to ``timeout_s`` for the lock; False after the time-out."""
        with self._mutex:
            if not self._held:
                self._held = True
                return True
            turn = threading.Lock()
            turn.acquire()
            self._queue.append(turn)
        return turn.acquire(timeout=max(timeout_s, 0)) or self._give_up(turn)

    def _give_up(self, turn: threading.Lock) -> bool:
        """Leave the queue; True if the lock was handed over in that very moment."""
        with self._mutex:
            try:
                self._queue.remove(turn)
            except ValueError:
                return True
            return False

    def leave(self) -> None:
        """Hand the lock to the longest waiter."""
        with self._mutex:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._held = False
