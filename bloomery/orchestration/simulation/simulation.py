"""The driver of a simulated tree: a clock that jumps, the rows of its stacks, and a listener."""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from bloomery.model import stacks as model
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.resources.machines import Machines
from bloomery.orchestration.resources.software import SoftwareStore
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.simulation.results import Event

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)  # the clock's zero in UTC


class Stuck(RuntimeError):
    """A stack waits for a call that a simulation never makes."""

    def __init__(self) -> None:
        super().__init__("cannot wait: no time is set, and nobody is left who could wake the stack")


class Clock(Protocol):
    def now(self) -> float:
        """Return seconds that never decrease."""

    def wait(self, until_s: float | None) -> None:
        """Return when ``until_s`` has come, or earlier.  Raises Stuck for None."""


class SimulatedClock:
    """A clock that stands still until it is waited for, and then jumps."""

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s

    def now(self) -> float:
        return self._now_s

    def wait(self, until_s: float | None) -> None:
        """Jump to ``until_s``.  Raises Stuck for None."""
        if until_s is None:
            raise Stuck
        self._now_s = max(self._now_s, until_s)


class Site(Protocol):
    """The service that keeps machines and software; its work shares the simulation's thread."""

    def machines_of(self, stack: model.Stack) -> Machines: ...
    def software_of(self, project: str) -> SoftwareStore: ...
    def run_due(self) -> bool:
        """Do all work that is due; return whether there was any."""

    def due_at(self) -> float | None:
        """Return the clock time of the next work; None: there is none."""


@dataclass(slots=True, kw_only=True)
class Simulation:
    """``on_event`` is called with each event, after the turn that emits it.

    ``site`` None: stacks of machines or of software are refused.
    """

    clock: Clock = field(default_factory=SimulatedClock)
    random: Callable[[], float] = random.SystemRandom().random
    new_id: Callable[[], str] = lambda: str(uuid.uuid4())
    on_event: Callable[[Event], object] = lambda event: None
    poll_s: float = 1.0  # between two checks of an unfinished action
    site: Site | None = None
    stacks: dict[str, model.Stack] = field(default_factory=dict)  # as last stored, by UUID
    events: list[Event] = field(default_factory=list)
    order_ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

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
            software=None if self.site is None else self.site.software_of,
            machines=None if self.site is None else self.site.machines_of,
        )

    def is_live(self, stack_id: str) -> bool:
        """Tell whether a stack exists."""
        return stack_id in self.stacks and self.stacks[stack_id].deleted_at is None

    def run_to_completion(self, tree: StackTree) -> None:
        """Run a tree until nothing is left to do.

        An exception cancels the tree, and ``on_event`` still gets the events of that.
        """
        try:
            while not self._turn(tree):
                if self.site is not None and self.site.run_due():
                    tree.wake(None)
                times_s = [tree.due_at(), None if self.site is None else self.site.due_at()]
                due_s = min((each for each in times_s if each is not None), default=None)
                if due_s is None or due_s > self.clock.now():
                    self.clock.wait(due_s)
        except BaseException:
            tree.cancel()
            self._turn(tree)
            raise

    def _turn(self, tree: StackTree) -> bool:
        """Make and store one turn; return whether it was the last."""
        turn = tree.turn()
        self.store(turn)
        self.emit_events(turn.events)
        return turn.is_idle

    def store(self, turn: model.Turn) -> None:
        """Keep the stacks of a turn; the tree itself has all else."""
        self.stacks |= {each.uuid: each for each in turn.stacks}

    def emit_events(self, events: Iterable[model.Event]) -> None:
        for each in events:
            stack = self.stacks[each.stack_uuid]
            event = Event(
                at_s=(each.created_at - EPOCH).total_seconds(),
                stack=stack.name,
                stack_id=stack.uuid,
                depth=stack.depth,
                resource=each.name,
                type=each.type,
                physical_id=each.physical_id,
                action=Action(each.action),
                status=Status(each.status),
                reason=each.reason,
            )
            self.events.append(event)
            self.on_event(event)
