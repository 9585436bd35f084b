"""Order the end of what exists: against the old template, and after the new one is in place.

An old one goes after all that required it have gone or have been brought to their new definition,
and after whatever takes its place.  For that, the end of a row that stays is a vertex too: a no-op,
at which nothing is done.
"""

from __future__ import annotations

from collections.abc import Mapping

from bloomery.orchestration.plan.actions import CLEAN, MAKE, Key
from bloomery.orchestration.plan.builder import PlanBuilder


def apply(builder: PlanBuilder) -> None:
    ends = _ends(builder)
    if not ends:
        return
    for name in (*builder.records, *builder.old.definitions):
        ends.setdefault(name, [Key(name, CLEAN)])
    for name, keys in ends.items():
        made = Key(name, MAKE)
        for key in keys:
            builder.graph.add(key, made if made in builder.graph else None)
    for name, keys in ends.items():
        if name in builder.old.definitions:
            _after_users(builder, name, keys, ends)


def _ends(builder: PlanBuilder) -> dict[str, list[Key]]:
    ends: dict[str, list[Key]] = {}
    for key in builder.actions:
        if key.phase == CLEAN:
            ends.setdefault(key.name, []).append(key)
    return ends


def _after_users(
    builder: PlanBuilder, user: str, keys: list[Key], ends: Mapping[str, list[Key]]
) -> None:
    """Let what ``user`` required end after it."""
    for required in dict.fromkeys(builder.old.required(user)):
        for end in ends.get(required, ()):
            for key in keys:
                builder.graph.add(end, key)
