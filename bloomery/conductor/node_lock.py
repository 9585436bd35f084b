"""The lock of a node inside one process.

Threads queue for a node, and each wakes when its place comes; none of them polls.  The thread that
was let in lets the next thread in: ``runtime.node_locks.leave``.  How a request waits stands in
``Context``.

Waiting must not starve the server: so many may wait for one node, and at most half of the API's
threads in all (``Places``); the next one is told at once.  A request that waits for a BMC has no
thread meanwhile (``model/request.py``).
"""

from __future__ import annotations

import threading
import time

from bloomery.db.fair_lock import FairLock
from bloomery.metrics import METRICS


class TooManyWaiting(Exception):
    """As many as may wait are waiting already."""


class Places:
    """So many may wait at a time, whatever for: threads of the API, or parked requests."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.in_use = 0
        self._mutex = threading.Lock()

    def take(self) -> bool:
        """Take a place; False when there is none."""
        with self._mutex:
            if self.in_use >= self.most:
                return False
            self.in_use += 1
            return True

    def give_back(self) -> None:
        with self._mutex:
            self.in_use -= 1


class NodeLocks:
    """One lock per node that somebody holds or waits for.

    ``places`` are for those who wait in a thread of the API, here or anywhere else.
    """

    def __init__(self, max_waiters_per_node: int, max_waiters: int) -> None:
        self._mutex = threading.Lock()
        self._locks: dict[str, FairLock] = {}
        self._users: dict[str, int] = {}
        self._per_node = max_waiters_per_node
        self._waiting = 0
        self.places = Places(max_waiters)

    @property
    def waiting(self) -> int:
        return self._waiting

    @property
    def in_use(self) -> int:
        return len(self._users)

    def is_used(self, uuid: str) -> bool:
        """Whether somebody here has the node, or waits for it."""
        return uuid in self._users

    def enter(
        self, uuid: str, timeout_s: float, *, patient: bool = False, in_place: bool = False,
    ) -> bool:  # fmt: skip
        """Wait up to ``timeout_s`` for the node; False when the time is up.

        A caller that waits takes a place, unless it is ``in_place`` already, or needs none.  Raises
        TooManyWaiting when no more may wait; the ``patient``, who need none, always may.
        """
        takes_place = not (patient or in_place)
        lock, must_wait = self._join(uuid, patient, takes_place)
        entered, began = False, time.monotonic()
        try:
            entered = lock.enter(timeout_s)
        finally:
            if must_wait:
                METRICS.send_timer("lock_wait", (time.monotonic() - began) * 1000)
                if takes_place:
                    self.places.give_back()
            with self._mutex:
                self._waiting -= must_wait
                if not entered:
                    self._drop(uuid)
        return entered

    def _join(self, uuid: str, patient: bool, takes_place: bool) -> tuple[FairLock, bool]:
        with self._mutex:
            users = self._users.get(uuid, 0)
            if users > self._per_node and not patient:
                raise TooManyWaiting
            if users and takes_place and not self.places.take():
                raise TooManyWaiting
            self._waiting += bool(users)
            self._users[uuid] = users + 1
            return self._locks.setdefault(uuid, FairLock()), bool(users)

    def leave(self, uuid: str) -> None:
        """Let the next one in."""
        with self._mutex:
            lock = self._locks[uuid]
            self._drop(uuid)
        lock.leave()

    def _drop(self, uuid: str) -> None:
        self._users[uuid] -= 1
        if not self._users[uuid]:
            del self._users[uuid], self._locks[uuid]
