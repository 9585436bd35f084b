"""Stacks that live in memory: what an engine would do, without one.

    result = simulation.run(stack)  # validated, created, never raises
    result.status  # "CREATE_COMPLETE"
    result.outputs["url"].value

    life = simulation.Lifecycle()
    life.create(stack)
    life.update(other, rollback=True)
    life.delete()

Time is simulated, so that an hour of waiting takes no time; a ``Simulation`` with another clock
waits indeed.  Hooks are announced and not waited for.

simulation  what drives the one engine here: a clock, a store in memory
lifecycle   whole lives of stacks
clock       the time that jumps
software    software configs and deployments in memory
results     events, and the outcome at the end
"""

from __future__ import annotations

from bloomery.orchestration.simulation.clock import Clock, SimulatedClock, Stuck
from bloomery.orchestration.simulation.lifecycle import Lifecycle, run
from bloomery.orchestration.simulation.results import Error, Event, Output, Result
from bloomery.orchestration.simulation.simulation import Simulation

__all__ = [
    "Clock",
    "Error",
    "Event",
    "Lifecycle",
    "Output",
    "Result",
    "SimulatedClock",
    "Simulation",
    "Stuck",
    "run",
]
