"""Build a creation schema from a field table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bloomery.api.declare import Schema
from bloomery.model.fields import FieldTable, documented, schema_of

Json = dict[str, Any]


def creation(
    thing: str,
    fields: FieldTable,
    *,
    required: list[str],
    also: Mapping[str, Json],
    forms: Mapping[str, Mapping[str, Any]] | None = None,
    secret: frozenset[str] = frozenset(),
    rules: Mapping[str, Any] | None = None,
) -> Schema:
    """Return the schema of a POST body: the table's writable fields, and ``also``.

    ``forms``: what operations check of ``also``; ``rules``: of the body as a whole.
    """
    writable = [field for field in fields.values() if field.access in ("RW", "C")]
    others = {name: {**shape, **(forms or {}).get(name, {})} for name, shape in also.items()}
    return Schema(
        thing=thing,
        source={
            "type": "object",
            "properties": {field.name: schema_of(field) for field in writable} | dict(also),
            "required": required,
            "additionalProperties": False,
        },
        secret=secret,
        document={
            "properties": {f.name: documented(f) for f in writable} | others,
            **(rules or {}),
        },
    )
