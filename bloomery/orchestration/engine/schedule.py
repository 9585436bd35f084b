"""The schedule of a tree: each resource is stepped at a time, or after an awaited change.

The cost of a transaction depends on the due rows, not on the waiting ones: a heap sorts rows by
time, and an index finds them by the awaited UUID.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from bloomery.orchestration.engine.changes import TreeChanges
from bloomery.orchestration.engine.resource import EngineResource
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.resources.machines import QUEUE

POLL_S: Final = 30.0  # between two polls of an object outside of this tree
POLLS_PER_S: Final = 5.0  # most of them; with more waits the polls are rarer
LEAST_S: Final = 0.001  # two clocks are never quite the same


@dataclass(slots=True, eq=False)
class Schedule:
    """The schedule of all stacks of one tree.  ``due_next``: rows to step in the next turn."""

    runtime: EngineRuntime
    changes: TreeChanges
    due_next: list[EngineResource] = field(default_factory=list)
    _began_s: float = field(init=False)
    _due: list[tuple[float, int, EngineResource | str]] = field(default_factory=list)
    _number: Iterator[int] = field(default_factory=itertools.count)
    _waiting: dict[str, dict[str, EngineResource]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._began_s = self.now()

    def now(self) -> float:
        return self.runtime.clock()

    def step_at(self, row: EngineResource, at_s: float) -> None:
        """Step a row when the clock reaches ``at_s``."""
        row.due_s = at_s
        heapq.heappush(self._due, (at_s, next(self._number), row))

    def set_deadline(self, stack_id: str, at: datetime) -> None:
        at_s = max(self.clock_s(at), self.now() + LEAST_S)
        heapq.heappush(self._due, (at_s, next(self._number), stack_id))

    def clock_s(self, at: datetime) -> float:
        """Return the clock's time at a moment in UTC."""
        return self.now() + (at - self.runtime.utc()).total_seconds()

    def forget(self, row: EngineResource) -> None:
        """Remove a row from the schedule."""
        row.due_s = None
        self.stop_waiting(row)

    def next_due(self) -> float | None:
        while self._due:
            at_s, _number, what = self._due[0]
            if isinstance(what, str) or what.due_s == at_s:
                return at_s
            heapq.heappop(self._due)
        return None

    def pop_due(self) -> EngineResource | str | None:
        """Return what is due now: a row, or the id of a stack whose deadline has come."""
        due_s = self.next_due()
        if due_s is None or due_s > self.now():
            return None
        what = heapq.heappop(self._due)[2]
        if isinstance(what, EngineResource):
            what.due_s = None
        return what

    def wait(self, row: EngineResource, source: str) -> None:
        """Let a change of ``source`` wake a row."""
        if row.waits_for != source:
            self.stop_waiting(row)
            row.waits_for = source
            self.changes.change_row(row)
        self._waiting.setdefault(source, {})[row.uuid] = row

    def poll_after_s(self, source: str) -> float:
        """Return the seconds until a row that waits for ``source`` is polled, for lost events.

        Polls are rarer when many rows wait, and fall on common times to share a turn.
        """
        count = max(len(self._waiting), len(self._waiting.get(source, ())))
        most_s = POLL_S
        while count > most_s * POLLS_PER_S:
            most_s *= 2
        return most_s - (self.now() - self._began_s) % (most_s / 2)

    def interrupt_wait(self, row: EngineResource) -> None:
        """Let nothing wake a row while it is stepped; ``settle_wait`` follows the step."""
        rows = self._waiting.get(row.waits_for or "", {})
        if rows.pop(row.uuid, None) is not None and not rows:
            del self._waiting[row.waits_for or ""]

    def settle_wait(self, row: EngineResource) -> None:
        """Clear ``waits_for`` of a row, unless it waits again: then nothing needs to be written."""
        if row.waits_for is not None and row.uuid not in self._waiting.get(row.waits_for, {}):
            row.waits_for = None
            self.changes.change_row(row)

    def stop_waiting(self, row: EngineResource) -> None:
        self.interrupt_wait(row)
        self.settle_wait(row)

    def wake(self, source: str) -> None:
        """Step the rows that wait for ``source``; of a queue, the row that waits longest.

        A row that leaves its queue wakes the next one.
        """
        now = self.now()
        if source.startswith(QUEUE):
            if rows := self._waiting.get(source):
                row = rows.pop(next(iter(rows)))
                if not rows:
                    del self._waiting[source]
                self.step_at(row, now)
            return
        for row in self._waiting.get(source, {}).values():
            if row.due_s is None or row.due_s > now:
                self.step_at(row, now)

    def wake_all(self) -> None:
        for source in list(self._waiting):
            self.wake(source)

    def waits(self) -> Mapping[str, object]:
        """Return the awaited UUIDs and queues as keys of a live map."""
        return self._waiting
