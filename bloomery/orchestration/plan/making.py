"""How a plan is made: tables of transforms, one after the other.

    plan(old, new, existing)      an update from one template to another
    create(new)                   a new stack
    delete(old, existing)         the end of a stack
    rollback(failed, previous, existing)   back, after an update has failed half-way

``explain`` does the same and tells what each transform adds and takes away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Final, TypeAlias

from bloomery import errors
from bloomery.orchestration.graph import Cycle
from bloomery.orchestration.plan import beside, sides
from bloomery.orchestration.plan.actions import Key
from bloomery.orchestration.plan.draft import Draft, Present
from bloomery.orchestration.plan.plans import Plan
from bloomery.orchestration.plan.sides import Side
from bloomery.orchestration.plan.transforms import (
    add,
    backward,
    batches,
    choose,
    clean,
    compare,
    forward,
    joints,
    members,
    retain,
)
from bloomery.orchestration.resources.base import Record

Existing: TypeAlias = Present | Mapping[str, Record] | None
STEPS: Final[tuple[ModuleType, ...]] = (
    choose,
    add,
    forward,
    compare,
    clean,
    retain,
    backward,
    joints,
    members,
    batches,
)


def plan(old: Side, new: Side, existing: Existing = None) -> Plan:
    """Return what an update does; without ``existing``, all of ``old`` is there as it says.

    Raises CircularDependencyException, and what a value of the new template raises.
    """
    begun = draft(old, new, existing)
    found = made(begun)
    return replace(found, outputs=beside.outputs(begun), differs=beside.differs(begun))


def create(new: Side) -> Plan:
    return made(draft(sides.NOTHING, new, {}))


def delete(old: Side, existing: Existing = None) -> Plan:
    """Return the end of a stack: what was created last goes first."""
    return made(draft(old, sides.NOTHING, existing))


def rollback(failed: Side, previous: Side | None, existing: Existing = None) -> Plan:
    """Return the way back from ``failed``, after it went wrong at some point.

    What was updated is updated back, what was made is deleted, what was deleted is made again and
    what was replaced is taken back, with its id, if it still stands (``Present.leftovers``).
    ``previous`` None: the failed action was the creation, and nothing remains.
    """
    return made(draft(failed, previous or sides.NOTHING, existing, rollback=True))


# ------------------------------------------------------------------------------------- how


def draft(old: Side, new: Side, existing: Existing, *, rollback: bool = False) -> Draft:
    present = existing if isinstance(existing, Present) else Present(records=existing)
    return Draft(old=old, new=new, present=present, rollback=rollback)


def made(begun: Draft, steps: Iterable[ModuleType] = STEPS) -> Plan:
    try:
        for step in steps:
            step.apply(begun)
        begun.graph.order()
    except Cycle as exc:
        names = [key.name for key in exc.keys if isinstance(key, Key)]
        raise errors.CircularDependencyException(cycle=" -> ".join([*names, names[0]])) from exc
    return Plan(graph=begun.graph, actions=begun.actions)
