"""Conductors that died or came: free what the dead hold, and take up what is ours now.

A living conductor raises the counter in its row.  A conductor whose counter stood still for
``heartbeat_timeout`` is dead (``rpc.liveness``); no clock of another machine counts.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

import sqlalchemy as sa

from bloomery.conductor import allocator, recovery
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import conductors, locks
from bloomery.model.conductor import Conductor

LOG = logging.getLogger(__name__)


class Leases:
    """Looks at the peers of one conductor."""

    def __init__(self, runtime: ConductorRuntime) -> None:
        self._runtime = runtime
        self._epoch = 0  # of the ring, when flows were taken up last
        self._lives: frozenset[str] = frozenset()  # incarnations of peers at the last look

    def run(self) -> None:
        """Bury whoever is dead; take up flows where a death or a new peer makes them ours.

        Every peer of a dead conductor finds it dead by itself; the first one frees the nodes,
        and each takes up those that the ring gives it.  A peer that ends its work leaves flows one
        after the other, so they are looked for as long as it lives.
        """
        ring = self._runtime.ring
        ring.refresh()
        epoch, before = ring.epoch, self._lives
        peers = [each for each in ring.list_conductors() if each.hostname != self._runtime.host]
        self._lives = frozenset(each.incarnation for each in peers if each.incarnation)
        freed = self._fence_out_all([each for each in peers if ring.liveness.is_dead(each)])
        hands_over = any(each.incarnation and not each.online for each in peers)
        if freed or hands_over or before - self._lives or epoch != self._epoch:
            recovery.adopt_all(self._runtime, recovery.CRASH)
            self._epoch = epoch
        if before - self._lives:
            allocator.adopt(self._runtime)

    def _fence_out_all(self, dead: list[Conductor]) -> int:
        """Free what dead conductors hold; return how many nodes that were."""
        if not dead:
            return 0
        db = self._runtime.db
        with db.read() as conn:
            holders = locks.list_holders(conn)
        return sum(
            db.transact(functools.partial(_fence_out, peer=peer))
            for peer in dead
            if peer.online or peer.incarnation is not None or peer.hostname in holders
        )


def _fence_out(conn: sa.Connection, peer: Conductor) -> int:
    """Declare a conductor dead, if it has not stirred since it was seen; return what it held.

    A conductor that was declared dead before may have come back meanwhile: its nodes then belong to
    its new incarnation.
    """
    if not conductors.fence_out(conn, peer):
        return 0
    if peer.online or peer.incarnation is not None:
        LOG.warning("conductor %s is dead: its nodes are freed", peer.hostname)
    return len(locks.void_all(conn, peer.hostname))


def make(runtime: ConductorRuntime) -> Callable[[], None]:
    return Leases(runtime).run
