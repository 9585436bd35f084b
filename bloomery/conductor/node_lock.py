"""The lock of a node inside one process.

Threads queue for a node; ``leave`` wakes the next one; no thread polls.  ``Context`` says how long
a request waits.

Waiting must not starve the server.  ``Places`` limits the waiting API threads to half, and a second
limit counts the waiters of one node; the next caller gets an error at once.  A request that waits
for a BMC has no thread (``model/request.py``).
"""

from __future__ import annotations

import threading
import time

from bloomery.db.fair_lock import FairLock
from bloomery.metrics import METRICS


class TooManyWaiting(Exception):
    """The limit of waiting threads is reached."""


class Places:
    """A counter of waiting API threads, or of parked requests, with a maximum."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.in_use = 0
        self._mutex = threading.Lock()

    def take(self) -> bool:
        """Take a place; return False where none is free."""
        with self._mutex:
            if self.in_use >= self.most:
                return False
            self.in_use += 1
            return True

    def give_back(self) -> None:
        with self._mutex:
            self.in_use -= 1


class NodeLocks:
    """One lock per node in use.

    ``places`` counts the API threads that wait, here or elsewhere.
    """

    def __init__(self, max_waiters_per_node: int, max_waiters: int) -> None:
        self._mutex = threading.Lock()
        self._locks: dict[str, FairLock] = {}
        self._users: dict[str, int] = {}
        self._per_node = max_waiters_per_node
        self.waiting = 0
        self.places = Places(max_waiters)

    @property
    def in_use(self) -> int:
        return len(self._users)

    def is_used(self, uuid: str) -> bool:
        """Return whether a thread of this process holds the node or waits for it."""
        return uuid in self._users

    def enter(
        self, uuid: str, timeout_s: float, *, patient: bool = False, in_place: bool = False,
    ) -> bool:  # fmt: skip
        """Wait up to ``timeout_s`` for the node; return whether the caller has it.

        A waiting caller takes a place, unless it is ``patient`` or already ``in_place``.  Raises
        TooManyWaiting at the limits, which ``patient`` callers are exempt from.
        """
        takes_place = not (patient or in_place)
        with self._mutex:
            users = self._users.get(uuid, 0)
            if users > self._per_node and not patient:
                raise TooManyWaiting
            must_wait = users > 0
            if must_wait and takes_place and not self.places.take():
                raise TooManyWaiting
            self.waiting += must_wait
            self._users[uuid] = users + 1
            lock = self._locks.setdefault(uuid, FairLock())
        entered, began = False, time.monotonic()
        try:
            entered = lock.enter(timeout_s)
        finally:
            if must_wait:
                METRICS.send_timer("lock_wait", (time.monotonic() - began) * 1000)
                if takes_place:
                    self.places.give_back()
            with self._mutex:
                self.waiting -= must_wait
                if not entered:
                    self._drop(uuid)
        return entered

    def leave(self, uuid: str) -> None:
        """Wake the next waiter."""
        with self._mutex:
            lock = self._locks[uuid]
            self._drop(uuid)
        lock.leave()

    def _drop(self, uuid: str) -> None:
        self._users[uuid] -= 1
        if not self._users[uuid]:
            del self._users[uuid], self._locks[uuid]
