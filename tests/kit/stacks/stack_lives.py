"""Whole lives of stacks on the engine: every order there is, and engines that die between turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bloomery.model import stacks as model
from bloomery.model.stacks import OrderKind
from bloomery.orchestration import simulation
from bloomery.orchestration.engine.resource import EngineResource
from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.resources.states import Action
from bloomery.orchestration.simulation.results import Result
from tests.kit.stacks.memory_store import MemoryStore
from tests.kit.stacks.simulations import MemorySite


@dataclass(kw_only=True)
class StoredSimulation(simulation.Simulation):
    """Keeps all that an engine would write in ``rows``; machines and software are in memory."""

    site: MemorySite = field(default_factory=MemorySite)
    rows: MemoryStore = field(default_factory=MemoryStore)

    def store(self, turn: model.Turn) -> None:
        super().store(turn)
        self.rows.write("", turn)


class MortalSimulation(StoredSimulation):
    """An engine that dies after each turn that it has written; the next one has only the rows."""

    deaths = 0
    wrote = False
    life: Life | None = None

    def emit_events(self, events: Iterable[model.Event]) -> None:
        events_of_turn = list(events)
        self.wrote = bool(events_of_turn)
        super().emit_events(events_of_turn)

    def run_to_completion(self, tree: StackTree) -> None:
        while not self._turn(tree):
            if self.wrote:
                MortalSimulation.deaths += 1
                tree = StackTree.load(self.rows.load(tree.root_uuid), self.runtime())
                if self.life is not None:
                    self.life.take_over(tree)
            due_s = tree.due_at()
            if due_s is None or due_s > self.clock.now():
                self.clock.wait(due_s)


class Life(simulation.Lifecycle):
    """A ``Lifecycle`` that also suspends, resumes, checks, snapshots and signals."""

    simulation: StoredSimulation

    def take_over(self, tree: StackTree) -> None:
        """Go on with a tree that another engine has loaded."""
        self.tree = tree
        self.stack = next(each for each in tree.stacks.values() if each.id == tree.root_uuid)

    def _order(self, kind: OrderKind, row: model.Stack) -> Any:
        assert self.tree is not None
        self.simulation.rows.templates |= self.tree.actions.library.templates
        return super()._order(kind, row)

    def suspend(self) -> Result:
        return self.perform(OrderKind.SUSPEND)

    def resume(self) -> Result:
        return self.perform(OrderKind.RESUME)

    def check(self) -> Result:
        return self.perform(OrderKind.CHECK)

    def snapshot(self) -> Result:
        return self.perform(OrderKind.SNAPSHOT, snapshot="5d5b5b0e-0000-4000-8000-000000000001")

    def perform(self, kind: OrderKind, **payload: Any) -> Result:
        row = self._accepted(Action(kind.value.upper()), self._current().definition)
        self._follow(kind, payload, row)
        return self._result(self._current())

    def signal(self, name: str, details: Mapping[str, Any] | None = None) -> Result:
        """Signal a resource of the root stack, and let come of it what will."""
        self.post(name, details)
        assert self.tree is not None
        self.simulation.run_to_completion(self.tree)
        return self._result(self._current())

    def post(self, name: str, details: Mapping[str, Any] | None = None) -> None:
        """Signal a resource of the root stack while the engine is at work."""
        row = self.row(name)
        payload = {"resource": row.uuid, "details": details}
        current = self._current()
        order = model.Order(
            root_uuid=current.id,
            stack_uuid=current.id,
            kind=OrderKind.SIGNAL,
            payload=payload,
        )
        self._take(self.simulation.rows.accept(order))

    def row(self, name: str) -> EngineResource:
        return self._current().rows[name]

    def _follow(self, kind: OrderKind, payload: Mapping[str, Any], row: model.Stack) -> None:
        order = model.Order(
            root_uuid=row.root_uuid, stack_uuid=row.uuid, kind=kind, payload=payload
        )
        self.simulation.store(model.Turn(stacks=[row]))
        self._take(self.simulation.rows.accept(order), row)
        assert self.tree is not None
        self.simulation.run_to_completion(self.tree)

    def _take(self, order: model.Order, *rows: model.Stack) -> None:
        assert self.tree is not None
        self.tree.take(
            model.Tree(stacks=rows, resources=[], templates={}, properties={}, orders=[order])
        )
