"""How a kind of resource declares its properties and attributes.

properties_schema = {
    "length": Schema(Type.INTEGER, "Length of the text.", default=32,
                     constraints=[constraints.Range(1, 512)]),
    "salt": Schema(Type.STRING, "Changes the value when it changes."),
}
attributes_schema = {"value": Attribute("The random text.", Type.STRING, cached=False)}
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol

from bloomery.orchestration.properties.custom import CONSTRAINT_CONTEXT, ConstraintContext


class Type(enum.StrEnum):
    """The type of a property; the value is what Heat's templates call it."""

    STRING = "String"
    INTEGER = "Integer"
    NUMBER = "Number"
    BOOLEAN = "Boolean"
    MAP = "Map"
    LIST = "List"
    ANY = "Any"


class Constraint(Protocol):
    """One rule of a property or a parameter; see constraints.py.

    ``fits``: the types that it makes sense for; ``word``: its key in templates.
    """

    word: ClassVar[str]
    fits: ClassVar[frozenset[Type]]

    @property
    def description(self) -> str | None: ...

    def refusal(self, value: Any, context: ConstraintContext = CONSTRAINT_CONTEXT) -> str | None:
        """Why ``value`` breaks the constraint, as one sentence for users; None if it does not."""

    def shown(self) -> dict[str, Any]:
        """The constraint as resource types show it, such as ``{"range": {"min": 1}}``."""


class Status(enum.StrEnum):
    UNKNOWN = "UNKNOWN"
    SUPPORTED = "SUPPORTED"
    DEPRECATED = "DEPRECATED"
    UNSUPPORTED = "UNSUPPORTED"
    HIDDEN = "HIDDEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    status: Status = Status.SUPPORTED
    message: str | None = None
    version: str | None = None
    previous: Support | None = None


SUPPORTED: Final = Support()


@dataclass(frozen=True, slots=True)
class Schema:
    """One property.  ``schema``: of a map by key, of a list one element schema."""

    type: Type
    description: str = ""
    default: Any = field(default=None, kw_only=True)
    required: bool = field(default=False, kw_only=True)
    update_allowed: bool = field(default=False, kw_only=True)
    immutable: bool = field(default=False, kw_only=True)  # a change fails instead of replacing
    constraints: Sequence[Constraint] = field(default=(), kw_only=True)
    schema: Mapping[str, Schema] | Schema | None = field(default=None, kw_only=True)
    implemented: bool = field(default=True, kw_only=True)
    takes_text: bool = field(default=False, kw_only=True)  # a map as JSON, a list with commas
    secret: bool = field(default=False, kw_only=True)  # sealed at rest, shown as stars
    support: Support = field(default=SUPPORTED, kw_only=True)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute.  ``cached`` False: asked of the real thing each time."""

    description: str = ""
    type: Type = Type.ANY
    cached: bool = True
    support: Support = SUPPORTED


def secret_names(properties: Mapping[str, Schema]) -> frozenset[str]:
    """Return the properties whose values are sealed at rest, and shown as stars."""
    return frozenset(name for name, schema in properties.items() if schema.secret)
