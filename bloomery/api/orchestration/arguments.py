"""Arguments in a query: what Heat reads, as strictly as Heat reads it.

What is not an argument is passed over, but in lists of resources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.api.orchestration import faults
from bloomery.api.orchestration.call import Call

_INTEGER: Final = re.compile(r"-?\d+", re.ASCII)
_MOST_DIGITS: Final = 18  # beyond that no list has so many items, and databases no such number
_SHOWN_CHARS: Final = 80


def values(call: Call, name: str) -> tuple[str, ...]:
    """Return what was said of an argument, in all the places where it was said."""
    value = call.query.get(name, ())
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def value(call: Call, name: str) -> str | None:
    """Return what was said of an argument, the last time; None: nothing."""
    said = values(call, name)
    return said[-1] if said else None


def boolean(call: Call, name: str, *, default: bool = False) -> bool:
    """Raises BadRequest for anything but true and false."""
    said = value(call, name)
    return default if said is None else truth(name, said, faults.BadRequest)


def truth(name: str, value: Any, error: type[errors.Failure] = faults.BadValue) -> bool:
    """Return what a truth value or its text says; Heat knows these two words only."""
    word = str(value).lower()
    if word not in ("true", "false"):
        raise error(reason=f"cannot read {name} = {shown(value)}: it must be true or false")
    return word == "true"


def count(call: Call, name: str) -> int | None:
    """Return a number of things; None: nothing was said, or nothing but the name.

    Raises BadRequest for a negative one, and for what is none.
    """
    said = value(call, name)
    return None if not said else natural(name, said)


def natural(name: str, value: Any) -> int:
    """Return a whole number from 0, or what its text says.  Raises BadRequest."""
    text = str(value)
    is_number = not isinstance(value, bool | float) and _INTEGER.fullmatch(text) is not None
    if not is_number or len(text) > _MOST_DIGITS or int(text) < 0:
        raise faults.BadRequest(
            reason=f"cannot read {name} = {shown(value)}: it must be a whole number from 0"
        )
    return int(text)


def descending(call: Call) -> bool | None:
    """Return the direction of a list; None: nothing was said."""
    said = value(call, "sort_dir")
    if said not in (None, "", "asc", "desc"):
        raise faults.BadValue(
            reason=f"cannot sort in direction {shown(said)}: sort_dir must be asc or desc"
        )
    return None if not said else said == "desc"


def sort_keys(call: Call, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns that a list is sorted by; unknown keys are passed over, as in Heat."""
    names = (name for said in values(call, "sort_keys") for name in said.split(","))
    return tuple(columns[name] for name in names if name in columns)


def filters(call: Call, columns: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return by column the values of which one must fit."""
    found: dict[str, tuple[str, ...]] = {}
    for name, column in columns.items():
        if name in call.query:
            found[column] = found.get(column, ()) + values(call, name)
    return found


def comma_list(call: Call, *names: str) -> tuple[str, ...]:
    """Return the words of comma lists that may be spelled in several ways."""
    said = (word for name in names for text in values(call, name) for word in text.split(","))
    return tuple(word for word in said if word)


def shown(value: Any) -> str:
    """Return a value as a message may repeat it."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
