"""One line per attribute of a noun: its type, access and microversion.

The table gives the creation schema, the patchable paths, the sortable columns, and the view of
clients of older microversions.

    Field("name", "text", since=5, access="RW", limit=255)

The JSON schemas of texts are for the OpenAPI document; ``rules`` check them in Ironic's words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, Literal, TypeAlias

Kind: TypeAlias = Literal["uuid", "text", "bool", "int", "object", "list", "time"]
Access: TypeAlias = Literal["R", "RW", "C", "P"]  # read, create + patch, create, patch

RESERVED_NODE_NAMES: Final = frozenset(
    {"maintenance", "management", "states", "vendor_passthru", "detail", "validate"},
)
UUID: Final[dict[str, Any]] = {"format": "uuid"}
NAME: Final[dict[str, Any]] = {"minLength": 1, "maxLength": 255, "pattern": "^[A-Za-z0-9._~-]+$"}
NODE_NAME: Final[dict[str, Any]] = NAME | {
    "pattern": f"^(?!({'|'.join(sorted(RESERVED_NODE_NAMES))})$)[A-Za-z0-9._~-]+$"
}
NAME_OR_EMPTY: Final[dict[str, Any]] = {"maxLength": 255, "pattern": "^[A-Za-z0-9._~-]*$"}
MAC: Final[dict[str, Any]] = {
    "pattern": "^(?!(00:){5}00$|([Ff]{2}:){5}[Ff]{2}$)[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$"
}
# Texts that oslo reads as booleans, as a pattern for the OpenAPI document.
BOOLEAN_TEXT: Final = (
    "^(1|[Tt]([Rr][Uu][Ee])?|[Oo][Nn]|[Yy]([Ee][Ss])?|0|[Ff]([Aa][Ll][Ss][Ee])?|[Oo][Ff]{2}|"
    "[Nn][Oo]?)$"
)
BOOLEAN: Final[dict[str, Any]] = {"type": ["boolean", "string"], "pattern": BOOLEAN_TEXT}


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute.

    ``since`` is the first minor microversion, ``limit`` and ``least`` count the characters of a
    text, ``column`` is False for derived values (conductor, links), ``secret`` objects are sealed
    in rows and masked in answers; ``strict`` booleans refuse texts; ``hidden_by`` names a flag of
    the record that hides the value.  ``read_rule`` is a policy rule for the value beside the
    record's.  ``form`` is the JSON schema of what the noun's rules check beyond the type, for the
    OpenAPI document.
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
    form: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def can_sort(self) -> bool:
        """Whether lists can be sorted by it: only by plain columns."""
        return self.sortable and self.column and self.kind not in ("object", "list")


FieldTable: TypeAlias = dict[str, Field]


@dataclass(frozen=True, slots=True, eq=False)
class JsonMembers:
    """A column of queries: fields that the database prints as members of a JSON object.

    Its identity is the key of cached statements, since the hash of many fields is slow.
    """

    fields: tuple[Field, ...]


Column: TypeAlias = str | JsonMembers


def table(*fields: Field) -> FieldTable:
    """Return the fields by name, in the order of declaration."""
    return {field.name: field for field in fields}


def patchable(fields: FieldTable) -> frozenset[str]:
    """Return the first path segments that PATCH accepts."""
    return frozenset(f.name for f in fields.values() if f.access in ("RW", "P"))


def selectable(
    fields: FieldTable, *, also: Iterable[str] = (), never: Iterable[str] = ()
) -> list[str]:
    """Return the names that clients may ask for by ``fields``, sorted."""
    return sorted({*fields, *also} - set(never))


def sort_keys(fields: FieldTable, never: Collection[str] = ()) -> list[str]:
    """Return the names that lists can be sorted by; the first is ``id``."""
    return ["id", *sorted(f.name for f in fields.values() if f.can_sort and f.name not in never)]


def documented(field: Field) -> dict[str, Any]:
    """Return the schema of one attribute in the OpenAPI document, with what the rules check."""
    texts = {"pattern": BOOLEAN_TEXT} if field.kind == "bool" and not field.strict else {}
    form = UUID if field.kind == "uuid" else texts
    return schema_of(field) | form | dict(field.form)


def schema_of(field: Field) -> dict[str, Any]:
    """Return the JSON schema of one attribute in a request body."""
    none = ["null"] if field.nullable else []
    shapes: dict[str, dict[str, Any]] = {
        "uuid": {"type": ["string", *none]},
        "text": {"type": ["string", *none]},
        "bool": {"type": ["boolean", "string", *none]},
        "int": {"type": ["integer", *none]},
        "object": {"type": ["object", *none]},
        "list": {"type": ["array", *none], "items": {}},
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
