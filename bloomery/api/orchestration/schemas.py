"""Schemas of bodies, for the OpenAPI document.

Heat's readers (``stack_arguments`` and the operations) check bodies, in Heat's words; a test holds
what they take against these schemas.
"""

from __future__ import annotations

from typing import Any, Final

from bloomery.api.declare import Schema
from bloomery.api.orchestration import stack_arguments
from bloomery.api.orchestration.stacks import ACTIONS
from bloomery.orchestration.resources.software_config import TYPES

Json = dict[str, Any]

_TEXT: Final[Json] = {"type": "string"}
_TEXT_OR_NULL: Final[Json] = {"type": ["string", "null"]}
_OBJECT: Final[Json] = {"type": "object"}
_OBJECT_OR_NULL: Final[Json] = {"type": ["object", "null"]}
_TEXT_OR_OBJECT: Final[Json] = {"type": ["object", "string", "null"]}
_NAMES: Final[Json] = {"type": ["array", "null"], "items": _TEXT}
_FLAG: Final[Json] = {"anyOf": [{"type": "boolean"}, _TEXT | {"enum": ["true", "false"]}]}
_FLAG_OR_NULL: Final[Json] = {"anyOf": [_FLAG, {"type": "null"}]}


def _object(properties: Json, *required: str, **more: Any) -> Json:
    return {"type": "object", "properties": properties, "required": list(required), **more}


def _text(most: int) -> Json:
    return _TEXT_OR_NULL | {"maxLength": most}


def _described(more: Json) -> Json:
    """Return the schema of the inputs or outputs of a software config."""
    item = _object(
        {"name": _TEXT, "description": _TEXT_OR_NULL, "type": {"enum": [*TYPES, None]}, **more},
        "name", additionalProperties=False,
    )  # fmt: skip
    return {"type": ["array", "null"], "items": item}


_TEMPLATE: Final[Json] = {
    "template": _TEXT_OR_OBJECT,
    "template_url": _TEXT_OR_NULL | {"pattern": "^https?://[!-~]+$"},
    "environment": _TEXT_OR_OBJECT,
    "environment_files": _NAMES,
    "files": {"type": ["object", "null"]},
    "parameters": _OBJECT_OR_NULL,
}
_CHANGE: Final[Json] = _TEMPLATE | {
    "disable_rollback": _FLAG,
    "timeout_mins": {
        "type": ["integer", "null"], "minimum": 0, "maximum": stack_arguments.MOST_MINUTES,
    },
    "tags": _TEXT_OR_NULL,
    "converge": _FLAG,
    "existing": _FLAG,
    "clear_parameters": _NAMES,
    stack_arguments.PLAN_BASIS: {"type": ["object", "null"], "additionalProperties": _OBJECT},
    stack_arguments.OVERRIDE: _FLAG,
    stack_arguments.RESOURCE_ORDERS: {
        "type": ["object", "null"],
        "additionalProperties": _object(
            {
                "action": {"enum": ["replace", "rebuild"]}, "reason": _TEXT_OR_NULL,
                "quarantine": {"type": "boolean"},
            },
            "action",
        ),
    },
    stack_arguments.REVISION: {"type": ["integer", "null"], "minimum": 1},
}  # fmt: skip
_NEW: Final[Json] = {
    name: shape
    for name, shape in _CHANGE.items()
    if name not in ("converge", "existing", *stack_arguments.OF_UPDATES)
} | {
    "stack_name": _TEXT | {"pattern": r"^[a-zA-Z][a-zA-Z0-9_.-]{0,254}$"},
    "adopt_stack_data": _TEXT_OR_OBJECT,
}
_DEPLOYMENT: Final[Json] = {
    "config_id": _TEXT | {"minLength": 1, "maxLength": 36},
    "input_values": _OBJECT_OR_NULL,
    "output_values": _OBJECT_OR_NULL,
    "action": _text(16),
    "status": _text(16),
    "status_reason": _text(65_535),
}

CREATE: Final = Schema(thing="stack", source=_object(_NEW, "stack_name"))
UPDATE: Final = Schema(thing="stack", source=_object(_CHANGE, minProperties=1))
PATCH: Final = Schema(thing="stack", source=_object(_CHANGE))
TEMPLATE: Final = Schema(thing="template", source=_object(_TEMPLATE, minProperties=1))
ACTION: Final = Schema(
    thing="action",
    source=_object(
        {name: {} for name in ACTIONS}, minProperties=1, maxProperties=1, additionalProperties=False
    ),
)
HEALTH: Final = Schema(
    thing="resource",
    source=_object(
        {"mark_unhealthy": _FLAG, "resource_status_reason": _TEXT_OR_NULL},
        "mark_unhealthy", additionalProperties=False,
    ),
)  # fmt: skip
SIGNAL: Final = Schema(thing="signal", source=_object({}))
SNAPSHOT: Final = Schema(thing="snapshot", source=_object({"name": _text(255)}))
CONFIG: Final = Schema(
    thing="software config",
    source=_object(
        {
            "name": _text(255),
            "group": _text(255),
            "config": {},
            "options": _OBJECT_OR_NULL,
            "inputs": _described({"default": {}, "replace_on_change": _FLAG_OR_NULL, "value": {}}),
            "outputs": _described({"error_output": _FLAG_OR_NULL}),
        }
    ),
)
DEPLOYMENT: Final = Schema(
    thing="software deployment",
    source=_object(
        _DEPLOYMENT | {"server_id": _text(255), "stack_user_project_id": _text(64)}, "config_id"
    ),
)
DEPLOYMENT_UPDATE: Final = Schema(thing="software deployment", source=_object(_DEPLOYMENT))
OPTIONAL: Final = (SIGNAL, SNAPSHOT, CONFIG)  # without a body they count as empty
