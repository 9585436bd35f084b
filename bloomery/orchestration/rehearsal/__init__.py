"""Stacks that live in memory: what an engine would do, without one.

    result = rehearsal.run(stack)  # validated, created, never raises
    result.status  # "CREATE_COMPLETE"
    result.outputs["url"].value

    life = rehearsal.Rehearsal()
    life.create(stack)
    life.update(other, rollback=True)
    life.delete()

Time is simulated, so that an hour of waiting takes no time; a ``World`` with another clock waits
indeed.  Hooks are announced and not waited for.

events   what happens, in Heat's words
world    what all stacks of one rehearsal share
rows     a resource and what others see of it
acts     an action on one resource
walks    a plan, walked
stacks   a stack: its states and its traversals
below    stacks below stacks
results  what is told at the end
running  whole lives of stacks
"""

from __future__ import annotations

from bloomery.orchestration.rehearsal.events import Event
from bloomery.orchestration.rehearsal.results import Error, Output, Resource, Result
from bloomery.orchestration.rehearsal.running import Rehearsal, run
from bloomery.orchestration.rehearsal.world import World

__all__ = ["Error", "Event", "Output", "Rehearsal", "Resource", "Result", "World", "run"]
