"""Arguments in a query string or a JSON body: their types, declared once per endpoint.

FILTERS = {"limit": Arg(integer), "driver": Arg(text, since=16), "node": Arg(ident, required=True)}
read(FILTERS, {"limit": "10"}, version=20)      # {"limit": 10}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from bloomery import errors
from bloomery.api import versions
from bloomery.model.fields import FieldTable, sort_keys
from bloomery.model.rules import attributes, idents


@dataclass(frozen=True, slots=True)
class Arg:
    """One argument of an endpoint.

    ``since``: older clients get 406 (``refusal`` 400 where Ironic counts it as unknown);
    0 where Ironic does not mind.  ``form``: a JSON schema of what operations check beyond the type
    of the value, or of each item of a list, for the OpenAPI document.
    """

    parse: Callable[[str, Any], Any]
    required: bool = False
    since: int = 0
    refusal: int = 406
    form: Mapping[str, Any] = field(default_factory=dict)


Args: TypeAlias = Mapping[str, Arg]


def read(args: Args, received: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return the parsed arguments.

    Raises Invalid for unknown, missing and malformed arguments, NotAcceptable for arguments that
    the client's version does not have.
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
            refused = versions.refused(arg.since, name)
            raise refused if arg.refusal == 406 else errors.Invalid(reason=str(refused))
    return values


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise errors.InvalidParameterValue(reason=f"Expected string for {name}: {value}")
    if "\0" in value:
        raise errors.InvalidParameterValue(
            reason=f"Invalid {name}: a text must not hold the character NUL",
        )
    return value


def search(name: str, value: Any) -> str:
    """Parse a search text; the operation refuses texts longer than MOST_TEXT."""
    return text(name, value)


def text_or_null(name: str, value: Any) -> str | None:
    return None if value is None else text(name, value)


def uuid(name: str, value: Any) -> str:
    return idents.check_uuid(name, value)


def ident(name: str, value: Any) -> str:
    return idents.check_ident(name, value)


def mac(name: str, value: Any) -> str:
    return idents.mac(value)


def boolean(name: str, value: Any) -> bool:
    return attributes.boolean(name, value)


def integer(name: str, value: Any) -> int:
    try:
        if isinstance(value, bool | list) or (isinstance(value, float) and value % 1):
            raise TypeError  # noqa: TRY301  one message for every wrong type
        number = int(value)
    except (OverflowError, TypeError, ValueError):
        number = None
    if number is None or not -(2**63) <= number < 2**63:
        raise errors.InvalidParameterValue(reason=f"Expected an integer for {name}: {value}")
    return number


def position(name: str, value: Any) -> int | None:
    """Parse the number of an event; ``latest`` is None."""
    return None if value == "latest" else integer(name, value)


def count(name: str, value: Any) -> int:
    """Parse a positive number; the operation refuses smaller numbers with its own message.

    As in Ironic, a number above the largest possible count is cut to that count.
    """
    if isinstance(value, str) and re.fullmatch(r"\d{19,1000}", value, re.ASCII):
        return min(int(value), 2**63 - 1)
    return integer(name, value)


def seconds_or_null(name: str, value: Any) -> int | None:
    """Parse a duration or null; the operation refuses less than 1."""
    return integer_or_null(name, value)


def direction(name: str, value: Any) -> str:
    """Parse a sort direction; the operation refuses anything but asc and desc."""
    return text(name, value)


def integer_or_null(name: str, value: Any) -> int | None:
    return None if value is None else integer(name, value)


def comma_list(name: str, value: Any) -> tuple[str, ...]:
    """Parse a comma list: lower case, trimmed, without duplicates; the argument may be repeated."""
    parts = value if isinstance(value, list) else [value]
    entries = [entry.strip().lower() for part in parts for entry in text(name, part).split(",")]
    return tuple(dict.fromkeys(entry for entry in entries if entry))


def anything(name: str, value: Any) -> Any:
    """Pass a value through; the operation validates it."""
    return value


def array(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise errors.InvalidParameterValue(reason=f"Expected a list for {name}: {value}")
    return value


def array_or_null(name: str, value: Any) -> list[Any] | None:
    return None if value is None else array(name, value)


def paging(fields: FieldTable, *, never: Collection[str] = ()) -> Args:
    """Return the arguments of a list; ``never``: fields by which it cannot be sorted.

    As in Ironic, an empty sort key counts as none.
    """
    return {
        "limit": Arg(count),
        "marker": Arg(uuid),
        "sort_key": Arg(text, form={"enum": ["", *sort_keys(fields, never)]}),
        "sort_dir": Arg(direction),
    }


def fields(names: Iterable[str], since: int = 0, refusal: int = 406) -> Args:
    """Return the argument that selects fields, of these; an empty name counts as none."""
    return {"fields": Arg(comma_list, since=since, refusal=refusal, form={"enum": ["", *names]})}


def needed(name: str, value: str | None) -> str:
    """Return an argument that is required under any of its spellings."""
    if not value:
        raise errors.MissingParameterValue(reason=f"Missing mandatory parameter: {name}")
    return value


def text_or_object_or_null(name: str, value: Any) -> Any:
    return value if value is None or isinstance(value, dict) else text(name, value)


def boolean_or_null(name: str, value: Any) -> bool | None:
    return None if value is None else boolean(name, value)


def ident_or_empty(name: str, value: Any) -> str | None:
    """Parse an ident; null and the empty text, which many clients send for no value, give None."""
    return None if value in (None, "") else ident(name, value)
