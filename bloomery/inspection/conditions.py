"""The operators of conditions."""

from __future__ import annotations

import functools
import ipaddress
import itertools
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from bloomery import errors, parsing, patterns
from bloomery.inspection import formats
from bloomery.inspection.formats import Scope
from bloomery.model.rules import inspection

Json = dict[str, Any]
LIMITS: Final = patterns.PlainLimits(
    pattern_chars=1_000, pattern_text_chars=formats.MOST_CHARS, pattern_s=0.5
)
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_EMPTY: Final = ("", "None", "[]", "{}")


def holds(condition: Json, scope: Scope) -> bool:
    """Return whether a condition holds, with its loop and inversion.  Raises Invalid."""
    items = loop_of(condition, scope)
    if items is None:
        return _check(condition, scope)
    multiple = condition.get("multiple", "any")
    if multiple in ("first", "last"):
        items = items[:1] if multiple == "first" else items[-1:]
    results = (_check(condition, scope.with_item(item)) for item in items)
    return all(results) if multiple == "all" else any(results)


def loop_of(item: Json, scope: Scope) -> list[Any] | None:
    """Return the items of a condition's or action's loop, or None where there is no loop.

    Of an object, its keys.  A text names a list or an object: "{inventory[disks]}".
    """
    loop = item.get("loop")
    if loop is None:
        return None
    if isinstance(loop, str):
        try:
            loop = formats.data(loop, scope)
        except formats.Unresolved:
            return []
        if not isinstance(loop, list | dict):
            raise errors.Invalid(
                reason=f"loop takes a list or an object, not {type(loop).__name__}",
            )
    return list(loop)


def arguments_of(item: Json, table: inspection.Arguments, scope: Scope) -> Json:
    """Return the arguments of a condition or an action by name, with formatted texts."""
    arguments = inspection.named(table, item["args"])
    return {name: formats.value(each, scope) for name, each in arguments.items()}


def _check(condition: Json, scope: Scope) -> bool:
    op = condition["op"]
    name = op.removeprefix("!").strip()
    table = inspection.CONDITIONS[name]
    with scope.budget.timed():
        if name == "is-empty":
            scope.budget.take()
            template = inspection.named(table, condition["args"])["value"]
            try:
                text = formats.resolved(template, scope) if isinstance(template, str) else template
                result = str(text) in _EMPTY
            except formats.Unresolved:
                result = True
        else:
            result = OPERATORS[name](**arguments_of(condition, table, scope))
    return result is not op.startswith("!")


def _pairwise(
    test: Callable[[Any, Any], bool], forced: Callable[[Any, Any], bool]
) -> Callable[..., bool]:
    """Return an operator that holds if each value and the next one pass ``test``.

    ``forced``: the test with force_strings.
    """

    def compare(values: list[Any], force_strings: bool = False) -> bool:
        if force_strings:
            texts = [str(each) for each in values]
            return all(forced(left, other) for left, other in itertools.pairwise(texts))
        return all(test(left, other) for left, other in itertools.pairwise(values))

    return compare


def _equal(left: Any, other: Any) -> bool:
    """Compare two values; a text, as formats yield, equals a number or flag of the same form."""
    if isinstance(left, str) is isinstance(other, str):
        return bool(left == other)
    text, scalar = (left, other) if isinstance(left, str) else (other, left)
    if isinstance(scalar, int | float) and not isinstance(scalar, bool):
        return _number(text) == scalar
    return text == str(scalar)


def _less(left: Any, other: Any) -> bool:
    """Order two values; texts that both read as numbers compare as numbers."""
    low, high = _number(left), _number(other)
    try:
        return bool(left < other) if low is None or high is None else low < high
    except TypeError:
        kinds = " and ".join(type(each).__name__ for each in (left, other))
        raise errors.Invalid(reason=f"cannot order {kinds}") from None


def _number(value: Any) -> float | int | None:
    if isinstance(value, str):
        if len(value) > 32 or _NUMBER.fullmatch(value) is None:
            return None
        return float(value) if set(value) & set(".eE") else int(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _truth(value: Any) -> bool | None:
    """Return the truth value of a text, or None; other values follow Python's rules."""
    if not isinstance(value, str):
        return bool(value)
    try:
        return parsing.boolean(value, strict=True)
    except ValueError:
        return False if value == "None" else None


def _in_net(address: str, subnet: str) -> bool:
    try:
        network = ipaddress.ip_network(subnet, strict=False)
    except ValueError as exc:
        raise errors.Invalid(reason=f"subnet: {exc}") from None
    try:
        return ipaddress.ip_address(address) in network
    except ValueError:
        return False


def _search(method: str, value: Any, regex: str) -> bool:
    """Return whether the pattern's ``method``, search or fullmatch, has a match in the text."""
    text = str(value)
    try:
        match = patterns.bounded(
            regex, text, LIMITS, lambda pattern, s: getattr(pattern, method)(text, timeout=s)
        )
    except errors.StackValidationFailed as exc:  # the error class of ``patterns``
        raise errors.Invalid(reason=str(exc.facts["reason"])) from None
    return match is not None


def _one_of(value: Any, values: list[Any] | str) -> bool:
    if isinstance(values, str):
        raise errors.Invalid(reason="values takes a list")
    return any(_equal(value, each) for each in values)


OPERATORS: Final[Mapping[str, Callable[..., bool]]] = {
    "eq": _pairwise(_equal, operator.eq),
    "lt": _pairwise(_less, operator.lt),
    "gt": _pairwise(lambda left, other: _less(other, left), operator.gt),
    "is-none": lambda value: str(value) == "None",
    "is-true": lambda value: _truth(value) is True,
    "is-false": lambda value: _truth(value) is False,
    "in-net": _in_net,
    "matches": functools.partial(_search, "fullmatch"),
    "contains": functools.partial(_search, "search"),
    "one-of": _one_of,
}
