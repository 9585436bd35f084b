"""The schema of a JSON patch: add, replace and remove only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bloomery.api.declare import Schema
from bloomery.model.noun import Noun
from bloomery.model.rules import patches

_OPERATION: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "op": {"enum": ["add", "replace", "remove"]},
        "path": {"type": "string"},
        "value": {},
    },
    "required": ["op", "path"],
    "additionalProperties": False,
}


def of(names: Iterable[str], objects: Iterable[str] = ()) -> Schema:
    """Return the schema of a patch of these attributes, of which ``objects`` have members.

    ``patches`` checks paths and values in Ironic's words; the document has them in the schema.
    """
    whole = f"/({'|'.join(sorted(names))})"
    members = f"/({'|'.join(sorted(objects))}){patches.PATH.pattern}"
    path = f"^({whole}|{members})$" if objects else f"^{whole}$"
    operation = _OPERATION | {
        "properties": _OPERATION["properties"] | {"path": {"type": "string", "pattern": path}},
        "if": {"properties": {"op": {"enum": ["add", "replace"]}}},
        "then": {"required": ["value"]},
    }
    document = {"items": operation, "maxItems": patches.MOST_OPERATIONS}
    return Schema(thing="patch", source={"type": "array", "items": _OPERATION}, document=document)


def of_noun(noun: Noun) -> Schema:
    return of(noun.patchable, noun.objects & noun.patchable)
