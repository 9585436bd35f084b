"""One line per attribute of a noun: what it holds, who may write it, since which version.

From such a table come the creation schema, the list of patchable paths, the columns that a
list may be sorted by, and what a client of an older microversion gets to see.

    Field("name", "text", since=5, access="RW", limit=255)
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["uuid", "text", "bool", "int", "object", "list", "time"]
Access: TypeAlias = Literal["R", "RW", "C", "P"]  # read, create + patch, create, patch


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute.

    ``since`` is the minor microversion that first shows it, ``limit`` and ``least`` count the
    characters of a text, ``column`` is False where the value is worked out (conductor, links),
    ``secret`` objects are sealed in rows and masked in answers; ``strict`` booleans are no words;
    ``hidden_by`` names a flag of the record under which the value is shown as null.
    ``read_rule`` is the policy that a reader of the value needs beside that of the record.
    """

    name: str
    kind: Kind
    _: KW_ONLY
    since: int = 1
    access: Access = "R"
    limit: int | None = None
    least: int = 0
    column: bool = True
    sortable: bool = True
    secret: bool = False
    strict: bool = False
    nullable: bool = True
    hidden_by: str | None = None
    read_rule: str | None = None

    @property
    def can_sort(self) -> bool:
        """May a list be sorted by it?  Only by plain columns."""
        return self.sortable and self.column and self.kind not in ("object", "list")


FieldTable: TypeAlias = dict[str, Field]


def table(*fields: Field) -> FieldTable:
    """Return the fields by name, in the order of declaration."""
    return {field.name: field for field in fields}


def patchable(fields: FieldTable) -> frozenset[str]:
    """First path segments that PATCH takes."""
    return frozenset(f.name for f in fields.values() if f.access in ("RW", "P"))


def schema_of(field: Field) -> dict[str, Any]:
    """Return the JSON schema of one attribute in a request body."""
    none = ["null"] if field.nullable else []
    shapes: dict[str, dict[str, Any]] = {
        "uuid": {"type": ["string", *none]},
        "text": {"type": ["string", *none]},
        "bool": {"type": ["boolean", "string", *none]},
        "int": {"type": ["integer", *none]},
        "object": {"type": ["object", *none]},
        "list": {"type": ["array", *none]},
        "time": {"type": ["string", *none]},
    }
    shape = dict(shapes[field.kind])
    if field.strict:
        shape["type"] = ["boolean", *none]
    if field.limit is not None:
        shape["maxLength"] = field.limit
    if field.least:
        shape["minLength"] = field.least
    return shape
