"""The size of a value, its text, and its name in messages."""

from __future__ import annotations

import json
from typing import Any

from bloomery import errors
from bloomery.orchestration.limits import Limits


def size(value: Any, limits: Limits) -> tuple[int, int]:
    """Return nodes and characters of ``value``; refuse more than a function may return.

    A container that is shared inside a value counts at each place, as if written out.
    """
    nodes = chars = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            chars += len(item)
            bound_chars(chars, limits)
        elif isinstance(item, dict):
            nodes += 2 * len(item)
            bound_nodes(nodes, limits)
            waiting += (*item, *item.values())
        elif isinstance(item, list):
            nodes += len(item)
            bound_nodes(nodes, limits)
            waiting += item
    return nodes, chars


def has_text(value: Any) -> bool:
    """Whether there is a text anywhere in ``value``, keys included."""
    if isinstance(value, dict):
        return any(has_text(key) or has_text(item) for key, item in value.items())
    if isinstance(value, list):
        return any(map(has_text, value))
    return isinstance(value, str)


def bound_nodes(nodes: int, limits: Limits) -> None:
    if nodes > limits.result_nodes:
        raise errors.StackValidationFailed(
            reason=f"it would make more than {limits.result_nodes} keys and values (result_nodes): "
            "make it smaller"
        )


def bound_chars(chars: int, limits: Limits) -> None:
    if chars > limits.result_chars:
        raise errors.StackValidationFailed(
            reason=f"it would make more than {limits.result_chars} characters (result_chars): "
            "make it smaller"
        )


def json_text(value: Any) -> str:
    """Return a map or list as text, the way Heat's functions write it."""
    try:
        return json.dumps(value, sort_keys=True)
    except (TypeError, ValueError) as exc:
        raise errors.StackValidationFailed(
            reason=f"it cannot be written as JSON ({exc}); make all keys of its maps text"
        ) from exc


def described(value: Any) -> str:
    """Return a name of ``value`` by its kind, for messages."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"the text {shortened(value)!r}"
    return "null" if value is None else repr(value)


def shortened(text: str, length: int = 60) -> str:
    return text if len(text) <= length else f"{text[:length]}..."
