"""Free nodes that this conductor has reserved in the database but does not work on.

The release was lost: the database was away, or a commit's reply was.  A task queues at the node's
lock before it reserves, and leaves the lock after the release.  So a reservation unchanged in two
runs, each time with an idle lock, has no task.
"""

from __future__ import annotations

import logging

from bloomery.conductor import recovery
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import locks

LOG = logging.getLogger(__name__)


class Strays:
    """Remembers the idle reservations of the last run."""

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
            LOG.warning("node %s: freed: its reservation had no task", guard.node_uuid)
