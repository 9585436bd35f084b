"""What a tree has changed since its last turn, and who is to be looked at when.

A turn costs what is due, not what waits: rows stand in a heap by the moment at which they are
looked at, and in an index by the thing whose change wakes them.
"""

from __future__ import annotations

import heapq
import itertools
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from bloomery.model import stacks as model
from bloomery.orchestration.engine.rows import EngineResource
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.resources.machines import QUEUE
from bloomery.orchestration.template.functions import shapes
from bloomery.orchestration.template.redaction import Redaction

NET_S: Final = 30.0  # who waits for what this tree does not have is looked at that often, or
LOOKS_PER_S: Final = 5.0  # less often, where more wait than this allows
LEAST_S: Final = 0.001  # two clocks are never quite the same


class Stored(Protocol):
    """A stack of the tree that can be written."""

    @property
    def id(self) -> str: ...

    def value(self) -> model.Stack: ...


@dataclass(slots=True, eq=False)
class Ledger:
    """Shared by all stacks of one tree.  ``redaction``: of all templates that were read."""

    runtime: EngineRuntime
    root_uuid: str
    redaction: Redaction = field(default_factory=Redaction)
    next_turn: list[EngineResource] = field(
        default_factory=list
    )  # in this turn: their handlers wait for the next
    holdings: Holdings = field(init=False)
    _began_s: float = field(init=False)
    _stacks: dict[str, Stored] = field(default_factory=dict)
    _rows: dict[str, EngineResource] = field(default_factory=dict)
    _removed: dict[str, None] = field(default_factory=dict)
    _templates: list[model.Template] = field(default_factory=list)
    _dropped: list[str] = field(default_factory=list)
    _properties: list[model.Properties] = field(default_factory=list)
    _events: list[model.Event] = field(default_factory=list)
    _snapshots: list[model.Snapshot] = field(default_factory=list)
    _orders: list[int] = field(default_factory=list)
    _due: list[tuple[float, int, EngineResource | str]] = field(default_factory=list)
    _number: Iterator[int] = field(default_factory=itertools.count)
    _waiting: dict[str, dict[str, EngineResource]] = field(default_factory=dict)
    _loans: dict[str, tuple[EngineResource, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.holdings = Holdings()
        self._began_s = self.now()

    def now(self) -> float:
        return self.runtime.clock()

    # --------------------------------------------------------------------------- what has changed

    def change_stack(self, stack: Stored) -> None:
        self._stacks[stack.id] = stack

    def change_row(self, row: EngineResource) -> None:
        self._rows[row.uuid] = row

    def remove_row(self, row: EngineResource) -> None:
        self.forget(row)
        self._rows.pop(row.uuid, None)
        self._removed[row.uuid] = None

    def lend(self, row: EngineResource) -> None:
        """Notice what the kind of another resource does to this one."""
        self._loans.setdefault(row.uuid, (row, row.memory()))

    def settle_loans(self) -> None:
        """Keep what was done to rows that were lent, and wake who waits for them."""
        lent, self._loans = self._loans, {}
        for row, memory in lent.values():
            if row.memory() != memory:
                self.change_row(row)
                self.wake(row.uuid)

    def add_template(self, template: model.Template) -> None:
        self._templates.append(template)

    def drop_template(self, uuid: str) -> None:
        """Drop what nobody refers to any more, instead of leaving it to the hourly purge."""
        self._dropped.append(uuid)

    def add_properties(self, data: Mapping[str, Any], *, hidden: bool) -> str:
        """Keep the values of an action; return their id."""
        value = model.Properties(
            uuid=str(uuid.uuid4()), root_uuid=self.root_uuid, data=data, hidden=hidden
        )
        self._properties.append(value)
        return value.uuid

    def add_snapshot(self, snapshot: model.Snapshot) -> None:
        self._snapshots.append(snapshot)

    def take_order(self, number: int) -> None:
        self._orders.append(number)

    def tell(self, **event: Any) -> None:
        """Note an event; its reason is masked here."""
        event["reason"] = self.redaction.masked(event["reason"])
        self._events.append(
            model.Event(
                uuid=str(uuid.uuid4()),
                root_uuid=self.root_uuid,
                created_at=self.runtime.utc(),
                **event,
            )
        )

    def turn(self, *, rests: bool) -> model.Turn:
        """Return all changes since the last turn."""
        turn = model.Turn(
            stacks=[each.value() for each in self._stacks.values()],
            resources=list(self._rows.values()),
            removed=list(self._removed),
            templates=self._templates,
            dropped=self._dropped,
            properties=self._properties,
            events=self._events,
            snapshots=self._snapshots,
            orders=self._orders,
            rests=rests,
        )
        self._stacks, self._rows, self._removed = {}, {}, {}
        self._templates, self._properties, self._events = [], [], []
        self._snapshots, self._orders, self._dropped = [], [], []
        return turn

    # ---------------------------------------------------------------------------- who is due when

    def schedule(self, row: EngineResource, at_s: float) -> None:
        """Look at the act of a row when the clock comes to ``at_s``."""
        row.due_s = at_s
        heapq.heappush(self._due, (at_s, next(self._number), row))

    def schedule_deadline(self, stack_id: str, at: datetime) -> None:
        at_s = max(self.clock_s(at), self.now() + LEAST_S)
        heapq.heappush(self._due, (at_s, next(self._number), stack_id))

    def clock_s(self, at: datetime) -> float:
        """Tell what the clock shows at a moment in UTC."""
        return self.now() + (at - self.runtime.utc()).total_seconds()

    def forget(self, row: EngineResource) -> None:
        """Look at a row no more."""
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
        """Return who is due now: a row, or the id of a stack whose deadline has come."""
        due_s = self.next_due()
        if due_s is None or due_s > self.now():
            return None
        what = heapq.heappop(self._due)[2]
        if isinstance(what, EngineResource):
            what.due_s = None
        return what

    # ------------------------------------------------------------------------------------- wakes

    def wait(self, row: EngineResource, thing: str) -> None:
        """Let a change of ``thing`` wake a row."""
        if row.waits_for != thing:
            self.stop_waiting(row)
            row.waits_for = thing
            self.change_row(row)
        self._waiting.setdefault(thing, {})[row.uuid] = row

    def net_s(self, thing: str) -> float:
        """Return in how many seconds to look at who waits for ``thing``, even if nothing is told.

        That is a net below events, later where many wait; looks that can be are made in one turn.
        """
        count = max(len(self._waiting), len(self._waiting.get(thing, ())))
        most_s = NET_S
        while count > most_s * LOOKS_PER_S:
            most_s *= 2
        return most_s - (self.now() - self._began_s) % (most_s / 2)

    def interrupt_wait(self, row: EngineResource) -> None:
        """Let nothing wake a row while it is looked at; ``settle_wait`` comes after the look."""
        rows = self._waiting.get(row.waits_for or "", {})
        if rows.pop(row.uuid, None) is not None and not rows:
            del self._waiting[row.waits_for or ""]

    def settle_wait(self, row: EngineResource) -> None:
        """Forget what a row waited for, unless it waits again: then nothing needs be written."""
        if row.waits_for is not None and row.uuid not in self._waiting.get(row.waits_for, {}):
            row.waits_for = None
            self.change_row(row)

    def stop_waiting(self, row: EngineResource) -> None:
        self.interrupt_wait(row)
        self.settle_wait(row)

    def wake(self, thing: str) -> None:
        """Look at who waits for ``thing``; it counts as waiting until it was looked at.

        Of a queue that is the one who waits longest: it wakes the next if it is let in.
        """
        if thing.startswith(QUEUE):
            self._wake_first(thing)
            return
        now = self.now()
        for row in self._waiting.get(thing, {}).values():
            if row.due_s is None or row.due_s > now:
                self.schedule(row, now)

    def _wake_first(self, queue: str) -> None:
        if rows := self._waiting.get(queue):
            row = rows.pop(next(iter(rows)))
            if not rows:
                del self._waiting[queue]
            self.schedule(row, self.now())

    def wake_all(self) -> None:
        for thing in list(self._waiting):
            self.wake(thing)

    def waits(self) -> Mapping[str, object]:
        """Return what rows wait for, as the keys; it changes with the next turn."""
        return self._waiting


@dataclass(slots=True)
class Holdings:
    """How much the values of all resources of a tree hold together.

    Each value has limits of its own, and a stack has room for a thousand large ones.
    """

    nodes: int = 0
    chars: int = 0
    _sizes: dict[str, tuple[int, int]] = field(default_factory=dict)

    def hold(self, row: EngineResource, properties: Mapping[str, Any]) -> None:
        """Count what a resource holds from now on.  Raises RequestLimitExceeded for too much."""
        limits = row.context.limits
        self.count(row, properties)
        if self.nodes > limits.stack_nodes:
            raise limits.exceeded("stack_nodes", "keys and values", "resources that hold more")
        if self.chars > limits.stack_chars:
            raise limits.exceeded("stack_chars", "characters", "resources that hold more")

    def count(self, row: EngineResource, properties: Mapping[str, Any]) -> None:
        """Count what a resource holds that was taken before, however much that is."""
        self.release(row)
        self._sizes[row.uuid] = nodes, chars = shapes.size(dict(properties), row.context.limits)
        self.nodes, self.chars = self.nodes + nodes, self.chars + chars

    def release(self, row: EngineResource) -> None:
        """Count no more what a resource holds that is gone."""
        nodes, chars = self._sizes.pop(row.uuid, (0, 0))
        self.nodes, self.chars = self.nodes - nodes, self.chars - chars
