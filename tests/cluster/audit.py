"""What must hold whatever happens: seen from outside, in the rows and in what sinks were told.

After each commit the audit compares the rows of nodes and conductors with what they were, and
knows whose commit it was: nobody changes a node that somebody else holds, and nobody is buried
who has beaten within the time-out.  In the end every node is at rest, every order that was
acknowledged has left its trace, and every event was told, those of one object in their order.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from bloomery.conductor import states
from bloomery.conductor.states import State
from bloomery.db.events import EventRow
from bloomery.model.step import OPEN_RUNS
from tests.cluster.virtual import Scheduler

_AT_REST: Final = frozenset(
    {s.value for s in State}
    - {s.value for s in states.UNSTABLE_STATES}
    - {s.value for s in states.HOLD_STATES}
)


class NodeRow(NamedTuple):
    """What the audit looks at; a change of any of it wants the lock."""

    uuid: str
    reservation: str | None
    lock_generation: int
    provision_state: str
    target_provision_state: str | None
    power_state: str | None
    target_power_state: str | None
    last_error: str | None


_NODES: Final = f"SELECT {', '.join(NodeRow._fields)} FROM nodes ORDER BY id"
_LOST: Final = "nothing was working on it"  # what recovery says of a flow without rows
_BEATS: Final = "SELECT hostname, heartbeat FROM conductors"


@dataclass(slots=True)
class Audit:
    """``path``: the database of the site; ``timeout_s``: heartbeat_timeout."""

    scheduler: Scheduler
    path: str
    timeout_s: float
    faults: list[str] = field(default_factory=list)
    acknowledged: dict[str, str] = field(default_factory=dict)  # request id: what was ordered
    told: dict[int, EventRow] = field(default_factory=dict)
    started_at: dict[str, float] = field(default_factory=dict)  # when a host's life began
    _order: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _nodes: dict[str, NodeRow] = field(default_factory=dict)
    _beats: dict[str, tuple[int, float]] = field(default_factory=dict)
    _conn: Any = None

    def fault(self, what: str) -> None:
        self.faults.append(what)
        self.scheduler.note(f"FAULT {what}")

    def rows(self, query: str, *args: Any) -> list[Any]:
        if self._conn is None:
            self._conn = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        return self._conn.execute(query, args).fetchall()

    def nodes(self) -> list[NodeRow]:
        return [NodeRow(*row) for row in self.rows(_NODES)]

    # --------------------------------------------------------------------- after each commit

    def committed(self, host: str) -> None:
        """Look at what ``host`` has just committed."""
        for row in self.nodes():
            before = self._nodes.get(row.uuid)
            self._nodes[row.uuid] = row
            if before is not None and before != row:
                self._check_change(host, before, row)
        now = self.scheduler.now
        for name, counter in self.rows(_BEATS):
            if self._beats.get(name, (None, 0))[0] != counter:
                self._beats[name] = counter, now

    def _check_change(self, host: str, before: NodeRow, after: NodeRow) -> None:
        self.scheduler.note(f"{host} wrote {after[1:]}")
        if before.reservation in (None, host):
            return
        voided = before._replace(reservation=None, lock_generation=before.lock_generation + 1)
        if after != voided:
            self.fault(f"{host} wrote {after} while {before.reservation} held it: {before}")
            return
        _, beaten_at = self._beats.get(before.reservation, (0, 0.0))
        silent_s = self.scheduler.now - beaten_at
        if silent_s < self.timeout_s - 0.1:
            self.fault(f"{host} buried {before.reservation}, silent for {silent_s:.1f} s only")

    # ------------------------------------------------------------------------------- events

    def tell(self, event: EventRow) -> None:
        """Take an event as a sink does; it may come twice, and never after a later one."""
        if event.id in self.told:
            return
        self.told[event.id] = event
        if event.id < self._order[event.object_uuid]:
            self.fault(f"event {event.id} was told after {self._order[event.object_uuid]}")
        self._order[event.object_uuid] = event.id

    def untold(self) -> list[int]:
        return [
            number for (number,) in self.rows("SELECT id FROM events") if number not in self.told
        ]

    # ------------------------------------------------------------------------------ the end

    def unrest(self) -> list[str]:
        """Say what has not come to rest."""
        busy = [
            f"{row}" for row in self.nodes()
            if row.reservation is not None or row.provision_state not in _AT_REST
        ]  # fmt: skip
        open_runs = ", ".join(f"'{state}'" for state in sorted(OPEN_RUNS))
        runs = self.rows(
            "SELECT node_uuid, phase, step, state, conductor FROM step_runs "
            f"WHERE state IN ({open_runs})"
        )
        return busy + [f"step {row}" for row in runs]

    def check_end(self) -> None:
        """Everything is at rest and was told; every order has left its trace."""
        for what in self.unrest():
            self.fault(f"at the end: {what}")
        if untold := self.untold():
            self.fault(f"events were never told: {untold[:10]}")
        named = {row[0] for row in self.rows(
            "SELECT request_id FROM node_history UNION SELECT request_id FROM step_runs"
        )}  # fmt: skip
        for request_id, order in self.acknowledged.items():
            if request_id not in named:
                self.fault(f"{order} was acknowledged and left no trace")
        for row in self.nodes():
            failed = row.provision_state in {s.value for s in states.FAILURE_STATES}
            if failed and not row.last_error:
                self.fault(f"node {row.uuid} is {row.provision_state} and does not say why")
        for (lost,) in self.rows("SELECT event FROM node_history WHERE event LIKE ?", f"%{_LOST}%"):
            self.fault(f"a flow was lost: {lost}")
