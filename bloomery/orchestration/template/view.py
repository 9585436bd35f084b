"""The view of functions on a stack: protocols, with a plain implementation for tests.

The engine implements it with rows, a simulation with resources in memory, a plan with a forecast,
and a test with dictionaries::

    view = Plain(parameters={"a": "x"}, ids={"server": "17"}, attributes={"server": {"ip": "::1"}})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits


@dataclass(frozen=True, slots=True)
class Walked:
    """The result of ``ResourceView.attribute`` if it has applied the path itself."""

    value: Any


class ResourceView(Protocol):
    """One resource as functions see it."""

    @property
    def ready(self) -> bool:
        """Whether the resource has a usable state; if not, its attributes are null."""

    def reference_id(self) -> Any:
        """Return the value of get_resource: the physical resource ID, else the name."""

    def has_attribute(self, name: str) -> bool:
        """Whether the schema knows ``name``; true for any name where attributes are dynamic."""

    def attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        """Return the value of an attribute; ``path`` is for kinds that apply it themselves.

        HOT versions from 2014-10-16 pass the path to the resource.  Most kinds return the whole
        value, and ``select`` applies the path (see functions/references.py).  A kind that has
        applied the path returns ``Walked``.
        """

    def attributes(self) -> Mapping[str, Any]:
        """All attributes by name, without ``show``."""


class Facade(Protocol):
    """The resource of the parent stack that a nested template implements."""

    def metadata(self) -> Any: ...
    def deletion_policy(self) -> str: ...
    def update_policy(self) -> Any: ...


class StackView(Protocol):
    @property
    def limits(self) -> Limits: ...

    @property
    def facade(self) -> Facade | None: ...

    def tick(self) -> None:
        """Raise if the deadline is over; ``resolve`` calls this before every function."""

    def parameter(self, name: str) -> Any:
        """The converted value; StackValidationFailed for a name that is not declared."""

    def has_parameter(self, name: str) -> bool:
        """Whether the template declares ``name``, with a value or without one."""

    def file(self, key: str) -> str:
        """The text under ``key`` of the files map; StackValidationFailed if it is missing."""

    def resource(self, name: str) -> ResourceView:
        """One resource; InvalidTemplateReference for an unknown or disabled one."""

    def condition(self, name: str) -> bool:
        """The value of a named condition; StackValidationFailed for an unknown name."""

    def mapping(self, name: str) -> Mapping[str, Any]:
        """A map of the CloudFormation section Mappings; StackValidationFailed if unknown."""


@dataclass(slots=True, kw_only=True)
class PlainResource:
    """A resource made of values; it is not ready if ``values`` is None."""

    name: str
    id: Any = None
    values: Mapping[str, Any] | None = None

    @property
    def ready(self) -> bool:
        return self.values is not None

    def reference_id(self) -> Any:
        return self.name if self.id is None else self.id

    def has_attribute(self, name: str) -> bool:
        return self.values is None or name in self.values

    def attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        return (self.values or {}).get(name)

    def attributes(self) -> Mapping[str, Any]:
        return {name: value for name, value in (self.values or {}).items() if name != "show"}


@dataclass(slots=True, kw_only=True)
class Plain:
    """A stack made of dictionaries."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    ids: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    conditions: Mapping[str, bool] = field(default_factory=dict)
    mappings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    facade: Facade | None = None
    limits: Limits = LIMITS

    def tick(self) -> None:
        """Do nothing: there is no deadline."""

    def parameter(self, name: str) -> Any:
        if name not in self.parameters:
            raise errors.StackValidationFailed(reason=f"The Parameter ({name}) was not provided.")
        return self.parameters[name]

    def has_parameter(self, name: str) -> bool:
        return name in self.parameters

    def file(self, key: str) -> str:
        if key not in self.files:
            raise errors.StackValidationFailed(reason=f"no file {key!r} came with the template")
        return self.files[key]

    def resource(self, name: str) -> PlainResource:
        if name not in self.ids and name not in self.attributes:
            raise errors.InvalidTemplateReference(reason=f"no resource is called {name!r}")
        return PlainResource(name=name, id=self.ids.get(name), values=self.attributes.get(name))

    def condition(self, name: str) -> bool:
        if name not in self.conditions:
            raise errors.StackValidationFailed(reason=f'Invalid condition "{name}"')
        return self.conditions[name]

    def mapping(self, name: str) -> Mapping[str, Any]:
        if name not in self.mappings:
            raise errors.StackValidationFailed(reason=f"no mapping is called {name!r}")
        return self.mappings[name]
