"""Heartbeats without news: kept in memory, and written together at a slow pace.

10,000 waiting machines send 333 heartbeats a second.  A heartbeat that resumes a flow, or brings
new values, is written under the lock before its answer.  Any other heartbeat needs no lock.  It is
written when the heartbeat in the row is a sixth of the time-out old (``pace_s``).  A flush skips
nodes reserved since (``lock_generation``).

A crash loses a sixth of the time-out at most and fails no flow: a heartbeat is deferred only while
at least two thirds of the time-out are left (``may_be_deferred``).  Rows of nodes whose agents have
fallen silent have their last heartbeat a sixth of the time-out later, so that time-outs are exact.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import states
from bloomery.conductor.timers import Timers
from bloomery.conductor.workers import Workers
from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.db import nodes, rows
from bloomery.db.engine import Database
from bloomery.model.node import Node
from bloomery.model.rules import agents

LOG = logging.getLogger(__name__)

_EVERY_S: Final = 1.0
_SHARE: Final = 3  # a heartbeat is deferred within the first third of the time-out
_WRITES: Final = 6  # in a time-out
_LONGEST_S: Final = 300  # where no time-out counts from a heartbeat


def may_be_deferred(node: Node, options: Conductor, now: datetime) -> bool:
    """Return whether the flow outlives the loss of this heartbeat in a crash."""
    limit = states.WAIT_LIMITS[states.State(str(node.provision_state))]
    limit_s, since = getattr(options, limit.option), getattr(node, limit.since)
    return not limit_s or (since is not None and now - since < timedelta(seconds=limit_s) / _SHARE)


def pace_s(node: Node, conf: Conf) -> float:
    """Return how old the heartbeat in the row may become, while later ones are in memory.

    Drivers read the row to see whether an agent lives, on fast track and for the power of "agent".
    """
    limit = states.WAIT_LIMITS.get(states.State(str(node.provision_state)))
    limits_s = [_LONGEST_S if limit is None else getattr(conf.conductor, limit.option)]
    is_fast = agents.is_fast_track(node.driver_info, conf.deploy.fast_track)
    if is_fast or node.power_interface == "agent":
        limits_s.append(conf.deploy.fast_track_timeout)
    return min(filter(None, limits_s), default=_LONGEST_S) / _WRITES


class Heartbeats:
    """The last heartbeat of each agent that is not in its row; thread-safe."""

    def __init__(self, db: Database, timers: Timers, workers: Workers) -> None:
        self._db, self._timers, self._workers = db, timers, workers
        self._mutex = threading.Lock()
        self._calls: dict[str, dict[str, Any]] = {}
        self._due: dict[str, float] = {}  # on the monotonic clock
        self._is_armed = False

    def note(self, node: Node, now: datetime, *, counts_anew: bool, pace_s: float) -> None:
        """Keep a heartbeat of ``node`` as read; ``counts_anew`` restarts the node's time-out."""
        info = node.driver_internal_info | {agents.LAST_HEARTBEAT: now.isoformat()}
        call = {
            "ident": node.uuid, "generation": node.lock_generation, "at": now,
            "info": rows.dump(info), "since": now if counts_anew else node.provision_updated_at,
        }  # fmt: skip
        stored = node.driver_internal_info.get(agents.LAST_HEARTBEAT)
        times = [stored and datetime.fromisoformat(stored)]
        times += [node.provision_updated_at] if counts_anew else []
        age_s = max((now - each).total_seconds() if each else pace_s for each in times)
        with self._mutex:
            self._calls[node.uuid] = call
            self._due[node.uuid] = time.monotonic() + min(max(pace_s - age_s, 0), pace_s)
            self._arm()

    def last_at(self, node_uuid: str) -> datetime | None:
        """Return the time of a heartbeat that is not in the node's row yet, or None."""
        call = self._calls.get(node_uuid)
        return None if call is None else call["at"]

    def flush(self, *, only_due: bool = False) -> None:
        """Write the kept heartbeats in one transaction.

        Keep them again where the database fails.
        """
        now = time.monotonic()
        with self._mutex:
            uuids = [each for each, due in self._due.items() if due <= now or not only_due]
            calls = {uuid: self._calls.pop(uuid) for uuid in uuids}
            due = {uuid: self._due.pop(uuid) for uuid in uuids}
        if not calls:
            return
        ordered = [calls[uuid] for uuid in sorted(calls)]  # so that no two writers deadlock
        try:
            self._db.transact(lambda conn: nodes.note_agents(conn, ordered))
        except (errors.Failure, sa.exc.SQLAlchemyError) as exc:
            LOG.warning("cannot write %d heartbeats yet: %s", len(calls), errors.brief(exc))
            with self._mutex:
                self._calls, self._due = calls | self._calls, due | self._due
                self._arm()

    def _arm(self) -> None:
        """Look for due heartbeats in a second, and so on while there are any; under the mutex."""
        if self._calls and not self._is_armed:
            self._is_armed = True
            self._timers.after(_EVERY_S, self.tick)

    def tick(self) -> None:
        """Write the heartbeats that are due, in a worker."""
        now = time.monotonic()
        with self._mutex:
            self._is_armed = False
            is_due = any(due <= now for due in self._due.values())
            self._arm()
        if is_due:
            with contextlib.suppress(errors.NoFreeConductorWorker):  # the next second tries again
                self._workers.spawn(self.flush, only_due=True)
