"""The lock of a node inside one process, and waiting in a thread of the API.

Whoever wants a node queues for it and wakes when its turn comes; nobody polls.  Between processes
the reservation in the database arbitrates, and is asked for again and again.  Whoever was let in
lets the next one in: ``runtime.node_locks.leave``.

Waiting must not starve the server: so many may wait for one node, and at most half of the API's
threads in all (``Places``), for nodes and for BMCs together; the next one is told at once.  A
thread takes one place, however many things it waits for: what waits within a place is said so by
``Context.in_place``.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from bloomery import errors
from bloomery.db import nodes
from bloomery.db.fair_lock import FairLock
from bloomery.metrics import METRICS

if TYPE_CHECKING:
    from bloomery.conductor.runtime import ConductorRuntime, Context

T = TypeVar("T")


class TooManyWaiting(Exception):
    """As many as may wait are waiting already."""


class Places:
    """So many of the API's threads may wait at a time, whatever for."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0
        self._mutex = threading.Lock()

    def take(self) -> bool:
        """Take a place; False when there is none."""
        with self._mutex:
            if self.taken >= self.most:
                return False
            self.taken += 1
            return True

    def give_back(self) -> None:
        with self._mutex:
            self.taken -= 1


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
    def held(self) -> int:
        return len(self._users)

    def enter(
        self, uuid: str, timeout_s: float, *, patient: bool = False, in_place: bool = False,
    ) -> bool:  # fmt: skip
        """Wait up to ``timeout_s`` for the node; False when the time is up.

        Whoever waits takes a place, unless he is ``in_place`` already, or needs none.
        Raises GateFull when no more may wait; the ``patient``, who need none, always may.
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


@contextlib.contextmanager
def place(runtime: ConductorRuntime, reason: str) -> Iterator[None]:
    """Be one of the API's threads that wait.  Raises ApiThreadsBusy when as many do as may."""
    places = runtime.node_locks.places
    if not places.take():
        raise errors.ApiThreadsBusy(reason=reason, count=places.most, size=runtime.conf.api.threads)
    try:
        yield
    finally:
        places.give_back()


def enter(context: Context, uuid: str, patience_s: float, *, patient: bool = False) -> None:
    """Queue for the node.

    Raises NodeLocked, which says who has the node, when the time is up or no more may wait;
    NodeNotFound.
    """
    node_locks = context.runtime.node_locks
    try:
        entered = node_locks.enter(uuid, patience_s, patient=patient, in_place=context.in_place)
    except TooManyWaiting:
        entered = False
    if not entered:
        raise _locked(context.runtime, uuid, log=f"waited {patience_s:g} s in the queue")


def _locked(runtime: ConductorRuntime, uuid: str, log: str) -> errors.NodeLocked:
    with runtime.db.read() as conn:
        node = nodes.get(conn, uuid)
    return errors.NodeLocked(
        node=node.uuid,
        holder=node.reservation or runtime.host,
        action=node.reserved_for or "",
        log=log,
    )


def until_free(
    context: Context,
    give_up_at: float,
    attempt: Callable[[], T],
    *,
    patient: bool = False,
) -> T:
    """Return what ``attempt`` returns; while it raises NodeLocked ask again until time is up.

    Whoever has to ask again takes a place as in the queue; where there is none, NodeLocked it is.
    """
    runtime, needs_place = context.runtime, not (patient or context.in_place)
    pause_s = float(runtime.conf.conductor.node_locked_retry_interval)
    with contextlib.ExitStack() as until_done:
        while True:
            try:
                return attempt()
            except errors.NodeLocked:
                left_s = give_up_at - time.monotonic()
                if left_s <= 0 or (needs_place and not runtime.node_locks.places.take()):
                    raise
            if needs_place:
                until_done.callback(runtime.node_locks.places.give_back)
                needs_place = False
            time.sleep(min(pause_s, left_s))
