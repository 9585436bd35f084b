"""Query arguments, as strictly parsed as in Heat.

Unknown arguments are ignored, except in lists of resources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.api.orchestration import faults
from bloomery.api.orchestration.call import Call

_INTEGER: Final = re.compile(r"-?\d+", re.ASCII)
_MOST_DIGITS: Final = 18  # larger than any count, and than a column
_SHOWN_CHARS: Final = 80


def values(call: Call, name: str) -> tuple[str, ...]:
    """Return all values of a repeated argument."""
    value = call.query.get(name, ())
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def value(call: Call, name: str) -> str | None:
    """Return the last value of an argument, or None."""
    texts = values(call, name)
    return texts[-1] if texts else None


def boolean(call: Call, name: str, *, default: bool = False) -> bool:
    """Parse true or false.  Raises BadRequest."""
    text = value(call, name)
    return default if text is None else truth(name, text, faults.BadRequest)


def truth(name: str, value: Any, error: type[errors.Failure] = faults.BadValue) -> bool:
    """Return the value of a boolean or its text; Heat accepts these two words only."""
    word = str(value).lower()
    if word not in ("true", "false"):
        raise error(reason=f"cannot read {name} = {shown(value)}: it must be true or false")
    return word == "true"


def count(call: Call, name: str) -> int | None:
    """Parse a count; None if the argument is absent or empty.

    Raises BadRequest for a negative or malformed number.
    """
    text = value(call, name)
    return None if not text else natural(name, text)


def natural(name: str, value: Any) -> int:
    """Parse a natural number or its text.  Raises BadRequest."""
    text = str(value)
    is_number = not isinstance(value, bool | float) and _INTEGER.fullmatch(text) is not None
    if not is_number or len(text) > _MOST_DIGITS or int(text) < 0:
        raise faults.BadRequest(
            reason=f"cannot read {name} = {shown(value)}: it must be a whole number from 0"
        )
    return int(text)


def descending(call: Call) -> bool | None:
    """Return the sort direction, or None."""
    direction = value(call, "sort_dir")
    if direction not in (None, "", "asc", "desc"):
        raise faults.BadValue(
            reason=f"cannot sort in direction {shown(direction)}: sort_dir must be asc or desc"
        )
    return None if not direction else direction == "desc"


def sort_keys(call: Call, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sort columns; unknown keys are ignored, as in Heat."""
    names = (name for text in values(call, "sort_keys") for name in text.split(","))
    return tuple(columns[name] for name in names if name in columns)


def filters(call: Call, columns: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the accepted values by column."""
    accepted: dict[str, tuple[str, ...]] = {}
    for name, column in columns.items():
        if name in call.query:
            accepted[column] = accepted.get(column, ()) + values(call, name)
    return accepted


def comma_list(call: Call, *names: str) -> tuple[str, ...]:
    """Return the items of comma lists under any of several spellings."""
    words = (word for name in names for text in values(call, name) for word in text.split(","))
    return tuple(word for word in words if word)


def shown(value: Any) -> str:
    """Return a value as error messages repeat it."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
