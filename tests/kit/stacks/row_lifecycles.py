"""Whole lives of stacks over rows, as simulations tell them: by one engine after another.

Each loads the tree, works on it and is forgotten; so that what a stack comes to depends on nothing
but its rows.
"""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

from bloomery.db.engine import Database
from bloomery.model import stacks as model
from bloomery.model.stacks import OrderKind
from bloomery.orchestration.engine.stacks import EngineStack
from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.engine_host.locks import Lease, StackLock
from bloomery.orchestration.engine_host.store import RowStore
from bloomery.orchestration.simulation import Simulation
from bloomery.orchestration.simulation.lifecycle import Lifecycle
from bloomery.orchestration.simulation.results import Result
from bloomery.orchestration.stack import Stack
from tests.kit.stacks import trees


class RowLifecycle(Lifecycle):
    """Takes the place of ``simulation.Lifecycle``.

    ``turns``: after so many turns an engine is forgotten; None: when it has followed its order.
    """

    def __init__(
        self, db: Database, simulation: Simulation | None = None, *, turns: int | None
    ) -> None:
        super().__init__(simulation)
        self._db = db
        self._turns = turns
        self._made = 0  # turns of the present engine
        self._stored: set[str] = set()  # templates that engines have written
        self._store = RowStore(db, trees.SEALER)
        self._lease: Lease | None = None
        self._runtime = self.simulation.runtime()

    def create(self, stack: Stack, *, rollback: bool = False) -> Result:
        self._runtime = dataclasses.replace(self._runtime, timeout_s=stack.timeout_s)
        return super().create(stack, rollback=rollback)

    def _order(self, kind: OrderKind, row: model.Stack) -> EngineStack:
        """Accept an order, and let one engine after the other follow it."""
        assert self.tree is not None
        assert self.stack is not None
        templates = self._stored_templates()
        kinds = self.stack.definition.definition.environment.registry.kinds
        self._runtime = dataclasses.replace(self._runtime, kinds=kinds)
        order = model.Order(root_uuid=row.root_uuid, stack_uuid=row.uuid, kind=kind)
        trees.accept(self._db, order, row, templates=templates)
        self.simulation.store(model.Turn(stacks=[row]))
        self.simulation.emit_events([_started(row, self.simulation)])
        self._lease, failure = None, None
        while not self._turn(row):
            failure = self.stack.failure or failure
        self.stack.failure = self.stack.failure or failure
        return self.stack

    def _stored_templates(self) -> tuple[model.Template, ...]:
        """The templates that clients gave, with their parameters where rows have them."""
        assert self.tree is not None
        library = self.tree.actions.library
        return tuple(
            _with_parameters(template, library.stack(self.stack.row, uuid, timeout_s=0))
            for uuid, template in library.templates.items()
            if self.stack is not None and uuid not in self._stored
        )

    def _turn(self, row: model.Stack) -> bool:
        """Make one turn; was it the last?"""
        if self._lease is None or self._made == self._turns:
            self._begin(row)
        self._made += 1
        assert self._lease is not None
        assert self.tree is not None
        turn = self.tree.turn()
        released = self._store.write(row.root_uuid, self._lease, turn).released
        self.simulation.store(turn)
        self._stored |= {each.uuid for each in turn.templates}
        self.simulation.emit_events(turn.events)
        due_s = self.tree.due_at()
        if not released and (due_s is None or due_s > self.simulation.clock.now()):
            self.simulation.clock.wait(due_s)
        return released

    def _begin(self, row: model.Stack) -> None:
        """Let an engine take the tree over that knows its rows and nothing else."""
        self._made = 0
        lock = StackLock(self._db, row.root_uuid, str(uuid.uuid4()))
        self._lease = lock.acquire(trees.nobody)
        self._store = RowStore(self._db, trees.SEALER)
        self.tree = StackTree.load(self._store.load(row.root_uuid), self._runtime)
        self.stack = self.tree.stacks[row.uuid]


def _with_parameters(template: model.Template, stack: Stack) -> model.Template:
    given = dict(stack.definition.user_parameters)
    environment = dict(template.environment)
    environment["parameters"] = {**environment.get("parameters", {}), **given}
    return dataclasses.replace(template, environment=environment)


def _started(row: model.Stack, simulation: Simulation) -> model.Event:
    values: dict[str, Any] = {
        "action": row.action, "name": row.name, "reason": row.reason,
        "stack_uuid": row.uuid, "root_uuid": row.root_uuid, "physical_id": row.uuid,
        "created_at": simulation.utc(),
    }  # fmt: skip
    return trees.event(row.status, **values)
