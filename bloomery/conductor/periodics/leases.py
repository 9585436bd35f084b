"""Conductors that died or came: free what the dead hold, and take up what is ours now.

A living conductor raises the counter in its row.  Whose counter stood still for
``heartbeat_timeout`` is dead (``rpc.liveness``); no clock of another machine counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from bloomery.conductor import recovery
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import conductors, locks
from bloomery.model.conductor import Conductor

LOG = logging.getLogger(__name__)


class Leases:
    """Looks at the peers of one conductor."""

    def __init__(self, runtime: ConductorRuntime) -> None:
        self._runtime = runtime
        self._epoch = 0  # of the ring, when flows were taken up last

    def run(self) -> None:
        """Bury whoever is dead; take up flows where a death or a new peer makes them ours.

        Every peer of a dead conductor finds it dead by itself; the first one frees the nodes,
        and each takes up those that the ring gives it.
        """
        runtime = self._runtime
        runtime.ring.refresh()
        epoch = runtime.ring.epoch
        dead = [peer for peer in runtime.ring.list_dead() if peer.hostname != runtime.host]
        freed = [peer for peer in dead if self._bury(peer)]
        if freed or epoch != self._epoch:
            recovery.adopt_all(runtime, recovery.CRASH)
            self._epoch = epoch

    def _bury(self, peer: Conductor) -> bool:
        """Return whether the peer held nodes, which are free now."""
        runtime = self._runtime
        if peer.online:
            LOG.warning("conductor %s is dead: its nodes are freed", peer.hostname)
            runtime.db.transact(lambda conn: conductors.unregister(conn, peer.hostname))
        return bool(runtime.db.transact(lambda conn: locks.void_all(conn, peer.hostname)))


def make(runtime: ConductorRuntime) -> Callable[[], None]:
    return Leases(runtime).run
