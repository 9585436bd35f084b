"""Operators of inspection rules: their arguments, and their form.

``bloomery.inspection`` implements the operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import jsonschema_rs

from bloomery import errors
from bloomery.model.rules import attributes

Json = dict[str, Any]
Arguments = Mapping[str, str]  # name -> kind of value, in the order of an argument list

PHASE: Final = "main"
MOST_PRIORITY: Final = 9999
PHASES: Final = {"enum": [PHASE]}  # JSON schemas, for the OpenAPI document
PRIORITY: Final = {"minimum": 0, "maximum": MOST_PRIORITY}
MOST_ITEMS: Final = 200  # conditions, and actions, of one rule
MULTIPLE: Final = ("any", "all", "first", "last")
LEVELS: Final = ("debug", "info", "warning", "error", "critical")

KINDS: Final[Mapping[str, Json]] = {
    "anything": {},
    "text": {"type": "string", "minLength": 1, "maxLength": 4096},
    "flag": {"type": "boolean"},
    "level": {"enum": list(LEVELS)},
    "object": {"type": ["object", "null"]},
    "pair": {"type": "array", "items": {}, "minItems": 2},
    "values": {"type": ["array", "string"], "items": {}},
    "count": {"type": "integer", "minimum": 0},
    "seconds": {"type": "number", "minimum": 0},
}
_COMPARED: Final[Arguments] = {"values": "pair", "force_strings": "flag"}
_VALUE: Final[Arguments] = {"value": "anything"}
_EXPRESSION: Final[Arguments] = {"value": "anything", "regex": "text"}
CONDITIONS: Final[Mapping[str, Arguments]] = {
    "eq": _COMPARED,
    "lt": _COMPARED,
    "gt": _COMPARED,
    "is-empty": _VALUE,
    "is-none": _VALUE,
    "is-true": _VALUE,
    "is-false": _VALUE,
    "in-net": {"address": "text", "subnet": "text"},
    "matches": _EXPRESSION,
    "contains": _EXPRESSION,
    "one-of": {"value": "anything", "values": "values"},
}
_PATH: Final = {"path": "text"}
_NAME: Final = {"name": "text"}
_SET: Final = {"path": "text", "value": "anything"}
_EXTEND: Final = _SET | {"unique": "flag"}
_PORT: Final = {"port_id": "text"}
ACTIONS: Final[Mapping[str, Arguments]] = {
    "fail": {"msg": "text"},
    "log": {"msg": "text", "level": "level"},
    "set-attribute": _SET,
    "extend-attribute": _EXTEND,
    "del-attribute": _PATH,
    "set-capability": _NAME | {"value": "anything"},
    "unset-capability": _NAME,
    "add-trait": _NAME,
    "remove-trait": _NAME,
    "set-plugin-data": _SET,
    "extend-plugin-data": _EXTEND,
    "unset-plugin-data": _PATH,
    "set-port-attribute": _PORT | _SET,
    "extend-port-attribute": _PORT | _EXTEND,
    "del-port-attribute": _PORT | _PATH,
    "api-call": {
        "url": "text",
        "headers": "object",
        "proxies": "object",
        "timeout": "seconds",
        "retries": "count",
        "backoff_factor": "seconds",
    },
}
OPTIONAL: Final = frozenset(
    {"force_strings", "level", "unique", "headers", "proxies", "timeout", "retries",
     "backoff_factor"}
)  # fmt: skip


def priority(number: Any) -> int:
    """Return the priority of a user's rule.  Raises InvalidParameterValue."""
    if not 0 <= number <= MOST_PRIORITY:
        raise errors.InvalidParameterValue(
            reason=f"cannot take priority {attributes.shortened(str(number))}: it is a number from "
            f"0 to {MOST_PRIORITY}",
        )
    return int(number)


def phase(text: str) -> str:
    if text != PHASE:
        raise errors.InvalidParameterValue(
            reason=f"cannot take phase {attributes.shortened(text)!r}: the only phase is {PHASE}",
        )
    return text


def conditions(items: list[Any]) -> list[Json]:
    """Return the conditions of a rule as they are stored.  Raises InvalidParameterValue."""
    checked = _checked("conditions", items, CONDITIONS, _CONDITION, inverted=True)
    return [
        # ``multiple`` without a loop is removed, as Ironic does
        {name: value for name, value in item.items() if name != "multiple" or item.get("loop")}
        for item in checked
    ]


