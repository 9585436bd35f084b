"""Decisions of a preview about existing resources: reasons, effects, members and differences.

A traversal does not use them: it decides at each vertex, when values are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from bloomery.orchestration.foresight import effects, lookups, nested
from bloomery.orchestration.plan import rules, transforms
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.changes import Change, Changed
from bloomery.orchestration.plan.plans import MAKE, NOT_SET, Action, Difference, Verb, between
from bloomery.orchestration.plan.rules import Candidate, Decision
from bloomery.orchestration.resources.base import Status, ending
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect
from bloomery.orchestration.stack.secrecy import PROPERTIES, Reasons

NO_CHANGE: Final = Change()
MOST_NAMES: Final = 5
STAYS: Final = frozenset({Verb.UPDATE, Verb.UNCHANGED})


def warn_of_open_actions(builder: PlanBuilder) -> None:
    """Warn of the resources of this stack that go on with what an earlier plan has named."""
    names = sorted(builder.existing.under_way)
    if names and builder.parent is None:
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        builder.warnings.append(
            f"under way for an earlier order: {', '.join(names[:MOST_NAMES])}{more}; the plan of "
            "that order names what they do until they end"
        )


def compare(builder: PlanBuilder) -> None:
    """Decide the action of each existing resource (rules.py), and add its differences."""
    for key in builder.graph.order():
        if key.phase == MAKE and key.name not in builder.records:
            differences = lookups.read(builder, key.name)
            builder.actions[key] = replace(builder.actions[key], differences=differences)
    for key, candidate in transforms.candidates(builder):
        values = lookups.read(builder, key.name)
        decision, effect = _decide(candidate, values)
        planned, record = builder.actions[key], candidate.record
        change = candidate.computed_change or NO_CHANGE
        if decision.verb is Verb.CREATE:
            is_known = record is not None and record.status is Status.IN_PROGRESS
            reason = decision.reason if is_known else planned.reason or decision.reason
            action = replace(planned, reason=reason, record=record)
        else:
            differences = _differences(candidate.builder, key.name, change) + values
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


def _decide(candidate: Candidate, values: tuple[Difference, ...]) -> tuple[Decision, Effect]:
    builder, record, decision = candidate.builder, candidate.record, None
    if builder.existing.converges and record is not None:
        resource = builder.existing.resource(record)
        decision = None if resource is None else rules.compare_live(candidate, resource)
    decision = lookups.decide(candidate, decision or rules.judge(candidate), values)
    effect, change = NO_EFFECT, candidate.computed_change
    changes = change is not None and (change.properties or change.template)
    if decision.verb is Verb.UPDATE and change is not None and changes:
        latest = {**change.after, **{name: each.after for name, each in change.properties.items()}}
        effect = effects.of_update(candidate.kind, change.before, latest, change.properties)
    if effect.reason:
        decision = decision._replace(reason=effect.reason)
    decision = rules.taken_back(candidate, decision)
    if decision.verb is Verb.UPDATE and (
        reason := effects.answer_of(builder, record, lambda real: real.reason_to_replace(), "")
    ):
        decision = Decision(Verb.REPLACE, reason, decision.certain)
    if decision.verb in STAYS and nested.is_composite(builder.new, candidate.name):
        # The resource changes if its members change.
        nested_plan = nested.updated(builder, candidate.name, candidate.change)
        builder.nested_plan[candidate.name] = nested_plan
        member_changes = nested_plan.plan.changes.values() if nested_plan is not None else ()
        if decision.verb is not Verb.UPDATE and member_changes:
            certain = any(each.certain for each in member_changes)
            decision = Decision(Verb.UPDATE, "its members change", certain)
    decision = rules.restricted(candidate, decision)
    return decision, effect if decision.verb is Verb.UPDATE else NO_EFFECT


def _differences(builder: PlanBuilder, name: str, change: Change) -> tuple[Difference, ...]:
    """Return the differences of a resource, with secrets masked."""
    parts = [(PROPERTIES, key, each) for key, each in change.properties.items()]
    parts += [(part, part, each) for part, each in change.template.items()]
    return tuple(
        leaf for part, key, each in parts for leaf in _leaves(builder, name, part, key, each)
    )


def _leaves(
    builder: PlanBuilder, name: str, part: str, key: str, changed: Changed
) -> Iterator[Difference]:
    whole = Difference(
        path=(key,), before=changed.before, after=changed.after, certain=changed.certain
    )
    reasons = dict(builder.secrecy.reasons(name, key, part))
    if (key,) in reasons:
        yield whole.masked((key,), reasons[key,])
        return
    pair = changed.parts or (changed.before, changed.after)
    before, after = (NOT_SET if value is None else value for value in pair)
    if part == PROPERTIES:
        sides = [side for side in (builder.old, builder.new) if name in side.definitions]
        ends = {end for side in sides for end in side.kind(name).secret_paths}
        for path in (each for value in (before, after) for each in ending(ends, value, (key,))):
            reasons[path] = f"{path[-1]} is a secret"
    # Two unknown values that differ have no leaf that differs.
    leaves = list(between(before, after, (key,), certain=changed.certain)) or [whole]
    masked = [_masked(builder, each, reasons) for each in leaves]
    yield from {each.path: each for each in masked}.values()


def _masked(builder: PlanBuilder, leaf: Difference, reasons: Reasons) -> Difference:
    for path, why in reasons.items():
        depth = min(len(path), len(leaf.path))
        if path[:depth] == leaf.path[:depth]:
            return leaf.masked(leaf.path[:depth], why)
    if builder.secrecy.has_hidden([leaf.before, leaf.after]):
        return leaf.masked(leaf.path, lookups.HIDDEN_VALUE)
    return leaf
