"""The values of YAML 1.1 scalars; the surprises of that version are refused, not guessed at.

Dates stay text.  Numbers that YAML reads as other numbers than they look (0644, 12:30) are refused
with advice, and so are numbers that JSON cannot hold (.nan, .inf, too many digits).  Errors are
raised without a place; the reader of the document adds it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import yaml

from bloomery import errors

PREFIX: Final = "tag:yaml.org,2002:"

# PyYAML's own patterns, by the first character of a text; dates are left out and so stay text.
PATTERNS: Final[dict[str, list[tuple[str, Any]]]] = {
    first: [
        (tag.removeprefix(PREFIX), pattern)
        for tag, pattern in patterns
        if tag.removeprefix(PREFIX) in {"null", "bool", "int", "float"}
    ]
    for first, patterns in yaml.resolver.Resolver.yaml_implicit_resolvers.items()
}


def plain_value(text: str, most_digits: int) -> Any:
    """Return the value of ``text`` written without quotes and without a tag."""
    for tag, pattern in PATTERNS.get(text[:1], ()):
        if pattern.match(text):
            try:
                return MEANINGS[tag](text, most_digits)
            except ValueError as exc:  # a prefix and no digits, such as 0x_
                raise _unholdable(text) from exc
    return text


def tagged(tag: str, text: str, most_digits: int) -> Any:
    """Return the value of ``text`` with an explicit tag, as in ``!!str 5``."""
    meaning = MEANINGS.get(tag.removeprefix(PREFIX)) if tag.startswith(PREFIX) else None
    if meaning is None:
        raise refused(tag)
    try:
        return meaning(text, most_digits)
    except (ValueError, LookupError) as exc:
        raise fault(
            f"{text[:40]!r} does not fit the tag {tag_text(tag)}: leave the tag out"
        ) from exc


def tag_text(tag: str) -> str:
    """Return a tag as users write it."""
    return "!!" + tag.removeprefix(PREFIX) if tag.startswith(PREFIX) else tag[:40]


def refused(tag: str) -> errors.TemplateUnreadable:
    return fault(f"the tag {tag_text(tag)} is not allowed here: leave it out, or use {ALLOWED}")


def fault(reason: str) -> errors.TemplateUnreadable:
    return errors.TemplateUnreadable(reason=reason)


def _int(text: str, most_digits: int) -> int:
    digits = _bounded(text, most_digits).lower()
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    if ":" in digits:
        raise _misread(text, sign * int(_sixties(digits)))
    if digits[0] == "0" and digits[1:].isdigit():
        raise _misread(text, sign * int(digits, 8))
    return sign * int(digits, 0)


def _float(text: str, most_digits: int) -> float:
    digits = _bounded(text, most_digits).lower()
    if ":" in digits:
        sign = -1 if digits.startswith("-") else 1
        raise _misread(text, sign * _sixties(digits.lstrip("+-")))
    number = float(digits.replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(number):
        raise _unholdable(text)
    return number


def _unholdable(text: str) -> errors.TemplateUnreadable:
    return fault(f"{text} is no number that a template can hold: quote it ('{text}')")


def _bounded(text: str, most_digits: int) -> str:
    if len(text) > most_digits:
        raise fault(
            f"a number has {len(text)} digits, {most_digits} is the most (scalar_digits): "
            "quote it if it is meant as text"
        )
    return text.replace("_", "")


def _sixties(digits: str) -> float:
    parts = [float(part) for part in digits.split(":")]
    return functools.reduce(lambda whole, part: whole * 60 + part, parts)


def _misread(text: str, number: float) -> errors.TemplateUnreadable:
    return fault(
        f"YAML reads {text} as the number {number:.15g}: quote it ('{text}') or write that"
    )


TRUTHS: Final[dict[str, bool]] = dict(yaml.constructor.SafeConstructor.bool_values)
MEANINGS: Final[dict[str, Callable[[str, int], Any]]] = {
    "str": lambda text, _: text,
    "int": _int,
    "float": _float,
    "bool": lambda text, _: TRUTHS[text.lower()],
    "null": lambda _text, _: None,
    "timestamp": lambda text, _: text,
}
ALLOWED: Final = "!!str, !!int, !!float, !!bool, !!null, !!map or !!seq"
