"""Heartbeats without news: kept in memory for a second, and written together.

10,000 waiting machines send 333 heartbeats a second.  A heartbeat that resumes a flow, or brings
new values, is written under the lock before its answer.  Any other heartbeat needs no lock and
waits for the next flush, which skips nodes reserved since (``lock_generation``).

A crash loses one second of heartbeats and fails no flow: a heartbeat is deferred only while at
least two thirds of the time-out are left (``may_be_deferred``).
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import states
from bloomery.conductor.timers import Timers
from bloomery.conductor.workers import Workers
from bloomery.conf.conductor import Conductor
from bloomery.db import nodes, rows
from bloomery.db.engine import Database
from bloomery.model.node import Node
from bloomery.model.rules import agents

LOG = logging.getLogger(__name__)

_EVERY_S: Final = 1.0
_SHARE: Final = 3  # a heartbeat is deferred within the first third of the time-out


def may_be_deferred(node: Node, options: Conductor, now: datetime) -> bool:
    """Return whether the flow outlives the loss of this heartbeat in a crash."""
    limit = states.WAIT_LIMITS[states.State(str(node.provision_state))]
    limit_s, since = getattr(options, limit.option), getattr(node, limit.since)
    return not limit_s or (since is not None and now - since < timedelta(seconds=limit_s) / _SHARE)


class Heartbeats:
    """The last heartbeat of each agent since the last flush; thread-safe."""

    def __init__(self, db: Database, timers: Timers, workers: Workers) -> None:
        self._db, self._timers, self._workers = db, timers, workers
        self._mutex = threading.Lock()
        self._calls: dict[str, dict[str, Any]] = {}

    def note(self, node: Node, now: datetime, *, counts_anew: bool) -> None:
        """Keep a heartbeat of ``node`` as read; ``counts_anew`` restarts the node's time-out."""
        info = node.driver_internal_info | {agents.LAST_HEARTBEAT: now.isoformat()}
        call = {
            "ident": node.uuid, "generation": node.lock_generation, "at": now,
            "info": rows.dump(info), "since": now if counts_anew else node.provision_updated_at,
        }  # fmt: skip
        with self._mutex:
            is_first = not self._calls
            self._calls[node.uuid] = call
        if is_first:
            self._timers.after(_EVERY_S, self._flush_in_worker)

    def flush(self) -> None:
        """Write the kept heartbeats in one transaction.

        Keep them again where the database fails.
        """
        with self._mutex:
            calls, self._calls = self._calls, {}
        if not calls:
            return
        ordered = [calls[uuid] for uuid in sorted(calls)]  # so that no two writers deadlock
        try:
            self._db.transact(lambda conn: nodes.note_agents(conn, ordered))
        except (errors.Failure, sa.exc.SQLAlchemyError) as exc:
            LOG.warning("cannot write %d heartbeats yet: %s", len(calls), errors.brief(exc))
            with self._mutex:
                self._calls = calls | self._calls
            self._timers.after(_EVERY_S, self._flush_in_worker)

    def _flush_in_worker(self) -> None:
        try:
            self._workers.spawn(self.flush)
        except errors.NoFreeConductorWorker:
            self._timers.after(_EVERY_S, self._flush_in_worker)
