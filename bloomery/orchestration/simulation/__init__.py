"""Simulated stacks: the engine on a clock that jumps, without rows.

    result = simulation.run(stack)  # validates and creates; the result has any Failure
    result.status  # "CREATE_COMPLETE"
    result.outputs["url"].value

    life = simulation.Lifecycle()
    life.create(stack)
    life.update(other, rollback=True)
    life.delete()

Time is simulated, so that an hour of waiting takes no time; a ``Simulation`` with another clock
really waits.  A hook emits its events without a pause.

A ``Site`` keeps the machines and the software of stacks: ``cmd/simulated_site.py`` is the service
itself on fake hardware.

simulation  the driver of the engine: a clock that jumps, the stacks, a site
lifecycle   whole lives of stacks
results     events, and the outcome at the end
"""

from __future__ import annotations

from bloomery.orchestration.simulation.lifecycle import Lifecycle, run
from bloomery.orchestration.simulation.results import Error, Event, Output, Result
from bloomery.orchestration.simulation.simulation import (
    Clock,
    SimulatedClock,
    Simulation,
    Site,
    Stuck,
)

__all__ = [
    "Clock",
    "Error",
    "Event",
    "Lifecycle",
    "Output",
    "Result",
    "SimulatedClock",
    "Simulation",
    "Site",
    "Stuck",
    "run",
]
