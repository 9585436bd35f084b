"""A first-come, first-served lock.

``threading.Lock`` has no order and SQLite's busy handler polls; both starve threads.  Here the
holder hands the lock to the longest waiter, or does what that waiter wants the lock for.
"""

from __future__ import annotations

import threading
from collections import deque


class Turn:
    """A thread's place in the queue."""

    is_errand = False  # a holder may do what the thread wants the lock for
    is_done = False  # a holder has done it

    def __init__(self) -> None:
        self.came = threading.Lock()
        self.came.acquire()

    def finish(self) -> None:
        """Let the thread go on without the lock, as its errand is done."""
        self.is_done = True
        self.came.release()


class FairLock:
    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._held = False
        self._queue: deque[Turn] = deque()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def idle(self) -> bool:
        return not self._held and not self._queue

    def enter(self, timeout_s: float, turn: Turn | None = None) -> bool:
        """Wait up to ``timeout_s`` for the lock; False after the time-out.

        An errand may be done instead: True without the lock.  Once a holder has begun it, its end
        is waited for.
        """
        with self._mutex:
            if not self._held:
                self._held = True
                return True
            turn = turn or Turn()
            self._queue.append(turn)
        return turn.came.acquire(timeout=max(timeout_s, 0)) or self._give_up(turn)

    def _give_up(self, turn: Turn) -> bool:
        """Leave the queue; True if the lock was handed over, or the errand begun, meanwhile."""
        with self._mutex:
            if turn in self._queue:
                self._queue.remove(turn)
                return False
        return turn.came.acquire()

    def take_errand(self) -> Turn | None:
        """Return the turn of the longest waiter if it is an errand: the holder finishes it."""
        with self._mutex:
            return self._queue.popleft() if self._queue and self._queue[0].is_errand else None

    def leave(self) -> None:
        """Hand the lock to the longest waiter."""
        with self._mutex:
            if self._queue:
                self._queue.popleft().came.release()
            else:
                self._held = False
