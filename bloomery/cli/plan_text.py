"""What a preview says, as an operator reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bloomery.cli import terminal

Json = dict[str, Any]
SIGNS: Final = {"added": "+", "updated": "~", "replaced": "±", "deleted": "-"}
WORDS: Final = {"added": "create", "updated": "update", "replaced": "replace", "deleted": "delete"}


def text(preview: Json) -> str:
    """Return a line for each resource that changes, and one for their number."""
    rows = list(_rows(preview))
    lines = terminal.columns(rows) if rows else []
    counts = {word: sum(row[3] == word for row in rows) for word in WORDS.values()}
    summary = ", ".join(f"{count} to {word}" for word, count in counts.items() if count)
    return "\n".join([*lines, f"{summary}." if summary else "No resource changes."])


def changes_resources(preview: Json) -> bool:
    return any(True for _ in _rows(preview))


def _rows(preview: Json) -> Iterator[tuple[str, str, str, str]]:
    if "stack" in preview:
        for each in _flat(preview["stack"]["resources"]):
            yield "+", each["resource_name"], each["resource_type"], "create"
        return
    for part, word in WORDS.items():
        for each in preview["resource_changes"][part]:
            yield SIGNS[part], each["resource_name"], each["resource_type"], word


def _flat(resources: list[Any]) -> Iterator[Json]:
    """Yield resources of a tree; those of a nested stack are a list in its place."""
    for each in resources:
        if isinstance(each, list):
            yield from _flat(each)
        else:
            yield each
