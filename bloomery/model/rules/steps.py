"""Validate lists of steps in requests."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import jsonschema_rs

from bloomery import errors
from bloomery.model.node import STEP_INTERFACES
from bloomery.model.rules import attributes

Json = dict[str, Any]

MOST_STEPS: Final = 1000  # each is a row of the transaction that starts the flow
_NAME: Final[Json] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": "^[A-Za-z0-9_.-]+$",
}
_NUMBER: Final[Json] = {
    "type": ["integer", "string"],
    "minimum": 0,
    "maximum": 999_999_999,
    "pattern": "^[0-9]{1,9}$",
}


def _schema(required: list[str], **more: Json) -> Json:
    """Return the schema of a list of steps, also for the OpenAPI document."""
    step = {
        "type": "object",
        "required": required,
        "properties": {
            "interface": {"enum": list(STEP_INTERFACES)},
            "step": _NAME,
            "args": {"type": "object"},
            **more,
        },
        "additionalProperties": False,
    }
    return {"type": "array", "items": step, "maxItems": MOST_STEPS}


USER_SCHEMA: Final = _schema(
    ["interface", "step"],
    order=_NUMBER,
    execute_on_child_nodes={"type": "boolean"},
    limit_child_node_execution={"type": "array", "items": {"type": "string"}},
)
RUNBOOK_SCHEMA: Final = _schema(["interface", "step", "order"], order=_NUMBER)
DEPLOY_SCHEMA: Final = _schema(["interface", "step", "args", "priority"], priority=_NUMBER)
USER, RUNBOOK, DEPLOY = map(
    jsonschema_rs.validator_for, (USER_SCHEMA, RUNBOOK_SCHEMA, DEPLOY_SCHEMA)
)


def some(schema: Json) -> Json:
    """Return the schema of a list that is not empty, for the OpenAPI document."""
    return schema | {"minItems": 1}


def checked(name: str, validator: Any, steps: list[Json]) -> list[Json]:
    """Return ``steps``, the value of the argument ``name``.  Raises Invalid."""
    if len(steps) > MOST_STEPS:
        raise errors.Invalid(
            reason=f"Schema error for {name}: at most {MOST_STEPS} steps, not {len(steps)}",
        )
    try:
        validator.validate(steps)
    except jsonschema_rs.ValidationError as exc:
        where = "/".join(str(part) for part in exc.instance_path)
        message = attributes.shortened(attributes.explained(exc))
        raise errors.Invalid(reason=f"Schema error for {name}: {where}: {message}") from None
    for place, step in enumerate(steps):
        if step.get("limit_child_node_execution") and not step.get("execute_on_child_nodes"):
            raise errors.Invalid(
                reason=f"{name}/{place}: limit_child_node_execution needs execute_on_child_nodes: "
                "true; without it the step runs on the node itself",
            )
    return steps


def stored(validator: Any, steps: list[Json], number: str) -> list[Json]:
    """Return the steps of a template or a runbook as they are stored.

    There is at least one, and no duplicates; ``number`` (priority or order) becomes a number, also
    from text.
    """
    if not steps:
        raise errors.InvalidParameterValue(reason="steps: at least one step is needed")
    checked("steps", validator, steps)
    refuse_repeated(steps)
    return [step | {number: int(step[number])} for step in steps]


def refuse_repeated(steps: list[Json]) -> None:
    """Raise InvalidParameterValue for a duplicate step."""
    counts = Counter(f"{step['interface']}.{step['step']}" for step in steps)
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise errors.InvalidParameterValue(
            reason=f"steps: {', '.join(repeated)} must come once only",
        )
