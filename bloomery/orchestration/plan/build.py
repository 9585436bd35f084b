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
from bloomery.orchestration.plan import output_changes, template_side
from bloomery.orchestration.plan.actions import Key
from bloomery.orchestration.plan.builder import PlanBuilder, Present
from bloomery.orchestration.plan.plans import Plan
from bloomery.orchestration.plan.template_side import TemplateSide
from bloomery.orchestration.plan.transforms import (
    add,
    backward,
    batches,
    choose,
    clean,
    compare,
    forward,
    members,
    noop_vertices,
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
    noop_vertices,
    members,
    batches,
)


def plan(old: TemplateSide, new: TemplateSide, existing: Existing = None) -> Plan:
    """Return what an update does; without ``existing``, all of ``old`` is there as it says.

    Raises CircularDependencyException, and what a value of the new template raises.
    """
    builder = begin(old, new, existing)
    return replace(
        finish(builder),
        outputs=output_changes.outputs(builder),
        differs=output_changes.differs(builder),
    )


def create(new: TemplateSide) -> Plan:
    return finish(begin(template_side.NOTHING, new, {}))


def delete(old: TemplateSide, existing: Existing = None) -> Plan:
    """Return the end of a stack: what was created last goes first."""
    return finish(begin(old, template_side.NOTHING, existing))


def rollback(
    failed: TemplateSide, previous: TemplateSide | None, existing: Existing = None
) -> Plan:
    """Return the way back from ``failed``, after it went wrong at some point.

    What was updated is updated back, what was made is deleted, what was deleted is made again and
    what was replaced is taken back, with its id, if it still stands (``Present.leftovers``).
    ``previous`` None: the failed action was the creation, and nothing remains.
    """
    return finish(begin(failed, previous or template_side.NOTHING, existing, rollback=True))


# ------------------------------------------------------------------------------- its two halves


def begin(
    old: TemplateSide, new: TemplateSide, existing: Existing, *, rollback: bool = False
) -> PlanBuilder:
    """Return a builder to which no transform has been applied."""
    present = existing if isinstance(existing, Present) else Present(records=existing)
    return PlanBuilder(old=old, new=new, present=present, rollback=rollback)


def finish(builder: PlanBuilder, steps: Iterable[ModuleType] = STEPS) -> Plan:
    """Apply the transforms.  Raises CircularDependencyException."""
    try:
        for step in steps:
            step.apply(builder)
        builder.graph.order()
    except Cycle as exc:
        names = [key.name for key in exc.keys if isinstance(key, Key)]
        raise errors.CircularDependencyException(cycle=" -> ".join([*names, names[0]])) from exc
    return Plan(graph=builder.graph, actions=builder.actions)
