"""Take away the joints that nothing waits for, and those that save no edge.

A joint is the end of a row that stays: no action, only a way from what must come before to what
must come after.
"""

from __future__ import annotations

from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan.actions import CLEAN, Key
from bloomery.orchestration.plan.draft import Draft


def apply(draft: Draft) -> None:
    ends = [key for key in draft.graph.keys() if key.phase == CLEAN]  # noqa: SIM118  # see backward
    needed = _needed(draft, [key for key in ends if key in draft.actions])
    for key in ends:
        if key not in needed:
            draft.graph.remove(key)
        elif key not in draft.actions:
            _bypass(draft.graph, key)


def _bypass(graph: Graph[Key], joint: Key) -> None:
    """Join what comes before and after directly, where that makes no more edges."""
    needs, users = list(graph.requires(joint)), list(graph.required_by(joint))
    if min(len(needs), len(users)) > 1:
        return
    graph.remove(joint)
    for user in users:
        for need in needs:
            graph.add(user, need)


def _needed(draft: Draft, todo: list[Key]) -> set[Key]:
    """Return the ends that real ones wait for, and these themselves."""
    needed = set(todo)
    while todo:
        for key in draft.graph.requires(todo.pop()):
            if key.phase == CLEAN and key not in needed:
                needed.add(key)
                todo.append(key)
    return needed
