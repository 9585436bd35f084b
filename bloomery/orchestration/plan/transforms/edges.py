"""Order the vertices: creation by the new template, deletion by the old one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Key


def order_creation(builder: PlanBuilder) -> None:
    """Order the new template: each resource comes after the resources that it requires."""
    definitions = builder.new.definitions
    for name in definitions:
        key = Key(name, MAKE)
        for required in builder.new.required(name):
            if required in definitions:  # depends_on may name a disabled resource
                builder.graph.add(key, Key(required, MAKE))


# ------------------------------------------------------------------------------------ deletion


def order_deletion(builder: PlanBuilder) -> None:
    """Order the deletion of old resources by the old template, after creations and updates.

    An old resource is deleted after its replacement exists and after all resources that required
    it are deleted or updated.  For that, a row that stays has a clean vertex too: a no-op.
    """
    ends = _ends(builder)
    if not ends:
        return
    for name in (*builder.records, *builder.old.definitions):
        ends.setdefault(name, [Key(name, CLEAN)])
    for name, keys in ends.items():
        replacement = Key(name, MAKE)
        for key in keys:
            builder.graph.add(key, replacement if replacement in builder.graph else None)
    for name, keys in ends.items():
        if name in builder.old.definitions:
            _after_users(builder, builder.old.required(name), keys, ends)
    for name, required in builder.existing.requires.items():
        if name in ends:
            _after_users(builder, required, ends[name], ends, careful=True)


def _ends(builder: PlanBuilder) -> dict[str, list[Key]]:
    ends: dict[str, list[Key]] = {}
    for key in builder.actions:
        if key.phase == CLEAN:
            ends.setdefault(key.name, []).append(key)
    return ends


def _after_users(
    builder: PlanBuilder,
    names: Iterable[str],
    keys: list[Key],
    ends: Mapping[str, list[Key]],
    *,
    careful: bool = False,
) -> None:
    """Clean ``names`` after ``keys``, whose resource required them.

    ``careful``: skip edges that would close a cycle; a row's own requirements may be outdated.
    """
    for required in dict.fromkeys(names):
        for end in ends.get(required, ()):
            for key in keys:
                if not (careful and _reaches(builder.graph, key, end)):
                    builder.graph.add(end, key)


def _reaches(graph: Graph[Key], key: Key, end: Key) -> bool:
    """Whether ``key`` requires ``end``, directly or through others."""
    todo, seen = [key], {key}
    while todo:
        each = todo.pop()
        if each == end:
            return True
        needs = graph.requires(each) if each in graph else ()
        todo += [need for need in needs if need not in seen]
        seen.update(needs)
    return False


# -------------------------------------------------------------------------------------- no-ops


def drop_noop_vertices(builder: PlanBuilder) -> None:
    """Take away the no-op vertices that nothing waits for, and those that save no edge.

    A no-op is the clean vertex of a row that stays: it only passes on the order.
    """
    keys = builder.graph.keys()
    ends = [key for key in keys if key.phase == CLEAN]
    needed = _needed(builder, [key for key in ends if key in builder.actions])
    for key in ends:
        if key not in needed:
            builder.graph.remove(key)
        elif key not in builder.actions:
            _bypass(builder.graph, key)


def _bypass(graph: Graph[Key], noop: Key) -> None:
    """Remove a no-op and join its neighbours directly, if that adds no edges."""
    if min(len(graph.requires(noop)), len(graph.required_by(noop))) <= 1:
        graph.bypass(noop)


def _needed(builder: PlanBuilder, todo: list[Key]) -> set[Key]:
    """Return the clean vertices in ``todo``, and those that they require."""
    needed = set(todo)
    while todo:
        for key in builder.graph.requires(todo.pop()):
            if key.phase == CLEAN and key not in needed:
                needed.add(key)
                todo.append(key)
    return needed
