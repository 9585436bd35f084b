"""The parts of a running conductor, and one request in it: whose it is, and how it waits.

It waits for a node twice: for its turn in this process, then for the reservation of another one.
A thread of the API takes one place while it waits, however many things it waits for: what waits
within a place is said so by ``Context.in_place``.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from bloomery import errors
from bloomery.conductor.allocation_queue import AllocationQueue
from bloomery.conductor.heartbeats import Heartbeats
from bloomery.conductor.lease import Lease
from bloomery.conductor.node_lock import NodeLocks, Places, TooManyWaiting
from bloomery.conductor.timers import Timers
from bloomery.conductor.workers import Workers
from bloomery.conf import Conf
from bloomery.db import nodes
from bloomery.db.engine import Database
from bloomery.drivers.registry import Registry
from bloomery.model.node import Node, RingKey
from bloomery.model.request import Request
from bloomery.rpc.ring import Ring
from bloomery.secrets import Sealer

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConductorRuntime:
    """The dependencies that the modules of a conductor share; built once in ``cmd``.

    ``on_events_written`` is called after each commit that wrote event rows: it wakes the relay.
    ``ring`` says which nodes are this conductor's; the API of the same process asks it, too.
    ``on_flow_orphaned`` is called with the node of a flow whose worker the database gave up on.
    ``parked``: the places of requests that wait for a worker's answer without a thread.
    ``leaving``: set once it is off line and gives its flows to others (``has_successor``).
    ``unexplained``: nodes that were verified, and whose BIOS settings have no types yet.
    ``wants_snapshots``: event rows carry the whole object while a sink makes notifications of them.
    """

    host: str
    db: Database
    conf: Conf
    registry: Registry
    sealer: Sealer
    node_locks: NodeLocks
    workers: Workers
    timers: Timers
    heartbeats: Heartbeats
    lease: Lease
    ring: Ring
    parked: Places
    allocations: AllocationQueue = field(default_factory=AllocationQueue)
    unexplained: set[str] = field(default_factory=set)
    leaving: threading.Event = field(default_factory=threading.Event)
    on_events_written: Callable[[], None] = lambda: None
    wants_snapshots: Callable[[], bool] = lambda: False
    on_flow_orphaned: Callable[[str], None] = lambda _uuid: None

    def has_successor(self, node: Node) -> bool:
        """Is this conductor off line to stop, and does another one serve the node?

        A flow of the node is left to that one at its next pause: between two steps, or two turns of
        a step. A flow that waits for a call is held by no conductor and needs no hand-over; a flow
        without a successor ends here.
        """
        if not self.leaving.is_set():
            return False
        host = self.ring.find_host(driver=node.driver, group=node.conductor_group, uuid=node.uuid)
        return host not in (None, self.host)

    def list_served(self, keys: Iterable[RingKey]) -> list[str]:
        """Return the UUIDs of those nodes that the ring gives to this conductor, in order."""
        return self.ring.list_served(self.host, keys)

    @contextlib.contextmanager
    def waiting_place(self, reason: str) -> Iterator[None]:
        """Be one of the API's threads that wait.  Raises ApiThreadsBusy when as many do as may."""
        places = self.node_locks.places
        _take(places, reason, *self.conf.calling_threads)
        try:
            yield
        finally:
            places.give_back()

    def begin_parked(self, reason: str, work: Callable[[], T]) -> Future[T]:
        """Begin work in a worker that a request waits for without a thread.

        Raises NoFreeConductorWorker; ApiThreadsBusy when half of the workers do such work.
        """
        with self.workers.slot() as slot, contextlib.ExitStack() as on_failure:
            size = self.conf.conductor.workers_pool_size
            _take(self.parked, reason, "[conductor]workers_pool_size", size)
            on_failure.callback(self.parked.give_back)
            outcome = slot.spawn(work)
            on_failure.pop_all()
        outcome.add_done_callback(lambda _: self.parked.give_back())
        return outcome


def _take(places: Places, reason: str, option: str, size: int) -> None:
    if not places.take():
        raise errors.ApiThreadsBusy(reason=reason, count=places.most, option=option, size=size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One request inside a conductor; periodics make their own.

    ``in_place``: its waiting needs no place among the threads of the API that wait, because a
    place was taken for it, or because no thread of the API waits.
    """

    runtime: ConductorRuntime
    request: Request
    in_place: bool = False

    @property
    def patience_s(self) -> float:
        """How long the caller waits for a busy node: as it said, else as the options say."""
        if self.request.wait_s is not None:
            return self.request.wait_s
        ours = self.runtime.conf.conductor
        return float(ours.node_locked_retry_attempts * ours.node_locked_retry_interval)

    def take_turn(
        self, uuid: str, attempt: Callable[[], T], *, retry: bool = True, patient: bool = False
    ) -> T:
        """Queue for the node, and return what ``attempt`` returns when its turn has come.

        ``retry``: wait as long as the caller agreed to; ``patient``: as long as it takes. The
        caller lets the next one in, with ``runtime.node_locks.leave``.

        Raises NodeLocked, which says who has the node, when the time is up or no more may wait;
        NodeNotFound; and what ``attempt`` raises, with the next one let in.
        """
        wait_s = self._wait_s(retry, patient)
        give_up_at = time.monotonic() + wait_s
        self._enter_queue(uuid, wait_s, patient)
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(self.runtime.node_locks.leave, uuid)
            answer = self._until_free(give_up_at, attempt, patient)
            on_failure.pop_all()
        return answer

    def _wait_s(self, retry: bool, patient: bool) -> float:
        if patient:
            return threading.TIMEOUT_MAX
        return self.patience_s if retry else 0.0

    def _enter_queue(self, uuid: str, wait_s: float, patient: bool) -> None:
        locks = self.runtime.node_locks
        try:
            entered = locks.enter(uuid, wait_s, patient=patient, in_place=self.in_place)
        except TooManyWaiting:
            entered = False
        if not entered:
            raise self._locked(uuid, log=f"waited {wait_s:g} s in the queue")

    def _locked(self, uuid: str, log: str) -> errors.NodeLocked:
        with self.runtime.db.read() as conn:
            node = nodes.get(conn, uuid)
        return errors.NodeLocked(
            node=node.uuid,
            holder=node.reservation or self.runtime.host,
            action=node.reserved_for or "",
            log=log,
        )

    def _until_free(self, give_up_at: float, attempt: Callable[[], T], patient: bool) -> T:
        """Return what ``attempt`` returns; while it raises NodeLocked ask again until time is up.

        A caller that has to ask again takes a place in the queue; where no place is left,
        NodeLocked is raised.
        """
        runtime, needs_place = self.runtime, not (patient or self.in_place)
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
