"""What a function may see of a stack: an abstract view, with a plain one for tests.

The engine plugs in rows, a simulation its resources in memory, a plan what it knows of both, and a
test a dictionary::

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
    """What ``ResourceView.attribute`` answers when it has used the path itself."""

    value: Any


class ResourceView(Protocol):
    """One resource as others may see it."""

    @property
    def ready(self) -> bool:
        """Whether it has a usable state, so that attributes have values; else they are null."""

    def reference_id(self) -> Any:
        """What get_resource gives: the physical id, or the name while there is none."""

    def has_attribute(self, name: str) -> bool:
        """Whether the schema knows ``name``; true for any name where attributes are dynamic."""

    def attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        """The value of one attribute; ``path`` is for types that use it themselves.

        Heat's versions from 2014-10-16 hand the path to the resource; most types answer with the
        whole value and let ``select`` walk it (see functions/references.py).  Who has used the path
        answers with ``Walked``.
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
        """Called with every call of a function; raises when the time for all of them is over."""

    def parameter(self, name: str) -> Any:
        """The value as the template sees it; StackValidationFailed for a name that is not there."""

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
    """A resource made of values; ``values`` None stands for one that is not ready."""

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
        """Values that are there already cost no time."""

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
