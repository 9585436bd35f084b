"""Nodes that the rows say are ours and that nothing here works on: free them.

The release of such a node was lost: its database was away for too long, or the reply to a commit
was.  A task queues at the node's lock before it reserves, and leaves it after the release: so a
reservation that stands unchanged in two looks, each time with nobody at the lock, has no task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from bloomery.conductor import recovery
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import locks

LOG = logging.getLogger(__name__)


class Strays:
    """Remembers what the last look has found."""

    def __init__(self, runtime: ConductorRuntime) -> None:
        self._runtime = runtime
        self._suspects: frozenset[locks.Guard] = frozenset()

    def run(self) -> None:
        runtime = self._runtime
        with runtime.db.read() as conn:
            guards = locks.list_of_holder(conn, runtime.host)
        idle = frozenset(
            guard for guard in guards if not runtime.node_locks.is_used(guard.node_uuid)
        )
        strays, self._suspects = idle & self._suspects, idle
        for guard in strays:
            self._free(guard)
        if strays:
            recovery.adopt_all(runtime, recovery.CRASH)

    def _free(self, guard: locks.Guard) -> None:
        if self._runtime.db.transact(lambda conn: locks.release(conn, guard)):
            LOG.warning("node %s: freed: it was reserved, and had no task", guard.node_uuid)


def make(runtime: ConductorRuntime) -> Callable[[], None]:
    return Strays(runtime).run
