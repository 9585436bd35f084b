"""Reads of unvalidated data from an agent or a BMC."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]
MOST_TEXT: Final = 1024  # characters: above every name, serial number and address


def part(data: Any, *path: str) -> Json:
    """Return the object below ``path``, or {}."""
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def objects(data: Any, name: str) -> list[Json]:
    """Return the objects of the list ``name``; other elements are skipped."""
    listed = data.get(name) if isinstance(data, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def text(data: Json, name: str) -> str | None:
    """Return a non-empty text, or None; a text beyond MOST_TEXT is none."""
    value = data.get(name)
    return value if isinstance(value, str) and 0 < len(value) <= MOST_TEXT else None


def number(data: Json, name: str) -> int | None:
    """Return a whole number, also from text, or None."""
    value = data.get(name)
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) else None
