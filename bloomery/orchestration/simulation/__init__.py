"""Simulated stacks: the engine with a store in memory, and without a service.

    result = simulation.run(stack)  # validates and creates; the result has any Failure
    result.status  # "CREATE_COMPLETE"
    result.outputs["url"].value

    life = simulation.Lifecycle()
    life.create(stack)
    life.update(other, rollback=True)
    life.delete()

Time is simulated, so that an hour of waiting takes no time; a ``Simulation`` with another clock
really waits.  A hook emits its events without a pause.

simulation  the driver of the engine: a clock, a store in memory
lifecycle   whole lives of stacks
clock       the clock that jumps
store       the store in memory
machines    bare-metal nodes in memory
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
