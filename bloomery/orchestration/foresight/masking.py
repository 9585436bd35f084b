"""The differences of a plan, with secrets masked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.changes import Change, Changed
from bloomery.orchestration.plan.plans import NOT_SET, Difference, between
from bloomery.orchestration.resources.base import ending
from bloomery.orchestration.stack.secrecy import PROPERTIES, Reasons

HIDDEN_VALUE: Final = "it has the value of a hidden parameter"


def differences(builder: PlanBuilder, name: str, change: Change) -> tuple[Difference, ...]:
    parts = [(PROPERTIES, key, each) for key, each in change.properties.items()]
    parts += [(part, part, each) for part, each in change.template.items()]
    return tuple(
        leaf for part, key, each in parts for leaf in _differences(builder, name, part, key, each)
    )


def _differences(
    builder: PlanBuilder, name: str, part: str, key: str, changed: Changed
) -> Iterator[Difference]:
    whole = Difference(
        path=(key,), before=changed.before, after=changed.after, certain=changed.certain
    )
    reasons = dict(builder.secrecy.reasons(name, key, part))
    if (key,) in reasons:
        yield whole.masked((key,), reasons[key,])
        return
    before, after = (_set(value) for value in changed.parts or (changed.before, changed.after))
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
        return leaf.masked(leaf.path, HIDDEN_VALUE)
    return leaf


def _set(value: Any) -> Any:
    return NOT_SET if value is None else value
