"""Put the members of groups, chains and nested templates into the graph, below their resource.

They begin when all is there that the resource requires, and the resource is done when they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan import inner
from bloomery.orchestration.plan.actions import BEGIN, CLEAN, MAKE, Action, Key, Verb
from bloomery.orchestration.plan.draft import Draft
from bloomery.orchestration.plan.inner import Inside

MADE = frozenset({Verb.CREATE, Verb.RECREATE, Verb.REPLACE})


def apply(draft: Draft) -> None:
    for key, action in list(draft.actions.items()):
        inside = _inside(draft, key, action)
        if inside is not None and inside.plan.changes:
            _merge(draft, key, inside)


def _inside(draft: Draft, key: Key, action: Action) -> Inside | None:
    if key.phase == CLEAN:
        ends = action.verb is Verb.DELETE and key.name in draft.old.definitions
        return inner.deleted(draft, key.name) if ends and _below(draft, key, action) else None
    if action.verb in MADE and inner.is_composite(draft.new, key.name):
        draft.inside[key.name] = inner.created(draft, key.name)
    return draft.inside.get(key.name)


def _below(draft: Draft, key: Key, action: Action) -> bool:
    """Whether a row that goes is a stack; one that was left over may be of another template."""
    return not key.part and inner.is_composite(draft.old, key.name)


def _merge(draft: Draft, owner: Key, inside: Inside) -> None:
    plan, begin = inside.plan, _begin(draft.graph, owner)
    for key in plan.graph.keys():  # noqa: SIM118  # asks no order; iterating the graph would
        member = below(owner, key)
        draft.graph.add(owner, member)
        for need in plan.requires(key):
            draft.graph.add(member, below(owner, need))
        if begin is not None and not plan.requires(key):
            draft.graph.add(member, begin)
        if key in plan.actions:
            draft.actions[member] = _doubted(plan.actions[key], draft.actions[owner])


def below(owner: Key, key: Key) -> Key:
    return Key(f"{owner.name}/{key.name}", key.phase, key.part)


def _begin(graph: Graph[Key], owner: Key) -> Key | None:
    """Return the joint at which members begin; None where nothing is to be waited for."""
    needs = list(graph.requires(owner))
    begin = Key(owner.name, BEGIN, "" if owner.phase == MAKE else owner.phase)
    _add_all(graph, begin, needs)
    return begin if needs else None


def _add_all(graph: Graph[Key], key: Key, needs: Iterable[Key]) -> None:
    for need in needs:
        graph.add(key, need)


def _doubted(action: Action, owner: Action) -> Action:
    return action if owner.certain else replace(action, certain=False)
