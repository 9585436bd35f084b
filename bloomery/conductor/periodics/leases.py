"""Conductors that died: free what they hold, and take up their flows.

A living conductor raises the counter in its row.  Whose counter stood still for
``heartbeat_timeout`` on our own monotonic clock is dead; no clock of another machine counts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from bloomery.conductor import recovery
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import conductors, locks

LOG = logging.getLogger(__name__)


class Leases:
    """What was last seen of each peer, and when."""

    def __init__(
        self, runtime: ConductorRuntime, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._seen: dict[str, tuple[int, float]] = {}

    def run(self) -> None:
        runtime, now = self._runtime, self._clock()
        with runtime.db.read() as conn:
            peers = [peer for peer in conductors.list_all(conn) if peer.hostname != runtime.host]
        for peer in peers:
            counter, since = self._seen.get(peer.hostname, (None, now))
            if counter != peer.heartbeat:
                self._seen[peer.hostname] = (peer.heartbeat, now)
            elif now - since >= runtime.conf.conductor.heartbeat_timeout:
                self._bury(peer.hostname, peer.online)

    def _bury(self, hostname: str, online: bool) -> None:
        runtime = self._runtime
        if online:
            LOG.warning("conductor %s is dead: its nodes are freed", hostname)
            runtime.db.transact(lambda conn: conductors.unregister(conn, hostname))
        if runtime.db.transact(lambda conn: locks.void_all(conn, hostname)):
            recovery.adopt_all(runtime, recovery.CRASH)


def make(runtime: ConductorRuntime) -> Callable[[], None]:
    return Leases(runtime).run
