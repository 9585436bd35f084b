"""Take away the joints that nothing waits for: ends of rows that stay, with no end behind them."""

from __future__ import annotations

from bloomery.orchestration.plan.actions import CLEAN, Key
from bloomery.orchestration.plan.draft import Draft


def apply(draft: Draft) -> None:
    ends = [key for key in draft.graph.keys() if key.phase == CLEAN]  # noqa: SIM118  # see backward
    needed = _needed(draft, [key for key in ends if key in draft.actions])
    for key in ends:
        if key not in needed:
            draft.graph.remove(key)


def _needed(draft: Draft, todo: list[Key]) -> set[Key]:
    """Return the ends that real ones wait for, and these themselves."""
    needed = set(todo)
    while todo:
        for key in draft.graph.requires(todo.pop()):
            if key.phase == CLEAN and key not in needed:
                needed.add(key)
                todo.append(key)
    return needed
