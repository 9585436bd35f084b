"""The schema of a JSON patch: add, replace and remove only."""

from __future__ import annotations

from typing import Final

from bloomery.api.declare import Schema

PATCH: Final = Schema(
    thing="patch",
    source={
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "op": {"enum": ["add", "replace", "remove"]},
                "path": {"type": "string"},
                "value": {},
            },
            "required": ["op", "path"],
            "additionalProperties": False,
        },
    },
)