def actions(items: list[Any]) -> list[Json]:
    """Return the actions of a rule, at least one, as they are stored."""
    if not items:
        raise errors.InvalidParameterValue(reason="actions: at least one action is needed")
    return _checked("actions", items, ACTIONS, _ACTION)


def _item(**more: Json) -> Json:
    return {
        "type": "object",
        "required": ["op", "args"],
        "properties": {
            "op": {"type": "string"},
            "args": {"type": ["object", "array"], "items": {}},
            "loop": {"type": ["array", "object", "string", "null"], "items": {}},
            **more,
        },
        "additionalProperties": False,
    }


_ACTION_SCHEMA: Final = _item()
_CONDITION_SCHEMA: Final = _item(multiple={"enum": list(MULTIPLE)})
_ACTION: Final = jsonschema_rs.validator_for(_ACTION_SCHEMA)
_CONDITION: Final = jsonschema_rs.validator_for(_CONDITION_SCHEMA)


def _described(schema: Json, table: Mapping[str, Arguments], *, inverted: bool = False) -> Json:
    """Return the schema of items, each with the arguments of its operator, for the document."""
    choices = []
    for op, kinds in table.items():
        args = {
            "type": "object",
            "properties": {name: KINDS[kind] for name, kind in kinds.items()},
            "required": [name for name in kinds if name not in OPTIONAL],
            "additionalProperties": False,
        }
        ops = [op, f"!{op}"] if inverted else [op]
        properties = schema["properties"] | {"op": {"enum": ops}, "args": args}
        choices.append(schema | {"properties": properties})
    return {"items": {"anyOf": choices}, "maxItems": MOST_ITEMS}


ACTIONS_SCHEMA: Final = _described(_ACTION_SCHEMA, ACTIONS) | {"minItems": 1}
CONDITIONS_SCHEMA: Final = _described(_CONDITION_SCHEMA, CONDITIONS, inverted=True)


def _checked(
    field: str,
    items: Sequence[Any],
    table: Mapping[str, Arguments],
    form: Any,
    *,
    inverted: bool = False,
) -> list[Json]:
    if len(items) > MOST_ITEMS:
        raise errors.InvalidParameterValue(
            reason=f"{field}: at most {MOST_ITEMS} of them, not {len(items)}",
        )
    for place, item in enumerate(items):
        where = f"{field}/{place}"
        _validate(form, item, where)
        op = item["op"].removeprefix("!").strip() if inverted else item["op"]
        if op not in table:
            raise errors.InvalidParameterValue(
                reason=f"{where}/op: {attributes.shortened(repr(item['op']))} is not one of "
                f"{', '.join(table)}",
            )
        kinds, values = table[op], named(table[op], item["args"])
        unknown = [str(name) for name in values if name not in kinds]
        missing = [name for name in kinds if name not in OPTIONAL and name not in values]
        faults = [f"has no argument {attributes.shortened(', '.join(unknown))}"] if unknown else []
        faults += [f"needs {', '.join(missing)}"] if missing else []
        if faults:
            raise errors.InvalidParameterValue(
                reason=f"{where}/args: {op} {' and '.join(faults)}; it takes {', '.join(kinds)}",
            )
        for name, value in values.items():
            _validate(_VALIDATORS[kinds[name]], value, f"{where}/args/{name}")
    return list(items)


def named(table: Arguments, args: Json | list[Any]) -> Json:
    """Return arguments by name; surplus list items are numbered.

    As in Ironic, a list of values to compare may replace the arguments.
    """
    if isinstance(args, dict):
        return args
    if table is _COMPARED and not (args and isinstance(args[0], list)):
        return {"values": args}
    names = [*table, *(f"number {n + 1}" for n in range(len(table), len(args)))]
    return dict(zip(names, args, strict=False))


_VALIDATORS: Final = {kind: jsonschema_rs.validator_for(schema) for kind, schema in KINDS.items()}


def _validate(validator: Any, value: Any, where: str) -> None:
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as exc:
        path = "/".join([where, *(str(part) for part in exc.instance_path)])
        message = attributes.shortened(attributes.explained(exc))
        raise errors.InvalidParameterValue(reason=f"{path}: {message}") from None
