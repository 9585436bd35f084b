"""Take away the no-op vertices that nothing waits for, and those that save no edge.

A no-op is the end of a row that stays: no action, only a way from what must come before to what
must come after.
"""

from __future__ import annotations

from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan.actions import CLEAN, Key
from bloomery.orchestration.plan.builder import PlanBuilder


def apply(builder: PlanBuilder) -> None:
    ends = [key for key in builder.graph.keys() if key.phase == CLEAN]  # noqa: SIM118  # see backward
    needed = _needed(builder, [key for key in ends if key in builder.actions])
    for key in ends:
        if key not in needed:
            builder.graph.remove(key)
        elif key not in builder.actions:
            _bypass(builder.graph, key)


def _bypass(graph: Graph[Key], noop: Key) -> None:
    """Join what comes before and after directly, where that makes no more edges."""
    needs, users = list(graph.requires(noop)), list(graph.required_by(noop))
    if min(len(needs), len(users)) > 1:
        return
    graph.remove(noop)
    for user in users:
        for need in needs:
            graph.add(user, need)


def _needed(builder: PlanBuilder, todo: list[Key]) -> set[Key]:
    """Return the ends that real ones wait for, and these themselves."""
    needed = set(todo)
    while todo:
        for key in builder.graph.requires(todo.pop()):
            if key.phase == CLEAN and key not in needed:
                needed.add(key)
                todo.append(key)
    return needed
