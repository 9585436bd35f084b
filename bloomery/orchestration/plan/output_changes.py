"""What differs between two templates beside their resources: outputs, and whether anything does."""

from __future__ import annotations

from bloomery import errors
from bloomery.orchestration.plan import tree_diff
from bloomery.orchestration.plan.actions import Verb
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.template.definitions import OutputDefinition


def outputs(builder: PlanBuilder) -> dict[str, Verb]:
    """Return by name what becomes of each output that is told otherwise than before.

    One that only follows a resource is not among them: the resource is, in the plan.
    """
    old, new = builder.old.outputs, builder.new.outputs
    verbs = {name: _verb(builder, old.get(name), one) for name, one in new.items()}
    verbs |= {name: Verb.DELETE for name in old if name not in new}
    return {name: verb for name, verb in verbs.items() if verb is not Verb.UNCHANGED}


def _verb(builder: PlanBuilder, old: OutputDefinition | None, new: OutputDefinition) -> Verb:
    if old is None:
        return Verb.CREATE
    same = old.enabled == new.enabled and (not new.enabled or _same(builder, old, new))
    return Verb.UNCHANGED if same else Verb.UPDATE


def _same(builder: PlanBuilder, old: OutputDefinition, new: OutputDefinition) -> bool:
    try:
        return tree_diff.same(builder, old.value, new.value)
    except errors.Failure:  # an output may have a fault and spoils no plan
        return bool(old.value == new.value)


def differs(builder: PlanBuilder) -> bool:
    """Whether anything differs at all, the order of resources and outputs too."""
    old, new = builder.old, builder.new
    if (*old.definitions, *old.outputs) != (*new.definitions, *new.outputs):
        return True
    return bool(old.said != new.said)
