"""What all stacks of a simulation share: a clock, chance, and who is at work in the background."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bloomery.orchestration import scheduler
from bloomery.orchestration.resources import states
from bloomery.orchestration.scheduler.runner import Steps, next_wait
from bloomery.orchestration.simulation.events import Event
from bloomery.orchestration.simulation.rows import Row
from bloomery.orchestration.simulation.software import SimulatedSoftware
from bloomery.orchestration.template.functions import shapes
from bloomery.orchestration.template.redaction import Redaction

EPOCH_S: Final = 1_767_225_600.0  # the clock's zero in UTC: the first day of 2026


def _new_id() -> str:
    return str(uuid.uuid4())


def _ignore(event: Event) -> None:
    """Who listens when nobody does."""


@dataclass(slots=True, kw_only=True)
class Simulation:
    """``on_event`` is told of every event when it happens."""

    clock: scheduler.Clock = field(default_factory=scheduler.Simulated)
    random: Callable[[], float] = random.SystemRandom().random
    new_id: Callable[[], str] = _new_id
    on_event: Callable[[Event], object] = _ignore
    redaction: Redaction = field(default_factory=Redaction)  # of all templates up to now
    poll_s: float = 1.0  # between two looks at what is not done yet
    software: SimulatedSoftware = field(default_factory=SimulatedSoftware)
    events: list[Event] = field(default_factory=list)
    _held: dict[Row, tuple[int, int]] = field(default_factory=dict)  # nodes and characters
    _nodes: int = 0
    _chars: int = 0
    _background: list[scheduler.TaskRunner] = field(default_factory=list)

    def utc(self) -> float:
        """Seconds since the epoch, as the clock of the simulation has them."""
        return EPOCH_S + self.clock.now()

    def tell(self, event: Event) -> None:
        self.events.append(event)
        self.on_event(event)

    def fault_of(self, resource: str, exc: BaseException) -> states.Fault:
        """Say how a resource failed, without what is hidden."""
        fault = states.fault_of(resource, exc)
        masked = self.redaction.masked
        return dataclasses.replace(fault, path=masked(fault.path), message=masked(fault.message))

    def hold(self, row: Row, properties: Mapping[str, Any]) -> None:
        """Count what a resource holds from now on.  Raises RequestLimitExceeded for too much.

        Each value has limits of its own, and a stack has room for a thousand large ones.
        """
        limits = row.context.limits
        self.release(row)
        self._held[row] = nodes, chars = shapes.size(dict(properties), limits)
        self._nodes, self._chars = self._nodes + nodes, self._chars + chars
        if self._nodes > limits.stack_nodes:
            raise limits.exceeded("stack_nodes", "keys and values", "resources that hold more")
        if self._chars > limits.stack_chars:
            raise limits.exceeded("stack_chars", "characters", "resources that hold more")

    def release(self, row: Row) -> None:
        """Count no more what a resource holds that is gone."""
        nodes, chars = self._held.pop(row, (0, 0))
        self._nodes, self._chars = self._nodes - nodes, self._chars - chars

    def spawn(self, task: Callable[[], Any]) -> scheduler.TaskRunner:
        """Start a task that is stepped beside what ``run`` was given."""
        runner = scheduler.TaskRunner(task, clock=self.clock)
        self._background.append(runner)
        runner.start()
        return runner

    def run(self, task: Callable[[], Any]) -> None:
        """Run a task to its end, and what it spawns as long as it lasts."""
        main = scheduler.TaskRunner(task, clock=self.clock)
        together = scheduler.TaskRunner(self._step_all, main, clock=self.clock)
        together.call(wait_time=self.poll_s)

    def _step_all(self, main: scheduler.TaskRunner) -> Steps:
        with contextlib.ExitStack() as at_exit:
            at_exit.callback(self._cancel_background)
            main.start()
            while main:
                yield next_wait([main, *self._background])
                for runner in (main, *self._background):
                    runner.step()
                self._background = [runner for runner in self._background if runner]

    def _cancel_background(self) -> None:
        for runner in self._background:
            runner.cancel()
        self._background.clear()
