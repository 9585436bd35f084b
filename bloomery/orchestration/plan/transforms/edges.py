"""What must come before what: creation against the new template, the end against the old one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Key


def order_creation(builder: PlanBuilder) -> None:
    """Order the new template: who requires another is made after it."""
    definitions = builder.new.definitions
    for name in definitions:
        key = Key(name, MAKE)
        for required in builder.new.required(name):
            if required in definitions:  # depends_on may name what a condition has switched off
                builder.graph.add(key, Key(required, MAKE))


# ------------------------------------------------------------------------------------- the end


def order_deletion(builder: PlanBuilder) -> None:
    """Order the end of what exists: against the old template, after the new one is in place.

    An old one goes after all that required it have gone or have been brought to their new
    definition, and after whatever takes its place.  For that, the end of a row that stays is a
    vertex too: a no-op.
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
    for name, required in builder.present.requires.items():
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
    """Let ``names`` end after ``keys``, whose resource required them.

    ``careful``: what a row required before the old template may be the other way round by now.
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

    A no-op is the end of a row that stays: no action, only a way from what must come before to
    what must come after.
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
    """Join what comes before and after directly, where that makes no more edges."""
    if min(len(graph.requires(noop)), len(graph.required_by(noop))) <= 1:
        graph.bypass(noop)


def _needed(builder: PlanBuilder, todo: list[Key]) -> set[Key]:
    """Return the ends that real ones wait for, and these themselves."""
    needed = set(todo)
    while todo:
        for key in builder.graph.requires(todo.pop()):
            if key.phase == CLEAN and key not in needed:
                needed.add(key)
                todo.append(key)
    return needed
