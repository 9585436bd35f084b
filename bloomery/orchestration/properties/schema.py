"""How a kind of resource declares its properties and attributes.

properties_schema = {
    "length": Schema(Type.INTEGER, "Length of the text.", default=32,
                     constraints=[constraints.Range(1, 512)]),
    "salt": Schema(Type.STRING, "Changes the value when it changes."),
}
attributes_schema = {"value": Attribute("The random text.", Type.STRING)}
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol, TypeAlias

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


class OnChange(enum.StrEnum):
    """What a change of a property does to the real thing, in place unless it replaces."""

    LATER = "later"  # nothing now; the next action that needs the value reads it
    PATCH = "patch"  # fields of the real thing are written; it goes on as it is
    ATTACH = "attach"  # virtual interfaces are attached and detached
    POWER = "power"  # the machine is switched
    RUN = "run"  # verbs or steps may be ordered; what is on the disks is kept unless a plan says so
    REBUILD = "rebuild"  # the system is written anew; what is on the root disk is lost
    REPLACE = "replace"  # another resource takes its place
    MEMBERS = "members"  # the resources of the stack inside are updated


@dataclass(frozen=True, slots=True)
class Policy:
    """A change that another property decides: ``changes`` by the value of that property."""

    property: str
    changes: Mapping[str, OnChange]


class Drift(enum.StrEnum):
    """Whether a check compares a property with the real thing."""

    NONE = "none"  # the real thing does not tell it, or others may change it
    FIELD = "field"  # with the field of the same name
    LIVE = "live"  # as FIELD, and an update that converges brings it back
    OWN = "own"  # by a function of the kind


class Plans(enum.StrEnum):
    """What a plan reads from a property."""

    VERBS = "verbs"  # what is ordered of the machine
    MACHINE = "machine"  # what kind of machine it is
    NODE = "node"  # the node that the resource works at


@dataclass(frozen=True, slots=True)
class Schema:
    """One property.  ``schema``: of a map by key, of a list one element schema.

    ``on_change`` is missing where the kind's own ``on_change`` holds for all of its properties.
    """

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
    on_change: OnChange | Policy | None = field(default=None, kw_only=True)
    drift: Drift | None = field(default=None, kw_only=True)
    plans: Plans | None = field(default=None, kw_only=True)
    support: Support = field(default=SUPPORTED, kw_only=True)


def updatable(
    kind: Type, on_change: OnChange | Policy, drift: Drift, description: str, **more: Any
) -> Schema:
    """Declare a property that an update changes in place, its columns first."""
    columns: dict[str, Any] = {"update_allowed": True, "on_change": on_change, "drift": drift}
    return Schema(kind, description, **columns, **more)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute, asked of the real thing each time."""

    description: str = ""
    type: Type = Type.ANY
    support: Support = SUPPORTED


Properties: TypeAlias = Mapping[str, Schema]


def secret_names(properties: Properties) -> frozenset[str]:
    """Return the properties whose values are sealed at rest, and shown as stars."""
    return frozenset(name for name, schema in properties.items() if schema.secret)


def names_for(properties: Properties, plans: Plans) -> tuple[str, ...]:
    """Return the properties from which plans read this, in the order of their declaration."""
    return tuple(name for name, schema in properties.items() if schema.plans is plans)


def drift_names(properties: Properties, *drifts: Drift) -> tuple[str, ...]:
    """Return the properties that a check compares in one of these ways."""
    return tuple(name for name, schema in properties.items() if schema.drift in drifts)


def changes_of(
    properties: Properties, after: Mapping[str, Any], names: Collection[str]
) -> frozenset[OnChange]:
    """Return what a change of the properties ``names`` to those of ``after`` comes to."""
    changes = {_change_of(properties[name], after) for name in names if name in properties}
    return frozenset(change for change in changes if change is not None)


def _change_of(schema: Schema, after: Mapping[str, Any]) -> OnChange | None:
    if not schema.update_allowed:
        return OnChange.REPLACE
    if isinstance(schema.on_change, Policy):
        return schema.on_change.changes.get(str(after.get(schema.on_change.property)))
    return schema.on_change
