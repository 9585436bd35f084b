"""Keep what must not be deleted: deletion policy Retain, and what is another's."""

from __future__ import annotations

from dataclasses import replace

from bloomery.orchestration.plan.actions import Action, Verb
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.template.definitions import DeletionPolicy


def apply(builder: PlanBuilder) -> None:
    for key, action in builder.actions.items():
        if action.verb is Verb.DELETE and (why := _why(action)):
            reason = f"{action.reason}; {why}" if action.reason else why
            builder.actions[key] = replace(action, verb=_verb(action), reason=reason)


def _verb(action: Action) -> Verb:
    snapshot = action.definition and action.definition.deletion_policy is DeletionPolicy.SNAPSHOT
    return Verb.DELETE if snapshot else Verb.KEEP


def _why(action: Action) -> str:
    if action.definition is None:
        return ""
    if action.definition.external_id is not None:
        return "external_id: it is another's"
    if action.definition.deletion_policy is DeletionPolicy.RETAIN:
        return "deletion policy Retain"
    if action.definition.deletion_policy is DeletionPolicy.SNAPSHOT:
        return "deletion policy Snapshot: a snapshot first"
    return ""
