"""Put the members of groups, chains and nested templates into the graph, below their resource.

They begin when all is there that the resource requires, and the resource is done when they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan import nested
from bloomery.orchestration.plan.actions import BEGIN, CLEAN, MAKE, Action, Key, Verb
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.nested import NestedPlan

MADE = frozenset({Verb.CREATE, Verb.RECREATE, Verb.REPLACE})


def apply(builder: PlanBuilder) -> None:
    for key, action in list(builder.actions.items()):
        nested_plan = _nested_plan(builder, key, action)
        if nested_plan is not None and nested_plan.plan.changes:
            _merge(builder, key, nested_plan)


def _nested_plan(builder: PlanBuilder, key: Key, action: Action) -> NestedPlan | None:
    if key.phase == CLEAN:
        ends = action.verb is Verb.DELETE and key.name in builder.old.definitions
        return nested.deleted(builder, key.name) if ends and _below(builder, key, action) else None
    if action.verb in MADE and nested.is_composite(builder.new, key.name):
        builder.nested_plan[key.name] = nested.created(builder, key.name)
    return builder.nested_plan.get(key.name)


def _below(builder: PlanBuilder, key: Key, action: Action) -> bool:
    """Whether a row that goes is a stack; one that was left over may be of another template."""
    return not key.part and nested.is_composite(builder.old, key.name)


def _merge(builder: PlanBuilder, owner: Key, nested_plan: NestedPlan) -> None:
    plan, begin = nested_plan.plan, _begin(builder.graph, owner)
    for key in plan.graph.keys():  # noqa: SIM118  # asks no order; iterating the graph would
        member = below(owner, key)
        builder.graph.add(owner, member)
        for need in plan.requires(key):
            builder.graph.add(member, below(owner, need))
        if begin is not None and not plan.requires(key):
            builder.graph.add(member, begin)
        if key in plan.actions:
            builder.actions[member] = _doubted(plan.actions[key], builder.actions[owner])


def below(owner: Key, key: Key) -> Key:
    return Key(f"{owner.name}/{key.name}", key.phase, key.part)


def _begin(graph: Graph[Key], owner: Key) -> Key | None:
    """Return the no-op at which members begin; None where nothing is to be waited for."""
    needs = list(graph.requires(owner))
    begin = Key(owner.name, BEGIN, "" if owner.phase == MAKE else owner.phase)
    _add_all(graph, begin, needs)
    return begin if needs else None


def _add_all(graph: Graph[Key], key: Key, needs: Iterable[Key]) -> None:
    for need in needs:
        graph.add(key, need)


def _doubted(action: Action, owner: Action) -> Action:
    return action if owner.certain else replace(action, certain=False)
