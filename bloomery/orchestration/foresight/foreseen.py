"""Decisions of a preview about existing resources, with reasons, effects and members.

A traversal does not use them: it decides at each vertex, when values are known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bloomery.orchestration.foresight import effects, masking, nested
from bloomery.orchestration.plan import rules, transforms
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.changes import Change
from bloomery.orchestration.plan.plans import Action, Verb
from bloomery.orchestration.plan.rules import Candidate, Decision
from bloomery.orchestration.resources.base import Status
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect

NO_CHANGE: Final = Change()
STAYS: Final = frozenset({Verb.UPDATE, Verb.UNCHANGED})


def compare(builder: PlanBuilder) -> None:
    """Decide the action of each existing resource (rules.py), and add its differences."""
    for key, candidate in transforms.candidates(builder):
        decision, effect = _decide(candidate)
        planned, record = builder.actions[key], candidate.record
        change = candidate.computed_change or NO_CHANGE
        if decision.verb is Verb.CREATE:
            is_known = record is not None and record.status is Status.IN_PROGRESS
            reason = decision.reason if is_known else planned.reason or decision.reason
            action = replace(planned, reason=reason, record=record)
        else:
            differences = masking.differences(candidate.builder, key.name, change)
            if decision.verb is Verb.REPLACE and candidate.same_kind:
                change = candidate.change  # it decides whether the old one goes first
            action = Action(
                verb=decision.verb,
                type=planned.type,
                reason=decision.reason,
                certain=decision.certain,
                definition=planned.definition,
                record=record,
                effect=effect,
                differences=differences,
                called=candidate.kind.always_updated and decision.verb is Verb.UNCHANGED,
                properties=change.after if change.after and change.known_after else None,
            )
        builder.actions[key] = action


def _decide(candidate: Candidate) -> tuple[Decision, Effect]:
    decision = _look(candidate) if candidate.builder.existing.converges else None
    decision = decision or rules.judge(candidate)
    effect = _effect(candidate, decision)
    if effect.reason:
        decision = decision._replace(reason=effect.reason)
    decision = rules.taken_back(candidate, decision)
    if decision.verb is Verb.UPDATE and (reason := _reason_to_replace(candidate)):
        decision = Decision(Verb.REPLACE, reason, decision.certain)
    if decision.verb in STAYS and nested.is_composite(candidate.builder.new, candidate.name):
        decision = _with_members(candidate, decision)
    decision = rules.restricted(candidate, decision)
    return decision, effect if decision.verb is Verb.UPDATE else NO_EFFECT


def _effect(candidate: Candidate, decision: Decision) -> Effect:
    change = candidate.computed_change
    if (
        decision.verb is not Verb.UPDATE
        or change is None
        or not (change.properties or change.template)
    ):
        return NO_EFFECT
    latest = {**change.after, **{name: each.after for name, each in change.properties.items()}}
    return effects.of_update(candidate.kind, change.before, latest, change.properties)


def _with_members(candidate: Candidate, decision: Decision) -> Decision:
    """Plan the child stack of a resource; the resource changes if its members change."""
    nested_plan = nested.updated(candidate.builder, candidate.name, candidate.change)
    candidate.builder.nested_plan[candidate.name] = nested_plan
    if decision.verb is Verb.UPDATE or nested_plan is None or not nested_plan.plan.changes:
        return decision
    certain = any(each.certain for each in nested_plan.plan.changes.values())
    return Decision(Verb.UPDATE, "its members change", certain)


def _look(candidate: Candidate) -> Decision | None:
    record = candidate.record
    resource = None if record is None else candidate.builder.existing.resource(record)
    return None if resource is None else rules.look(candidate, resource)


def _reason_to_replace(candidate: Candidate) -> str:
    builder, record = candidate.builder, candidate.record
    return effects.answer_of(builder, record, lambda real: real.reason_to_replace(), "")
