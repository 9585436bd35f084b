"""Reading what an agent or a BMC has sent: anything may stand anywhere, or be missing."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def part(data: Any, *path: str) -> Json:
    """Return the object below ``path``; an empty one where there is none."""
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def objects(data: Any, name: str) -> list[Json]:
    """Return the objects of the list ``name``; what is no object is left out."""
    listed = data.get(name) if isinstance(data, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def text(data: Json, name: str) -> str | None:
    """Return a text that is not empty."""
    value = data.get(name)
    return value if isinstance(value, str) and value else None


def number(data: Json, name: str) -> int | None:
    """Return a whole number, which may be written as text."""
    value = data.get(name)
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) else None
