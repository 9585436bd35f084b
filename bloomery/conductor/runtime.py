"""The dependencies of a running conductor, and the context of one request in it.

A request waits for a node twice: for the lock in this process, then for another process's
reservation.  A waiting API thread takes one place, however many waits it has; ``Context.in_place``
marks waits within a place.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bloomery import errors
from bloomery.conductor.allocation_queue import AllocationQueue
from bloomery.conductor.heartbeats import Heartbeats
from bloomery.conductor.lease import Lease
from bloomery.conductor.node_lock import NodeLocks, Places, TooManyWaiting
from bloomery.conductor.pulse import Pulse
from bloomery.conductor.sensor_board import SensorBoard
from bloomery.conductor.timers import Timers
from bloomery.conductor.workers import Workers
from bloomery.conf import Conf
from bloomery.db import nodes
from bloomery.db.engine import Database
from bloomery.drivers.registry import Registry
from bloomery.model.node import Node, RingKey, RingShare
from bloomery.model.request import Request
from bloomery.rpc.ring import Ring
from bloomery.secrets import Sealer

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConductorRuntime:
    """The dependencies that the modules of a conductor share; built once in ``cmd``.

    ``on_events_written``: called after each commit with event rows; wakes the relay. ``ring``: the
    nodes of each conductor, shared with the API of the same process. ``pulse``: asks the BMCs.
    ``on_flow_orphaned``: called with the node of a flow whose worker lost the database. ``parked``:
    the places of requests that wait for a worker without a thread; ``log_readers``: those of
    workers that read BMCs' logs. ``leaving``: set once the conductor is off line and hands its
    flows over (``has_successor``). ``draining``: set while it ends its flows without a successor,
    and begins no other. ``unexplained``: verified nodes whose BIOS settings have no types yet.
    ``sensors``: the last readings; ``send_sensors`` notifies of one node's, by driver.
    ``wants_snapshots``: event rows hold the whole object, while a sink sends versioned
    notifications. ``checkpoint`` moves SQLite's log into its file.
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
    log_readers: Places
    pulse: Pulse
    allocations: AllocationQueue = field(default_factory=AllocationQueue)
    unexplained: set[str] = field(default_factory=set)
    leaving: threading.Event = field(default_factory=threading.Event)
    draining: threading.Event = field(default_factory=threading.Event)
    on_events_written: Callable[[], None] = lambda: None
    wants_snapshots: Callable[[], bool] = lambda: False
    checkpoint: Callable[[], None] = lambda: None
    on_flow_orphaned: Callable[[str], None] = lambda _uuid: None
    sensors: SensorBoard = field(default_factory=SensorBoard)
    send_sensors: Callable[[str, dict[str, Any]], None] = lambda _driver, _message: None

    def has_successor(self, node: Node) -> bool:
        """Return whether this conductor is stopping and another one serves the node.

        Flows of the node are then handed over at their next pause, between two steps or two
        attempts.  A flow that waits for a heartbeat needs no hand-over; a flow without a successor
        ends here.
        """
        if not self.leaving.is_set():
            return False
        host = self.ring.find_host(driver=node.driver, group=node.conductor_group, uuid=node.uuid)
        return host not in (None, self.host)

    def list_shares(self) -> list[RingShare]:
        """Return which nodes this conductor serves, for queries that read no other rows."""
        return self.ring.list_shares(self.host)

    def list_served(self, keys: Iterable[RingKey]) -> list[str]:
        """Return the UUIDs of the nodes that the ring gives to this conductor, in order."""
        return self.ring.list_served(self.host, keys)

    @contextlib.contextmanager
    def waiting_place(self, reason: str) -> Iterator[None]:
        """Count the API thread as waiting.  Raises ApiThreadsBusy at the maximum."""
        places = self.node_locks.places
        _take(places, reason, *self.conf.calling_threads)
        try:
            yield
        finally:
            places.give_back()

    def begin_parked(self, reason: str, work: Callable[[], T]) -> Future[T]:
        """Start work in a worker for a parked request.

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
    """One request inside a conductor; periodics create their own.

    ``in_place``: waiting needs no place, because one is taken already or no API thread waits.
    """

    runtime: ConductorRuntime
    request: Request
    in_place: bool = False

    @property
    def patience_s(self) -> float:
        """How long the caller waits for a busy node.

        The request's limit, else that of the options.
        """
        if self.request.wait_s is not None:
            return self.request.wait_s
        ours = self.runtime.conf.conductor
        return float(ours.node_locked_retry_attempts * ours.node_locked_retry_interval)

    def wait_in_queue(
        self, uuid: str, attempt: Callable[[], T], *, retry: bool = True, patient: bool = False
    ) -> T:
        """Queue for the node, then return the result of ``attempt``.

        ``retry``: wait as long as the caller accepts; ``patient``: without limit.  The caller then
        wakes the next waiter with ``runtime.node_locks.leave``.

        Raises NodeLocked, which names the holder, at the time limit or waiter limit; NodeNotFound;
        and the errors of ``attempt``, after waking the next waiter.
        """
        locks, wait_s = self.runtime.node_locks, self.patience_s if retry else 0.0
        if patient:
            wait_s = threading.TIMEOUT_MAX
        give_up_at = time.monotonic() + wait_s
        try:
            entered = locks.enter(uuid, wait_s, patient=patient, in_place=self.in_place)
        except TooManyWaiting:
            entered = False
        if not entered:
            with self.runtime.db.read() as conn:
                node = nodes.get(conn, uuid)
            raise errors.NodeLocked(
                node=errors.name_of(node), holder=node.reservation or self.runtime.host,
                action=node.reserved_for or "", log=f"waited {wait_s:g} s in the queue",
            )  # fmt: skip
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(locks.leave, uuid)
            answer = self._until_free(give_up_at, attempt, patient)
            on_failure.pop_all()
        return answer

    def _until_free(self, give_up_at: float, attempt: Callable[[], T], patient: bool) -> T:
        """Repeat ``attempt`` while it raises NodeLocked and time is left; return its result.

        A repeating caller takes a place; NodeLocked is raised where none is free.
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
