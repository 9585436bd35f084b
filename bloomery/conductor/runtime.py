"""The parts of a running conductor, and the context of one request in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bloomery.conductor.allocation_queue import AllocationQueue
from bloomery.conductor.heartbeats import Heartbeats
from bloomery.conductor.lease import Lease
from bloomery.conductor.node_lock import NodeLocks
from bloomery.conductor.timers import Timers
from bloomery.conductor.workers import Workers
from bloomery.conf import Conf
from bloomery.db.engine import Database
from bloomery.drivers.registry import Registry
from bloomery.model.node import Node, RingKey
from bloomery.model.request import Request
from bloomery.rpc.ring import Ring
from bloomery.secrets import Sealer


@dataclass(frozen=True, slots=True, kw_only=True)
class ConductorRuntime:
    """What the rooms of a conductor share; built once in ``cmd``.

    ``on_events_written`` is called after each commit that wrote event rows: it wakes the relay.
    ``ring`` says which nodes are this conductor's; the API of the same process asks it, too.
    ``on_flow_orphaned`` is called with the node of a flow whose worker the database gave up on.
    ``leaving``: set once it is off line and gives its flows to others (``has_heir``).
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
    allocations: AllocationQueue = field(default_factory=AllocationQueue)
    leaving: threading.Event = field(default_factory=threading.Event)
    on_events_written: Callable[[], None] = lambda: None
    wants_snapshots: Callable[[], bool] = lambda: False
    on_flow_orphaned: Callable[[str], None] = lambda _uuid: None

    def has_heir(self, node: Node) -> bool:
        """Is this conductor off line to stop, and does another one serve the node?

        A flow of the node is left to that one at its next pause: between two steps, or two turns
        of a step.  One that waits for a call is held by nobody and needs no hand-over; one that
        nobody could follow is ended here.
        """
        if not self.leaving.is_set():
            return False
        host = self.ring.find_host(driver=node.driver, group=node.conductor_group, uuid=node.uuid)
        return host not in (None, self.host)

    def list_served(self, keys: Iterable[RingKey]) -> list[str]:
        """Return the UUIDs of those nodes that the ring gives to this conductor, in order."""
        return self.ring.list_served(self.host, keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One request inside a conductor; periodics make their own.

    ``in_place``: its waiting needs no place among the threads of the API that wait
    (``node_queue``), because a place was taken for it, or because no thread of the API waits.
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
