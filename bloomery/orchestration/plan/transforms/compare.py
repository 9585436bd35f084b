"""Decide for each resource that exists: in place, anew, refused or unchanged (rules.py).

It goes in the order of creation, because what happens to a resource decides how well those know
their values that refer to it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bloomery.orchestration.plan import rules
from bloomery.orchestration.plan.actions import Action, Key, Verb
from bloomery.orchestration.plan.changes import Change
from bloomery.orchestration.plan.draft import Draft
from bloomery.orchestration.plan.rules import Case
from bloomery.orchestration.plan.secrets import Mask

NO_CHANGE: Final = Change()


def apply(draft: Draft) -> None:
    mask = Mask(draft)
    for key in draft.graph.order():
        if key.name in draft.records:
            draft.actions[key] = _compared(draft, key, mask)


def _compared(draft: Draft, key: Key, mask: Mask) -> Action:
    case, planned = Case(draft, key.name), draft.actions[key]
    ruling = rules.ruling(case)
    if ruling.verb is Verb.CREATE:
        return replace(planned, reason=planned.reason or ruling.reason, record=case.record)
    change = case.looked_at or NO_CHANGE
    return Action(
        verb=ruling.verb,
        type=planned.type,
        reason=ruling.reason,
        certain=ruling.certain,
        differences=mask.differences(key.name, change),
        template_diff=(*(["properties"] if change.properties else []), *change.template),
        called=case.kind.always_updated and ruling.verb is Verb.UNCHANGED,
        definition=planned.definition,
        record=case.record,
        properties=change.after if change.after and change.whole else None,
    )
