"""The search for stacks without an engine: with waiting orders, or with a dead engine's lock.

It runs when the engine starts, when an engine has died, after events of stacks from other
processes, and every ``periodic_interval``.  To wake a stack twice is harmless: its lock decides.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container

from bloomery.db import stack_locks, stack_orders
from bloomery.db.engine import Database

LOG = logging.getLogger(__name__)


class Sweeper:
    """``ours``: the roots that this engine works on; ``wake`` is called with each root."""

    def __init__(
        self,
        db: Database,
        *,
        ours: Container[str],
        live_ids: Callable[[], list[str]],
        wake: Callable[[str], object],
    ) -> None:
        self._db, self._ours = db, ours
        self._live_ids, self._wake = live_ids, wake

    def sweep(self) -> int:
        """Wake stacks that have orders or no live engine; return their number."""
        with self._db.read() as conn:
            orphans = stack_locks.list_orphans(conn, self._live_ids())
            ordered = stack_orders.list_roots(conn)
        roots = dict.fromkeys([*orphans, *(root for root in ordered if root in self._ours)])
        for root in roots:
            self._wake(root)
        return len(roots)
