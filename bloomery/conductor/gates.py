"""A queue in front of each node: whoever wants it waits his turn, and wakes when it comes.

The database reservation arbitrates between processes; inside one process nobody needs to poll.
Waiting must not starve the server: so many may wait for one node, so many in all, and the next
one is told at once.
"""

from __future__ import annotations

import threading
import time

from bloomery.db.gate import Gate
from bloomery.metrics import METRICS


class GateFull(Exception):
    """As many as may wait are waiting already."""


class NodeGates:
    """One gate per node that somebody holds or waits for."""

    def __init__(self, max_waiters_per_node: int, max_waiters: int) -> None:
        self._mutex = threading.Lock()
        self._gates: dict[str, Gate] = {}
        self._users: dict[str, int] = {}
        self._per_node = max_waiters_per_node
        self._max_waiters = max_waiters
        self._waiting = 0

    @property
    def waiting(self) -> int:
        return self._waiting

    @property
    def held(self) -> int:
        return len(self._users)

    def enter(self, uuid: str, timeout_s: float, *, patient: bool = False) -> bool:
        """Wait up to ``timeout_s`` for the node; False when the time is up.

        Raises GateFull when no more may wait; the ``patient`` always may.
        """
        gate, must_wait = self._join(uuid, patient)
        entered, began = False, time.monotonic()
        try:
            entered = gate.enter(timeout_s)
        finally:
            if must_wait:
                METRICS.send_timer("lock_wait", (time.monotonic() - began) * 1000)
            with self._mutex:
                self._waiting -= must_wait
                if not entered:
                    self._drop(uuid)
        return entered

    def _join(self, uuid: str, patient: bool) -> tuple[Gate, bool]:
        with self._mutex:
            users = self._users.get(uuid, 0)
            crowded = users > self._per_node or (users and self._waiting >= self._max_waiters)
            if crowded and not patient:
                raise GateFull
            self._waiting += bool(users)
            self._users[uuid] = users + 1
            return self._gates.setdefault(uuid, Gate()), bool(users)

    def leave(self, uuid: str) -> None:
        """Let the next one in."""
        with self._mutex:
            gate = self._gates[uuid]
            self._drop(uuid)
        gate.leave()

    def _drop(self, uuid: str) -> None:
        self._users[uuid] -= 1
        if not self._users[uuid]:
            del self._users[uuid], self._gates[uuid]
