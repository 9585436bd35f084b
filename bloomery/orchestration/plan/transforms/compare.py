"""Decide for each resource that exists: in place, anew, refused or unchanged (rules.py).

It goes in the order of creation, because what happens to a resource decides how well those know
their values that refer to it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bloomery.orchestration.plan import rules
from bloomery.orchestration.plan.actions import Action, Key, Verb
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.changes import Change
from bloomery.orchestration.plan.rules import Candidate
from bloomery.orchestration.plan.secrets import Mask

NO_CHANGE: Final = Change()


def apply(builder: PlanBuilder) -> None:
    mask = Mask(builder)
    for key in builder.graph.order():
        if key.name in builder.records:
            builder.actions[key] = _compared(builder, key, mask)


def _compared(builder: PlanBuilder, key: Key, mask: Mask) -> Action:
    candidate, planned = Candidate(builder, key.name), builder.actions[key]
    decision = rules.decision(candidate)
    if decision.verb is Verb.CREATE:
        return replace(planned, reason=planned.reason or decision.reason, record=candidate.record)
    change = candidate.examined or NO_CHANGE
    return Action(
        verb=decision.verb,
        type=planned.type,
        reason=decision.reason,
        certain=decision.certain,
        differences=mask.differences(key.name, change),
        template_diff=(*(["properties"] if change.properties else []), *change.template),
        called=candidate.kind.always_updated and decision.verb is Verb.UNCHANGED,
        definition=planned.definition,
        record=candidate.record,
        properties=change.after if change.after and change.whole else None,
    )
