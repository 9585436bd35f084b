"""The store of an engine's turns in memory.

``service/store.py`` is its counterpart in a database.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bloomery.model.stacks import (
    Event,
    Order,
    Properties,
    Snapshot,
    Stack,
    StoredResource,
    Template,
    Tree,
    Turn,
)


@dataclass(slots=True)
class MemoryStore:
    """The parts of all trees by UUID.  Resources of deleted stacks stay until they are dropped."""

    stacks: dict[str, Stack] = field(default_factory=dict)
    resources: dict[str, StoredResource] = field(default_factory=dict)
    templates: dict[str, Template] = field(default_factory=dict)
    properties: dict[str, Properties] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    orders: dict[int, Order] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def load(self, root_uuid: str) -> Tree:
        """Return a tree with its waiting orders, and its root even if that is deleted."""
        stacks = [each for each in self.stacks.values() if each.root_uuid == root_uuid]
        live = {each.uuid for each in stacks if each.deleted_at is None}
        return Tree(
            stacks=[each for each in stacks if each.uuid in {*live, root_uuid}],
            resources=[each.copy() for each in self.resources.values() if each.stack_uuid in live],
            templates=dict(self.templates),
            properties=dict(self.properties),
            orders=self._orders_of(root_uuid),
        )

    def list_orders(self, root_uuid: str, after_id: int) -> Tree:
        """Return the orders after the ID ``after_id``, with the stacks that they name."""
        orders = [each for each in self._orders_of(root_uuid) if each.id > after_id]
        uuids = dict.fromkeys(each.stack_uuid for each in orders)
        return Tree(
            stacks=[self.stacks[uuid] for uuid in uuids if uuid in self.stacks],
            resources=(),
            templates=dict(self.templates),
            properties={},
            orders=orders,
        )

    def write(self, root_uuid: str, turn: Turn) -> None:
        self.stacks |= _by_uuid(turn.stacks)
        self.resources |= _by_uuid(each.copy() for each in turn.resources)
        self.templates |= _by_uuid(turn.templates)
        self.properties |= _by_uuid(turn.properties)
        self.snapshots |= _by_uuid(turn.snapshots)
        self.events += turn.events
        for uuid in turn.removed:
            self.resources.pop(uuid, None)
        for uuid in turn.dropped:
            self.templates.pop(uuid, None)
        for number in turn.orders:
            self.orders.pop(number, None)

    def accept(
        self, order: Order, *, stacks: Iterable[Stack] = (), templates: Iterable[Template] = ()
    ) -> Order:
        """Store an order with the state that clients see from now on; return it with its id."""
        order = dataclasses.replace(order, id=next(self._numbers))
        self.stacks |= _by_uuid(stacks)
        self.templates |= _by_uuid(templates)
        self.orders[order.id] = order
        return order

    def _orders_of(self, root_uuid: str) -> list[Order]:
        return [each for _id, each in sorted(self.orders.items()) if each.root_uuid == root_uuid]


def _by_uuid(values: Iterable[Any]) -> dict[str, Any]:
    return {each.uuid: each for each in values}
