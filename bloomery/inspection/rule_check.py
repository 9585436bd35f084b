"""Checks of a rule before it is stored: invalid paths, regular expressions and arguments.

    rule_check.check(conditions, actions)  # raises InvalidParameterValue: "actions/0: ..."

A text with a brace is a format, whose result only an inspection knows.  All other arguments are
tried on an empty node.  Comparisons of constants and driver names are not checked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.inspection import actions, calls, conditions, formats
from bloomery.inspection.draft import Draft
from bloomery.model.inspection_rule import InspectionRule
from bloomery.model.node import Node
from bloomery.model.port import Port
from bloomery.model.rules import inspection

Json = dict[str, Any]

_NODE: Final = Node(uuid="node", driver="fake-hardware")
_PORT: Final = Port(uuid="port", address="52:54:00:00:00:00", node_uuid="node")
# Substitutes for arguments that are formats, where any text is valid.
_ANY_TEXT: Final[Mapping[str, Json]] = {
    "in-net": {"address": ""},
    "matches": {"value": ""},
    "contains": {"value": ""},
    "one-of": {"value": ""},
    "set-capability": {"name": "x", "value": "x"},
    "set-plugin-data": {"value": ""},
    "extend-plugin-data": {"value": ""},
}
_LOOPED_OVER: Final = ("node", "inventory", "plugin_data")


def find_fault(rule: InspectionRule) -> str | None:
    """Return why this release would refuse a stored rule, or None."""
    try:
        check(inspection.conditions(rule.conditions), inspection.actions(rule.actions))
    except errors.Invalid as exc:
        return str(exc)
    return None


def check(checked_conditions: Sequence[Json], checked_actions: Sequence[Json]) -> None:
    """Check lists accepted by ``model.rules.inspection``.  Raises InvalidParameterValue."""
    for place, condition in enumerate(checked_conditions):
        with _naming(f"conditions/{place}"):
            _check_loop(condition)
            _check_condition(condition)
    for place, action in enumerate(checked_actions):
        with _naming(f"actions/{place}"):
            _check_loop(action)
            _check_action(action)


@contextlib.contextmanager
def _naming(where: str) -> Iterator[None]:
    try:
        yield
    except errors.Invalid as exc:
        raise errors.InvalidParameterValue(reason=f"{where}: {exc}") from exc


def _check_loop(item: Json) -> None:
    loop = item.get("loop")
    if not isinstance(loop, str):
        return
    if formats.name_in(loop) not in _LOOPED_OVER:
        raise errors.Invalid(
            reason='loop takes a list, an object, or a text such as "{inventory[disks]}" that '
            f"names something of {', '.join(_LOOPED_OVER)}",
        )


def _check_condition(condition: Json) -> None:
    op = condition["op"].removeprefix("!").strip()
    arguments = inspection.named(inspection.CONDITIONS[op], condition["args"])
    if isinstance(arguments.get("values"), str):
        raise errors.Invalid(reason="values takes a list: a format makes text of whatever it names")
    literals = _literals(op, arguments)
    if op in _ANY_TEXT and literals.keys() >= arguments.keys():
        conditions.OPERATORS[op](**literals)


def _check_action(action: Json) -> None:
    op = action["op"]
    arguments = inspection.named(inspection.ACTIONS[op], action["args"])
    literals = _literals(op, arguments)
    if op == "api-call":
        calls.check(**literals)
    elif op not in ("fail", "log"):
        _try(op, literals, is_whole=literals.keys() >= arguments.keys())


def _try(op: str, arguments: Json, *, is_whole: bool) -> None:
    """Run the operator on an empty node; check only the path where an argument is unknown."""
    if is_whole:
        actions.OPERATORS[op](Draft.of(_NODE, [_PORT], {}, {}), **arguments)
    elif "path" in arguments:
        actions.check_path(op, arguments["path"])


def _literals(op: str, arguments: Json) -> Json:
    literal = {name: value for name, value in arguments.items() if _is_literal(value)}
    literals = _ANY_TEXT.get(op, {}) | literal
    return literals | {"port_id": _PORT.uuid} if "port_id" in arguments else literals


def _is_literal(value: Any) -> bool:
    if isinstance(value, str):
        return "{" not in value and "}" not in value
    if isinstance(value, dict):
        return all(map(_is_literal, value.values()))
    return not isinstance(value, list) or all(map(_is_literal, value))
