"""Counts of nodes by condition, held in each process and kept up to date by events.

The first look reads all nodes.  Each later look reads the events since then, and the nodes that
these name: its cost grows with what happened, not with the number of nodes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from bloomery.conductor import states
from bloomery.db import events, nodes
from bloomery.db.engine import Database
from bloomery.rpc.ring import Ring

RELOAD_S: Final = 1800  # all nodes are read again; events are kept for an hour at least
MOST_EVENTS: Final = 5000  # in one look; beyond, all nodes are read
_COLUMNS: Final = (
    "uuid", "driver", "conductor_group", "provision_state", "power_state", "fault", "maintenance",
    "last_error", "resource_class", "owner", "lessee", "provision_updated_at",
)  # fmt: skip


class Condition(NamedTuple):
    """The columns by which nodes are counted; ``host``: the conductor that serves the node."""

    provision_state: str | None
    power_state: str | None
    fault: str | None
    maintenance: bool
    last_error: bool
    resource_class: str | None
    owner: str | None
    lessee: str | None
    host: str | None

    def is_of(self, project: str) -> bool:
        return project in (self.owner, self.lessee)


class Group(NamedTuple):
    """The nodes of one condition; ``since``: the first move into it, if it is a bad state."""

    condition: Condition
    nodes: int
    since: datetime | None


class FleetCounts:
    """The nodes of each condition, with ``provision_updated_at``; safe to use from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._mutex = threading.Lock()
        self._counts: dict[Condition, dict[str, datetime | None]] = {}
        self._place: dict[str, dict[str, datetime | None]] = {}  # of a node in the counts
        self._last_id = self._epoch = -1
        self._loaded_at = 0.0

    def look(self, db: Database, ring: Ring) -> tuple[int, list[Group]]:
        """Return the number of the last event in the counts, and all groups as of now."""
        with self._mutex:
            with db.read() as conn:
                self._update(conn, ring)
            groups = []
            for condition, times in self._counts.items():
                is_bad = condition.provision_state in states.BAD_STATES
                since = min(filter(None, times.values()), default=None) if is_bad else None
                groups.append(Group(condition, len(times), since))
            return self._last_id, groups

    def _update(self, conn: sa.Connection, ring: Ring) -> None:
        """Count the changes since the last look.  After an error the next look repeats them."""
        epoch, last_id = ring.epoch, events.last_id(conn)
        is_old = self._clock() - self._loaded_at >= RELOAD_S
        if is_old or epoch != self._epoch or not 0 <= self._last_id <= last_id:
            return self._reload(conn, ring)
        batch = events.list_objects_after(conn, self._last_id, MOST_EVENTS)
        if len(batch) == MOST_EVENTS:
            return self._reload(conn, ring)
        changed = {each.object_uuid for each in batch if each.object == "node"}
        stored = nodes.list_rows_of(conn, changed, _COLUMNS)
        for uuid in changed:
            self._place.pop(uuid, {}).pop(uuid, None)
        self._add(stored, ring)
        self._counts = {each: nodes_in for each, nodes_in in self._counts.items() if nodes_in}
        self._last_id = batch[-1].id if batch else last_id
        return None

    def _reload(self, conn: sa.Connection, ring: Ring) -> None:
        self._last_id, self._counts, self._place = -1, {}, {}
        epoch, last_id, loaded_at = ring.epoch, events.last_id(conn), self._clock()
        self._add(nodes.list_rows(conn, nodes.Query(columns=_COLUMNS)), ring)
        self._last_id, self._epoch, self._loaded_at = last_id, epoch, loaded_at

    def _add(self, rows: Iterable[Any], ring: Ring) -> None:
        for row in rows:
            host = ring.find_host(driver=row.driver, group=row.conductor_group, uuid=row.uuid)
            condition = Condition(
                row.provision_state, row.power_state, row.fault, bool(row.maintenance),
                bool(row.last_error), row.resource_class, row.owner, row.lessee, host,
            )  # fmt: skip
            place = self._place[row.uuid] = self._counts.setdefault(condition, {})
            place[row.uuid] = row.provision_updated_at
