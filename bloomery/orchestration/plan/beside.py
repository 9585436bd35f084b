"""What differs between two templates beside their resources: outputs, and whether anything does."""

from __future__ import annotations

from bloomery import errors
from bloomery.orchestration.plan import trees
from bloomery.orchestration.plan.actions import Verb
from bloomery.orchestration.plan.draft import Draft
from bloomery.orchestration.template.definitions import OutputDefinition


def outputs(draft: Draft) -> dict[str, Verb]:
    """Return by name what becomes of each output that is told otherwise than before.

    One that only follows a resource is not among them: the resource is, in the plan.
    """
    old, new = draft.old.outputs, draft.new.outputs
    verbs = {name: _verb(draft, old.get(name), one) for name, one in new.items()}
    verbs |= {name: Verb.DELETE for name in old if name not in new}
    return {name: verb for name, verb in verbs.items() if verb is not Verb.UNCHANGED}


def _verb(draft: Draft, old: OutputDefinition | None, new: OutputDefinition) -> Verb:
    if old is None:
        return Verb.CREATE
    same = old.enabled == new.enabled and (not new.enabled or _same(draft, old, new))
    return Verb.UNCHANGED if same else Verb.UPDATE


def _same(draft: Draft, old: OutputDefinition, new: OutputDefinition) -> bool:
    try:
        return trees.same(draft, old.value, new.value)
    except errors.Failure:  # an output may have a fault and spoils no plan
        return bool(old.value == new.value)


def differs(draft: Draft) -> bool:
    """Whether anything differs at all, the order of resources and outputs too."""
    old, new = draft.old, draft.new
    if (*old.definitions, *old.outputs) != (*new.definitions, *new.outputs):
        return True
    return bool(old.said != new.said)
