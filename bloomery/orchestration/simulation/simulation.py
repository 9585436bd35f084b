"""The driver of a simulated tree: a clock that jumps, a store in memory, and a listener."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from bloomery.model import stacks as model
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.simulation.clock import Clock, SimulatedClock
from bloomery.orchestration.simulation.machines import SimulatedMachines
from bloomery.orchestration.simulation.results import Event
from bloomery.orchestration.simulation.software import SimulatedSoftware
from bloomery.orchestration.simulation.store import MemoryStore

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)  # the clock's zero in UTC


@dataclass(slots=True, kw_only=True)
class Simulation:
    """``on_event`` is called with each event, after the turn that emits it."""

    clock: Clock = field(default_factory=SimulatedClock)
    random: Callable[[], float] = random.SystemRandom().random
    new_id: Callable[[], str] = lambda: str(uuid.uuid4())
    on_event: Callable[[Event], object] = lambda event: None
    poll_s: float = 1.0  # between two checks of an unfinished action
    store: MemoryStore = field(default_factory=MemoryStore)
    software: SimulatedSoftware = field(default_factory=SimulatedSoftware)
    machines: SimulatedMachines = field(default_factory=SimulatedMachines)
    events: list[Event] = field(default_factory=list)

    def utc(self) -> datetime:
        """Return the time of the simulation's clock in UTC."""
        return EPOCH + timedelta(seconds=self.clock.now())

    def runtime(self) -> EngineRuntime:
        return EngineRuntime(
            clock=self.clock.now,
            utc=self.utc,
            random=self.random,
            new_id=self.new_id,
            poll_s=self.poll_s,
            waits_for_hooks=False,
            software=lambda project: self.software,
            machines=self.machines.of_stack,
        )

    def run_to_completion(self, tree: StackTree) -> None:
        """Run a tree until nothing is left to do.

        An exception cancels the tree, and ``on_event`` still gets the events of that.
        """
        try:
            while not self._turn(tree):
                due_s = tree.due_at()
                if due_s is None or due_s > self.clock.now():
                    self.clock.wait(due_s)
        except BaseException:
            tree.cancel()
            self._turn(tree)
            raise

    def _turn(self, tree: StackTree) -> bool:
        """Make and store one turn; return whether it was the last."""
        turn = tree.turn()
        self.store.write(tree.root_uuid, turn)
        self.emit_events(turn.events)
        return turn.rests

    def emit_events(self, events: Iterable[model.Event]) -> None:
        for each in events:
            event = self._shown(each)
            self.events.append(event)
            self.on_event(event)

    def _shown(self, event: model.Event) -> Event:
        stack = self.store.stacks[event.stack_uuid]
        return Event(
            at_s=(event.created_at - EPOCH).total_seconds(),
            stack=stack.name,
            stack_id=stack.uuid,
            depth=stack.depth,
            resource=event.name,
            type=event.type,
            physical_id=event.physical_id,
            action=Action(event.action),
            status=Status(event.status),
            reason=event.reason,
        )
