"""Parsers of query arguments and of single values, as strict as Heat's.

An argument may be repeated: parsers of one value take the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.api.arguments import Arg
from bloomery.api.orchestration import replies

_INTEGER: Final = re.compile(r"-?\d+", re.ASCII)
_MOST_DIGITS: Final = 18  # larger than any count, and than a column
_MOST_CHARS: Final = 80


def texts(_name: str, value: Any) -> tuple[str, ...]:
    """Return all values of a repeated argument."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def text(name: str, value: Any) -> str:
    return texts(name, value)[-1]


def comma_list(name: str, value: Any) -> tuple[str, ...]:
    """Return the items of comma lists."""
    return tuple(item for each in texts(name, value) for item in each.split(",") if item)


def boolean(name: str, value: Any) -> bool:
    """Parse true or false.  Raises BadRequest."""
    return truth(name, text(name, value), replies.BadRequest)


def truth(name: str, value: Any, error: type[errors.Failure] = replies.BadValue) -> bool:
    """Return the value of a boolean or its text; Heat accepts these two words only."""
    text = str(value).lower()
    if text not in ("true", "false"):
        raise error(reason=f"cannot read {name} = {quoted(value)}: it must be true or false")
    return text == "true"


def count(name: str, value: Any) -> int | None:
    """Parse a count; None if it is empty.  Raises BadRequest for another text."""
    number = text(name, value)
    return natural(name, number) if number else None


def natural(name: str, value: Any) -> int:
    """Parse a natural number or its text.  Raises BadRequest."""
    digits = str(value)
    is_number = not isinstance(value, bool | float) and _INTEGER.fullmatch(digits) is not None
    if not is_number or len(digits) > _MOST_DIGITS or int(digits) < 0:
        raise replies.BadRequest(
            reason=f"cannot read {name} = {quoted(value)}: it must be a whole number from 0"
        )
    return int(digits)


def descending(name: str, value: Any) -> bool | None:
    """Parse a sort direction, or None if it is empty."""
    direction = text(name, value)
    if direction not in ("", "asc", "desc"):
        raise replies.BadValue(
            reason=f"cannot sort in direction {quoted(direction)}: {name} must be asc or desc"
        )
    return None if not direction else direction == "desc"


def columns(columns: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sort columns; unknown keys are ignored, as in Heat."""
    return tuple(columns[name] for name in names if name in columns)


def filters(query: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the accepted values by column."""
    accepted: dict[str, tuple[str, ...]] = {}
    for name, column in columns.items():
        if name in query:
            accepted[column] = accepted.get(column, ()) + query[name]
    return accepted


def quoted(value: Any) -> str:
    """Return a value as error messages repeat it."""
    text = repr(value)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}..."


def all_of(parse: Callable[[str, Any], Any], *names: str) -> dict[str, Arg]:
    """Return arguments of one type."""
    return dict.fromkeys(names, Arg(parse))


PAGING: Final = {
    "sort_keys": Arg(comma_list), "sort_dir": Arg(descending), "marker": Arg(text),
    "limit": Arg(count),
}  # fmt: skip
_TEXT: Final[dict[str, Any]] = {"type": "string"}
SHAPES: Final[Mapping[Callable[..., Any], dict[str, Any]]] = {
    boolean: {"type": "boolean"},
    count: {"type": "integer", "minimum": 0, "maximum": 10**_MOST_DIGITS - 1},
    descending: _TEXT | {"enum": ["asc", "desc"]},
    text: _TEXT,
    texts: {"type": "array", "items": _TEXT},
    comma_list: {"type": "array", "items": _TEXT},
}
