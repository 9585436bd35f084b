"""Checks of a rule before it is stored: invalid paths, regular expressions and arguments.

    rule_check.check(conditions, actions)  # raises InvalidParameterValue: "actions/0: ..."

A text with a brace is a format, whose result only an inspection knows.  All other arguments are
tried on an empty node.  Comparisons of constants and driver names are not checked.

Built-in rules come from the operator's YAML file, a list of rules in the API's form:

    - uuid: 5f1a...             # any text; by default the position in the file
      description: Racks by serial number
      priority: 10000           # may be outside the range of API rules
      conditions: [...]
      actions: [...]
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bloomery import errors
from bloomery.inspection import actions, calls, conditions, formats
from bloomery.inspection.draft import Draft
from bloomery.model.inspection_rule import InspectionRule
from bloomery.model.node import Node
from bloomery.model.port import Port
from bloomery.model.rules import attributes, inspection

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
_BUILT_IN_KEYS: Final = frozenset(
    {"uuid", "description", "priority", "phase", "sensitive", "conditions", "actions", "scope"}
)
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
            op = condition["op"].removeprefix("!").strip()
            arguments = inspection.named(inspection.CONDITIONS[op], condition["args"])
            if isinstance(arguments.get("values"), str):
                raise errors.Invalid(
                    reason="values takes a list: a format makes text of whatever it names"
                )
            literals = _literals(op, arguments)
            if op in _ANY_TEXT and literals.keys() >= arguments.keys():
                conditions.OPERATORS[op](**literals)
    for place, action in enumerate(checked_actions):
        with _naming(f"actions/{place}"):
            _check_loop(action)
            op = action["op"]
            arguments = inspection.named(inspection.ACTIONS[op], action["args"])
            literals = _literals(op, arguments)
            if op == "api-call":
                calls.check(**literals)
            elif op in ("fail", "log"):
                continue
            elif literals.keys() >= arguments.keys():
                actions.OPERATORS[op](Draft.of(_NODE, [_PORT], {}, {}), **literals)
            elif "path" in literals:  # another argument is unknown
                actions.check_path(op, literals["path"])


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


# ------------------------------------------------------------------------------ built-in rules


@functools.lru_cache(maxsize=4)
def load_built_in(path: str) -> tuple[InspectionRule, ...]:
    """Return the rules of a file, which is read once.  Raises CannotStart."""
    import yaml  # rarely needed

    try:
        document = yaml.safe_load(Path(path).read_bytes())
        attributes.refuse_sealed(document, "a rule")
        rules = _list({"the file": document}, "the file")
        return tuple(_built_in(place, entry) for place, entry in enumerate(rules))
    except (OSError, yaml.YAMLError, errors.Invalid) as exc:
        text = " ".join(str(exc).split())
        raise errors.CannotStart(
            reason=f"cannot use [inspection_rules]built_in_rules = {path}: {text}",
        ) from exc


def _built_in(place: int, entry: Any) -> InspectionRule:
    where = f"rule {place}"
    if not isinstance(entry, dict) or not entry.keys() <= _BUILT_IN_KEYS:
        raise errors.Invalid(reason=f"{where} takes {', '.join(sorted(_BUILT_IN_KEYS))}")
    priority = entry.get("priority", 0)
    if type(priority) is not int:
        raise errors.Invalid(reason=f"{where}/priority takes a whole number")
    try:
        rule = InspectionRule(
            uuid=str(entry.get("uuid", f"built-in {place}")),
            description=str(entry["description"]) if entry.get("description") else None,
            priority=priority,
            phase=inspection.phase(entry.get("phase") or inspection.PHASE),
            sensitive=bool(entry.get("sensitive", False)),
            conditions=inspection.conditions(_list(entry, "conditions")),
            actions=inspection.actions(_list(entry, "actions")),
        )
        check(rule.conditions, rule.actions)
    except errors.Invalid as exc:
        raise errors.Invalid(reason=f"{where}/{exc}") from exc
    return rule


def _list(entry: Json, name: str) -> list[Any]:
    value = entry.get(name) or []
    if not isinstance(value, list):
        raise errors.Invalid(reason=f"{name} takes a list")
    return value
