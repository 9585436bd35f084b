"""Free the reservations that nobody works on, of dead conductors and of this one; recover flows.

A live conductor raises the counter in its row.  A conductor whose counter stood still for
``heartbeat_timeout`` is dead (``rpc.liveness``); clocks of other machines do not count.
"""

from __future__ import annotations

import logging
from functools import partial

import sqlalchemy as sa

from bloomery.conductor import allocator, recovery
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import conductors, locks
from bloomery.model.conductor import Conductor

LOG = logging.getLogger(__name__)


class Leases:
    """Watches the peers of one conductor."""

    def __init__(self, runtime: ConductorRuntime) -> None:
        self._runtime = runtime
        self._epoch = 0  # of the ring at the last recovery
        self._lives: frozenset[str] = frozenset()  # incarnations of peers at the last run

    def run(self) -> None:
        """Fence out dead peers; recover flows where a death or a new peer makes them ours.

        Every peer detects the death by itself; the first frees the nodes, and each recovers the
        flows that the ring assigns to it.  A stopping peer hands its flows over one by one, so each
        run looks for them.
        """
        ring = self._runtime.ring
        ring.refresh()
        epoch, before = ring.epoch, self._lives
        peers = [each for each in ring.list_conductors() if each.hostname != self._runtime.host]
        self._lives = frozenset(each.incarnation for each in peers if each.incarnation)
        freed = 0
        if dead := [each for each in peers if ring.liveness.is_dead(each)]:
            with self._runtime.db.read() as conn:
                holders = locks.list_holders(conn)
            for peer in dead:
                if peer.online or peer.incarnation is not None or peer.hostname in holders:
                    freed += self._runtime.db.transact(partial(_fence_out, peer=peer))
        hands_over = any(each.incarnation and not each.online for each in peers)
        if freed or hands_over or before - self._lives or epoch != self._epoch:
            recovery.adopt_all(self._runtime, recovery.CRASH)
            self._epoch = epoch
        if before - self._lives:
            allocator.adopt(self._runtime)


def _fence_out(conn: sa.Connection, peer: Conductor) -> int:
    """Declare a conductor dead unless its counter moved; return the number of freed nodes.

    A conductor that has registered again meanwhile keeps the nodes of its new incarnation.
    """
    if not conductors.fence_out(conn, peer):
        return 0
    if peer.online or peer.incarnation is not None:
        LOG.warning("conductor %s is dead: freeing its nodes", peer.hostname)
    return len(locks.void_all(conn, peer.hostname))


class Strays:
    """Frees nodes that this conductor has reserved in the database but does not work on.

    The release was lost: the database was away, or a commit's reply was.  A task queues at the
    node's lock before it reserves, and leaves the lock after the release.  So a reservation
    unchanged in two runs, each time with an idle lock, has no task.
    """

    def __init__(self, runtime: ConductorRuntime) -> None:
        self._runtime = runtime
        self._suspects: frozenset[locks.Guard] = frozenset()  # idle reservations of the last run

    def run(self) -> None:
        runtime = self._runtime
        with runtime.db.read() as conn:
            guards = locks.list_of_holder(conn, runtime.host)
        idle = frozenset(
            guard for guard in guards if not runtime.node_locks.is_used(guard.node_uuid)
        )
        strays, self._suspects = idle & self._suspects, idle
        for guard in strays:
            if runtime.db.transact(partial(locks.release, guard=guard)):
                LOG.warning("node %s: freed: its reservation had no task", guard.node_uuid)
        if strays:
            recovery.adopt_all(runtime, recovery.CRASH)
