"""Compare trees of two templates while not all of their calls can be resolved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bloomery import errors
from bloomery.orchestration.plan import forecast
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.forecast import Forecast, Judge, Knowledge
from bloomery.orchestration.plan.plans import MAKE, NOT_SET, Key, Unknown, Verb
from bloomery.orchestration.stack.template_side import TemplateSide
from bloomery.orchestration.template.functions.base import Reference


def same(builder: PlanBuilder, old: Any, new: Any) -> bool:
    """Return whether both trees give the same value if no resource changes."""
    if builder.same_context and old == new:
        return True
    left = forecast.settled(old, Forecast(builder.old.view))
    right = forecast.settled(new, Forecast(builder.new.view))
    if left != right:
        return False
    # An unresolved call may name a parameter whose value differs.
    names = {text for call in forecast.unresolved_calls(right) for text in call.texts()}
    return not any(
        name in builder.old.parameters
        and builder.old.view.parameter(name) != builder.new.view.parameter(name)
        for name in names.intersection(builder.new.parameters)
    )


# ----------------------------------------------------------------------- unresolved references


def unresolved(tree: Any, view: Forecast, judge: Judge) -> list[Reference]:
    return [each for each in view.references(tree) if judge(each) is not Knowledge.KNOWN]


def known_after(builder: PlanBuilder, references: Iterable[Reference]) -> Unknown:
    """Return an Unknown that names the actions to wait for, if any are planned."""
    keys = dict.fromkeys(Key(each.resource, MAKE) for each in references)
    ends = (f"{key.name} is {builder.actions[key].verb.done}" for key in keys
            if key in builder.actions)  # fmt: skip
    return Unknown(" and ".join(ends))


# -------------------------------------------------------------------------------------- display


def displayable(tree: Any, side: TemplateSide) -> Any:
    """Return a tree for display; calls that cannot be resolved become Unknown."""
    return _displayed(forecast.settled(tree, Forecast(side.view)), Unknown())


def _displayed(tree: Any, unknown: Unknown) -> Any:
    if isinstance(tree, forecast.UnresolvedCall):
        return unknown
    if isinstance(tree, dict):
        return {key: _displayed(value, unknown) for key, value in tree.items()}
    return [_displayed(value, unknown) for value in tree] if isinstance(tree, list) else tree


def parts(builder: PlanBuilder, old: Any, new: Any, before: Any) -> tuple[Any, Any] | None:
    """Return the value before and after, in which as few parts as possible are Unknown.

    Return None unless both trees and ``before`` are all maps, or all lists of one length.
    """
    trees = (old, new, before)
    if all(isinstance(each, dict) for each in trees):
        keys: Iterable[Any] = dict.fromkeys([*old, *new])
        pairs = {key: tuple(each.get(key, NOT_SET) for each in trees) for key in keys}
    elif all(isinstance(each, list) for each in trees) and len(old) == len(new) == len(before):
        pairs = dict(enumerate(zip(*trees, strict=True)))
    else:
        return None
    was, will_be = {}, {}
    for key, (left, right, value) in pairs.items():
        if (inner := parts(builder, left, right, value)) is not None:
            was[key], will_be[key] = inner
            continue
        was[key] = will_be[key] = value
        needs = unresolved(right, builder.after, builder.judge)
        is_same = all(builder.judge(each) is Knowledge.STEADY for each in needs)
        is_same = is_same and same(builder, left, right)
        if not (is_same and (needs or type(value) is not type(right))):
            settled = forecast.settled(right, builder.after)
            will_be[key] = _displayed(settled, known_after(builder, needs))
    if isinstance(new, dict):
        return was, will_be
    return list(was.values()), list(will_be.values())


# ------------------------------------------------------------------- outputs and templates


def output_changes(builder: PlanBuilder) -> dict[str, Verb]:
    """Return the verb of each output whose definition changes, by name.

    An output that only follows a changed resource is left out: the plan shows that resource.
    """
    old, new = builder.old.outputs, builder.new.outputs
    verbs = {}
    for name, output in new.items():
        if (before := old.get(name)) is None:
            verbs[name] = Verb.CREATE
            continue
        is_same = before.enabled == output.enabled
        if is_same and output.enabled:
            try:
                is_same = same(builder, before.value, output.value)
            except errors.Failure:  # an invalid output must not fail the plan
                is_same = bool(before.value == output.value)
        if not is_same:
            verbs[name] = Verb.UPDATE
    return verbs | {name: Verb.DELETE for name in old if name not in new}


def differs(builder: PlanBuilder) -> bool:
    """Return whether anything differs at all, the order of resources and outputs too."""
    old, new = builder.old, builder.new
    if (*old.definitions, *old.outputs) != (*new.definitions, *new.outputs):
        return True
    return bool(old.content != new.content)
