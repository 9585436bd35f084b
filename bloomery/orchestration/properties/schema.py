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

    ``fits``: the types that may have it; ``key``: its key in templates.
    """

    key: ClassVar[str]
    fits: ClassVar[frozenset[Type]]

    @property
    def description(self) -> str | None: ...

    def refusal(self, value: Any, context: ConstraintContext = CONSTRAINT_CONTEXT) -> str | None:
        """Return why ``value`` breaks the constraint, in a sentence for users, or None."""

    def document(self) -> dict[str, Any]:
        """Return the constraint as resource types show it, such as ``{"range": {"min": 1}}``."""


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
    """The effect of a property change on the physical resource, in place unless it replaces."""

    LATER = "later"  # none now; the next action that needs the value reads it
    PATCH = "patch"  # fields of the physical resource are written; it keeps running
    ATTACH = "attach"  # virtual interfaces are attached and detached
    POWER = "power"  # the machine is switched on or off
    RUN = "run"  # verbs or steps may run; the disks are kept unless a plan says otherwise
    REBUILD = "rebuild"  # the system is installed again; the root disk is overwritten
    REPLACE = "replace"  # another resource takes its place
    MEMBERS = "members"  # the resources of the child stack are updated


@dataclass(frozen=True, slots=True)
class Policy:
    """An effect that depends on another property: ``changes`` has it by that property's value."""

    property: str
    changes: Mapping[str, OnChange]


class Drift(enum.StrEnum):
    """Whether a check compares a property with the physical resource."""

    NONE = "none"  # the physical resource does not show it, or others may change it
    FIELD = "field"  # with the field of the same name
    LIVE = "live"  # as FIELD, and an update with ``converge`` restores it
    OWN = "own"  # by a function of the kind


class Plans(enum.StrEnum):
    """The facts that a plan reads from a property."""

    VERBS = "verbs"  # the verbs for the machine
    MACHINE = "machine"  # what kind of machine it is, and what is written to it
    NODE = "node"  # the node that the resource works at


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a property.  ``schema``: schemas by key of a map, or of the elements of a list.

    ``on_change`` None means the kind's ``on_change``, which then holds for all its properties.
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
    """Return the schema of a property that an update changes in place."""
    columns: dict[str, Any] = {"update_allowed": True, "on_change": on_change, "drift": drift}
    return Schema(kind, description, **columns, **more)


@dataclass(frozen=True, slots=True)
class Attribute:
    """The schema of an attribute, read from the physical resource each time."""

    description: str = ""
    type: Type = Type.ANY
    support: Support = SUPPORTED


Schemas: TypeAlias = Mapping[str, Schema]


def secret_names(properties: Schemas) -> frozenset[str]:
    """Return the properties whose values are sealed at rest, and shown as stars."""
    return frozenset(name for name, schema in properties.items() if schema.secret)


def names_for(properties: Schemas, plans: Plans) -> tuple[str, ...]:
    """Return the properties from which plans read ``plans``, in the order of declaration."""
    return tuple(name for name, schema in properties.items() if schema.plans is plans)


def drift_names(properties: Schemas, *drifts: Drift) -> tuple[str, ...]:
    """Return the properties that a check compares in one of these ways."""
    return tuple(name for name, schema in properties.items() if schema.drift in drifts)


def changes_of(
    properties: Schemas, after: Mapping[str, Any], names: Collection[str]
) -> frozenset[OnChange]:
    """Return the effects of changing the properties ``names`` to their values in ``after``."""
    changes = set()
    for schema in [properties[name] for name in names if name in properties]:
        change = schema.on_change if schema.update_allowed else OnChange.REPLACE
        if isinstance(change, Policy):
            change = change.changes.get(str(after.get(change.property)))
        if change is not None:
            changes.add(change)
    return frozenset(changes)
