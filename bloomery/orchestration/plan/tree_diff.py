"""Compare trees of two templates while not all of their calls can be resolved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bloomery import errors
from bloomery.orchestration.plan import forecast
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.differences import NOT_SET, Unknown
from bloomery.orchestration.plan.forecast import Forecast, Judge, Knowledge
from bloomery.orchestration.plan.plans import MAKE, Key, Verb
from bloomery.orchestration.stack.template_side import TemplateSide
from bloomery.orchestration.template.entries import OutputDefinition
from bloomery.orchestration.template.functions.base import Reference


def same(builder: PlanBuilder, old: Any, new: Any) -> bool:
    """Return whether both trees give the same value if no resource changes."""
    if builder.same_context and old == new:
        return True
    left = forecast.settled(old, Forecast(builder.old.view))
    right = forecast.settled(new, Forecast(builder.new.view))
    return bool(left == right) and not _asks_for_changed(builder, right)


def _asks_for_changed(builder: PlanBuilder, tree: Any) -> bool:
    """Return whether an unresolved call names a parameter whose value differs."""
    names = {text for residue in forecast.residues(tree) for text in residue.texts()}
    return any(
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
    return _plain(forecast.settled(tree, Forecast(side.view)), Unknown())


def _plain(tree: Any, unknown: Unknown) -> Any:
    if isinstance(tree, forecast.Residue):
        return unknown
    if isinstance(tree, dict):
        return {key: _plain(value, unknown) for key, value in tree.items()}
    return [_plain(value, unknown) for value in tree] if isinstance(tree, list) else tree


def parts(builder: PlanBuilder, old: Any, new: Any, before: Any) -> tuple[Any, Any] | None:
    """Return the value before and after, in which as few parts as possible are Unknown.

    Return None unless both trees and ``before`` are all maps, or all lists of one length.
    """
    pairs = _pairs(old, new, before)
    if pairs is None:
        return None
    was, will_be = {}, {}
    for key, (one, other, value) in pairs.items():
        was[key], will_be[key] = parts(builder, one, other, value) or _part(
            builder, one, other, value
        )
    if isinstance(new, dict):
        return was, will_be
    return list(was.values()), list(will_be.values())


def _pairs(old: Any, new: Any, before: Any) -> dict[Any, tuple[Any, Any, Any]] | None:
    """Return the parts of ``old``, ``new`` and ``before`` by key or index."""
    if isinstance(old, dict) and isinstance(new, dict) and isinstance(before, dict):
        keys = dict.fromkeys([*old, *new])
        return {key: tuple(one.get(key, NOT_SET) for one in (old, new, before)) for key in keys}
    lists = isinstance(old, list) and isinstance(new, list) and isinstance(before, list)
    if lists and len(old) == len(new) == len(before):
        return dict(enumerate(zip(old, new, before, strict=True)))
    return None


def _part(builder: PlanBuilder, old: Any, new: Any, before: Any) -> tuple[Any, Any]:
    needs = unresolved(new, builder.after, builder.judge)
    steady = all(builder.judge(each) is Knowledge.STEADY for each in needs)
    if steady and same(builder, old, new) and (needs or type(before) is not type(new)):
        return before, before
    return before, _plain(forecast.settled(new, builder.after), known_after(builder, needs))


# ------------------------------------------------------------------- outputs and templates


def output_changes(builder: PlanBuilder) -> dict[str, Verb]:
    """Return the verb of each output whose definition changes, by name.

    An output that only follows a changed resource is left out: the plan shows that resource.
    """
    old, new = builder.old.outputs, builder.new.outputs
    verbs = {name: _verb(builder, old.get(name), each) for name, each in new.items()}
    verbs |= {name: Verb.DELETE for name in old if name not in new}
    return {name: verb for name, verb in verbs.items() if verb is not Verb.UNCHANGED}


def _verb(builder: PlanBuilder, old: OutputDefinition | None, new: OutputDefinition) -> Verb:
    if old is None:
        return Verb.CREATE
    same = old.enabled == new.enabled and (not new.enabled or _same_output(builder, old, new))
    return Verb.UNCHANGED if same else Verb.UPDATE


def _same_output(builder: PlanBuilder, old: OutputDefinition, new: OutputDefinition) -> bool:
    try:
        return same(builder, old.value, new.value)
    except errors.Failure:  # an invalid output must not fail the plan
        return bool(old.value == new.value)


def differs(builder: PlanBuilder) -> bool:
    """Return whether anything differs at all, the order of resources and outputs too."""
    old, new = builder.old, builder.new
    if (*old.definitions, *old.outputs) != (*new.definitions, *new.outputs):
        return True
    return bool(old.content != new.content)
