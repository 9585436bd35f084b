"""Build a creation schema from a field table."""

from __future__ import annotations

from typing import Any

from bloomery.model.fields import FieldTable, schema_of


def creation(
    fields: FieldTable,
    *,
    required: list[str],
    also: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the schema of a POST body: the table's writable fields, and ``also``."""
    properties = {
        field.name: schema_of(field) for field in fields.values() if field.access in ("RW", "C")
    }
    return {
        "type": "object",
        "properties": properties | (also or {}),
        "required": required,
        "additionalProperties": False,
    }
