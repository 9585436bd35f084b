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

events            what happens, in Heat's words
rows              a resource and what others see of it
simulation        what all stacks of one simulation share
resource_actions  an action on one resource
walks             a plan, walked
stacks            a stack: its states and its traversals
children          stacks below stacks
results           what is told at the end
lifecycle         whole lives of stacks
"""

from __future__ import annotations

from bloomery.orchestration.simulation.events import Event
from bloomery.orchestration.simulation.lifecycle import Lifecycle, run
from bloomery.orchestration.simulation.results import Error, Output, Resource, Result
from bloomery.orchestration.simulation.simulation import Simulation

__all__ = ["Error", "Event", "Lifecycle", "Output", "Resource", "Result", "Simulation", "run"]
