"""The changes of a tree since its last transaction, and the stored size of its resources."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bloomery.model import stacks as model
from bloomery.orchestration.engine.resource import EngineResource
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.template.functions import shapes
from bloomery.orchestration.template.redaction import Redaction


@dataclass(slots=True)
class StoredSize:
    """The size of the values of all resources of a tree together.

    Each value has limits of its own, but a tree has room for a thousand large values.
    """

    nodes: int = 0
    chars: int = 0
    _sizes: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, row: EngineResource, properties: Mapping[str, Any]) -> None:
        """Count new values of a resource.  Raises RequestLimitExceeded for too much."""
        limits = row.context.limits
        self.count(row, properties)
        if self.nodes > limits.stack_nodes:
            raise limits.exceeded("stack_nodes", "keys and values", "resources that hold more")
        if self.chars > limits.stack_chars:
            raise limits.exceeded("stack_chars", "characters", "resources that hold more")

    def count(self, row: EngineResource, properties: Mapping[str, Any]) -> None:
        """Count values that were stored before, whatever their size."""
        self.remove(row)
        self._sizes[row.uuid] = nodes, chars = shapes.size(dict(properties), row.context.limits)
        self.nodes, self.chars = self.nodes + nodes, self.chars + chars

    def remove(self, row: EngineResource) -> None:
        nodes, chars = self._sizes.pop(row.uuid, (0, 0))
        self.nodes, self.chars = self.nodes - nodes, self.chars - chars


@dataclass(slots=True, eq=False)
class TreeChanges:
    """The unwritten changes of one tree.  ``redaction``: of all its templates read so far."""

    runtime: EngineRuntime
    root_uuid: str
    redaction: Redaction = field(default_factory=Redaction)
    stored_size: StoredSize = field(default_factory=StoredSize)
    _stacks: dict[str, Callable[[], model.Stack]] = field(default_factory=dict)
    _rows: dict[str, EngineResource] = field(default_factory=dict)
    _removed: dict[str, None] = field(default_factory=dict)
    _templates: list[model.Template] = field(default_factory=list)
    _dropped: list[str] = field(default_factory=list)
    _properties: list[model.Properties] = field(default_factory=list)
    _events: list[model.Event] = field(default_factory=list)
    _snapshots: list[model.Snapshot] = field(default_factory=list)
    _orders: list[int] = field(default_factory=list)
    _tracked: dict[str, tuple[EngineResource, str]] = field(default_factory=dict)

    def change_stack(self, stack_id: str, value: Callable[[], model.Stack]) -> None:
        """Write a stack in the next transaction; ``value`` is called then."""
        self._stacks[stack_id] = value

    def change_row(self, row: EngineResource) -> None:
        self._rows[row.uuid] = row

    def remove_row(self, row: EngineResource) -> None:
        self.stored_size.remove(row)
        self._rows.pop(row.uuid, None)
        self._removed[row.uuid] = None

    def track_changes(self, row: EngineResource) -> None:
        """Record the state of a row, because another resource's kind may change it."""
        self._tracked.setdefault(row.uuid, (row, row.memory()))

    def take_tracked(self) -> list[EngineResource]:
        """Return the tracked rows that have changed, mark them for writing, and stop tracking."""
        tracked, self._tracked = self._tracked, {}
        changed = [row for row, memory in tracked.values() if row.memory() != memory]
        for row in changed:
            self.change_row(row)
        return changed

    def add_template(self, template: model.Template) -> None:
        self._templates.append(template)

    def drop_template(self, uuid: str) -> None:
        """Drop an unused template now, instead of leaving it to the hourly purge."""
        self._dropped.append(uuid)

    def add_properties(self, data: Mapping[str, Any], *, has_secret: bool) -> str:
        """Store the property values of an action; return their UUID."""
        value = model.Properties(
            uuid=str(uuid.uuid4()), root_uuid=self.root_uuid, data=data, has_secret=has_secret
        )
        self._properties.append(value)
        return value.uuid

    def add_snapshot(self, snapshot: model.Snapshot) -> None:
        self._snapshots.append(snapshot)

    def take_order(self, number: int) -> None:
        self._orders.append(number)

    def emit_event(self, **event: Any) -> None:
        """Add an event; its reason is masked here."""
        event["reason"] = self.redaction.masked(event["reason"])
        self._events.append(
            model.Event(
                uuid=str(uuid.uuid4()),
                root_uuid=self.root_uuid,
                created_at=self.runtime.utc(),
                **event,
            )
        )

    def collect(self, *, is_idle: bool) -> model.Turn:
        """Return all changes since the last call."""
        turn = model.Turn(
            stacks=[value() for value in self._stacks.values()],
            resources=list(self._rows.values()),
            removed=list(self._removed),
            templates=self._templates,
            dropped=self._dropped,
            properties=self._properties,
            events=self._events,
            snapshots=self._snapshots,
            orders=self._orders,
            is_idle=is_idle,
        )
        self._stacks, self._rows, self._removed = {}, {}, {}
        self._templates, self._properties, self._events = [], [], []
        self._snapshots, self._orders, self._dropped = [], [], []
        return turn
