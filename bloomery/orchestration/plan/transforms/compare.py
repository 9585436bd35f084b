"""Decide for each resource that exists: in place, anew, refused or unchanged (rules.py).

It goes in the order of creation, because what happens to a resource decides how well those know
their values that refer to it.
"""

from __future__ import annotations

from dataclasses import replace

from bloomery.orchestration.plan import rules
from bloomery.orchestration.plan.actions import Action, Key, Verb
from bloomery.orchestration.plan.draft import Draft
from bloomery.orchestration.plan.rules import Case
from bloomery.orchestration.plan.secrets import Mask


def apply(draft: Draft) -> None:
    mask = Mask(draft)
    for key in draft.graph.order():
        if key.name in draft.records:
            draft.actions[key] = _compared(draft, key, mask)


def _compared(draft: Draft, key: Key, mask: Mask) -> Action:
    case, planned = Case(draft, key.name), draft.actions[key]
    ruling = rules.ruling(case)
    if ruling.verb is Verb.CREATE:
        reason = planned.reason or ruling.reason
        return replace(planned, reason=reason, record=case.record)
    made = Action(
        verb=ruling.verb,
        type=planned.type,
        reason=ruling.reason,
        certain=ruling.certain,
        called=case.kind.always_updated and ruling.verb is Verb.UNCHANGED,
        definition=planned.definition,
        record=case.record,
    )
    change = case.looked_at
    if change is None:
        return made
    return replace(
        made,
        differences=mask.differences(key.name, change),
        template_diff=(*(["properties"] if change.properties else []), *change.template),
        properties=change.after if change.whole else None,
    )
