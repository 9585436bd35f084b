"""Arguments in a query string or a body of names: what each may be, said once per endpoint.

FILTERS = {"limit": Arg(integer), "driver": Arg(text, since=16), "node": Arg(ident, required=True)}
read(FILTERS, {"limit": "10"}, version=20)      # {"limit": 10}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.api import versions
from bloomery.model.rules import attributes, idents


@dataclass(frozen=True, slots=True)
class Arg:
    """One argument of an endpoint.

    ``since``: older clients get 406 (``refusal`` 400 where Ironic counts it as unknown);
    0 where Ironic does not mind.
    """

    parse: Callable[[str, Any], Any]
    required: bool = False
    since: int = 0
    refusal: int = 406


Args: TypeAlias = Mapping[str, Arg]


def read(args: Args, received: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return the arguments parsed.

    Raises Invalid for unknown, missing and malformed ones, NotAcceptable for those that are too
    new.
    """
    unknown = [name for name in received if name not in args]
    if unknown:
        raise errors.Invalid(
            reason=f"Unexpected arguments: {', '.join(unknown)}. "
            f"Allowed: {', '.join(sorted(args)) or 'none'}",
        )
    values = {name: args[name].parse(name, value) for name, value in received.items()}
    for name, arg in args.items():
        if name not in received and arg.required:
            raise errors.MissingParameterValue(reason=f"Missing mandatory parameter: {name}")
        if name in received and version < arg.since:
            raise _too_new(name, arg)
    return values


def _too_new(name: str, arg: Arg) -> errors.Failure:
    refused = versions.refused(arg.since, name)
    return refused if arg.refusal == 406 else errors.Invalid(reason=str(refused))


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise errors.InvalidParameterValue(reason=f"Expected string for {name}: {value}")
    if "\0" in value:
        raise errors.InvalidParameterValue(
            reason=f"Invalid {name}: a text must not hold the character NUL",
        )
    return value


def search(name: str, value: Any) -> str:
    """A text to be found inside others; the operation refuses those of more than MOST_TEXT."""
    return text(name, value)


def text_or_null(name: str, value: Any) -> str | None:
    return None if value is None else text(name, value)


def uuid(name: str, value: Any) -> str:
    return idents.check_uuid(name, value)


def ident(name: str, value: Any) -> str:
    """A UUID or a name."""
    return idents.check_ident(name, value)


def mac(name: str, value: Any) -> str:
    return idents.mac(value)


def boolean(name: str, value: Any) -> bool:
    return attributes.boolean(name, value)


def integer(name: str, value: Any) -> int:
    try:
        if isinstance(value, bool | float | list):
            raise TypeError  # noqa: TRY301  one sentence for every way to be wrong
        number = int(value)
    except (TypeError, ValueError):
        number = None
    if number is None or not -(2**63) <= number < 2**63:
        raise errors.InvalidParameterValue(reason=f"Expected an integer for {name}: {value}")
    return number


def count(name: str, value: Any) -> int:
    """A number of things, 1 or more; the operation, which knows the words for it, refuses less.

    What is more than there can be of anything counts as the most, as in Ironic.
    """
    if isinstance(value, str) and re.fullmatch(r"\d{19,1000}", value, re.ASCII):
        return min(int(value), 2**63 - 1)
    return integer(name, value)


def seconds_or_null(name: str, value: Any) -> int | None:
    """How long something may take, 1 or more; the operation refuses less."""
    return integer_or_null(name, value)


def direction(name: str, value: Any) -> str:
    """Asc or desc; the operation refuses others."""
    return text(name, value)


def integer_or_null(name: str, value: Any) -> int | None:
    return None if value is None else integer(name, value)


def words(name: str, value: Any) -> tuple[str, ...]:
    """A comma list: lower case, trimmed, without duplicates; it may come in several parts."""
    parts = value if isinstance(value, list) else [value]
    entries = [word.strip().lower() for part in parts for word in text(name, part).split(",")]
    return tuple(dict.fromkeys(word for word in entries if word))


def anything(name: str, value: Any) -> Any:
    """For values that the operation judges itself, in its own order."""
    return value


def array(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise errors.InvalidParameterValue(reason=f"Expected a list for {name}: {value}")
    return value


def array_or_null(name: str, value: Any) -> list[Any] | None:
    return None if value is None else array(name, value)


PAGING: Final[Args] = {
    "limit": Arg(count),
    "marker": Arg(uuid),
    "sort_key": Arg(text),
    "sort_dir": Arg(direction),
}


def needed(name: str, value: str | None) -> str:
    """Return an argument that some spelling of must have been given."""
    if not value:
        raise errors.MissingParameterValue(reason=f"Missing mandatory parameter: {name}")
    return value


def text_or_object_or_null(name: str, value: Any) -> Any:
    return value if value is None or isinstance(value, dict) else text(name, value)


def boolean_or_null(name: str, value: Any) -> bool | None:
    return None if value is None else boolean(name, value)


def ident_or_empty(name: str, value: Any) -> str | None:
    """Return None for null and for the empty text, which many clients send for no value."""
    return None if value in (None, "") else ident(name, value)
