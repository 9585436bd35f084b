"""Translation rules: from old spellings of properties to new ones, before validation.

A kind of resource lists rules; they run on the given values, in the order Add, Replace, Resolve,
Delete.  A path names keys from the outside in and passes through lists: ``("networks", "port")`` is
the port of every network::

    rules = [Replace(("networks", "network"), name="uuid"), Resolve(("image",), images.find)]
    translated(rules, {"networks": [{"uuid": "7"}]})  # {"networks": [{"network": "7"}]}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from bloomery import errors

Path: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[dict[str, Any], str]  # a map, and a key that it may have


@dataclass(frozen=True, slots=True)
class Add:
    """Append ``values``, and the values moved from ``source``, to the list at ``path``.

    ``element``: what to append for a moved value, which is then skipped if it is null.
    """

    priority: ClassVar[int] = 0

    path: Path
    values: Sequence[Any] = field(default=(), kw_only=True)
    source: Path | None = field(default=None, kw_only=True)
    element: Callable[[Any], Any] | None = field(default=None, kw_only=True)

    def apply(self, data: dict[str, Any]) -> None:
        moved = _taken(data, self.source)
        if self.element is not None:
            moved = [self.element(value) for value in moved if value is not None]
        more = [*self.values, *moved]
        for place, key in _places(data, self.path):
            present = place.get(key)
            if more and (present is None or isinstance(present, list)):
                place[key] = [*(present or []), *more]

    def names(self) -> set[str]:
        return {path[0] for path in (self.path, self.source) if path}


@dataclass(frozen=True, slots=True)
class Replace:
    """Set ``path`` to ``value``, or move a value there from the sibling key ``name`` or ``source``.

    Both spellings at once raise StackValidationFailed; null counts as absent.
    """

    priority: ClassVar[int] = 1

    path: Path
    value: Any = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    source: Path | None = field(default=None, kw_only=True)

    def apply(self, data: dict[str, Any]) -> None:
        moved = [item for item in _taken(data, self.source) if item is not None]
        for place, key in _places(data, self.path):
            values = [place.pop(self.name, None)] if self.name is not None else moved
            new = [item for item in values if item is not None]
            if self.value is not None:
                place[key] = self.value
            elif new and place.get(key) is not None:
                old = self.name or ".".join(self.source or ())
                raise errors.StackValidationFailed(
                    reason=f"{key} and {old} cannot be used at once: leave {old} out"
                )
            elif new:
                place[key] = new[0]

    def names(self) -> set[str]:
        own = {self.name} if self.name is not None and len(self.path) == 1 else set()
        return own | {path[0] for path in (self.path, self.source) if path}


@dataclass(frozen=True, slots=True)
class Resolve:
    """Replace each value at ``path`` by the result of ``find``: a name by an ID."""

    priority: ClassVar[int] = 2

    path: Path
    find: Callable[[Any], Any]

    def apply(self, data: dict[str, Any]) -> None:
        for place, key in _places(data, self.path):
            value = place.get(key)
            if isinstance(value, list):
                place[key] = [self._resolved(item) for item in value]
            elif key in place:
                place[key] = self._resolved(value)

    def _resolved(self, value: Any) -> Any:
        return value if value is None or value == "" else self.find(value)

    def names(self) -> set[str]:
        return {self.path[0]}


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the value at ``path``."""

    priority: ClassVar[int] = 3

    path: Path

    def apply(self, data: dict[str, Any]) -> None:
        for place, key in _places(data, self.path):
            place.pop(key, None)

    def names(self) -> set[str]:
        return {self.path[0]}


Rule: TypeAlias = Add | Replace | Resolve | Delete


def translated(rules: Sequence[Rule], properties: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of ``properties`` in the new spelling."""
    data: dict[str, Any] = _copied(properties)
    for rule in sorted(rules, key=lambda rule: rule.priority):
        rule.apply(data)
    return data


def spread(rules: Sequence[Rule], names: set[str]) -> set[str]:
    """Return ``names`` and the properties to which the rules may move their values."""
    for rule in sorted(rules, key=lambda rule: rule.priority):
        touched = rule.names()
        if not names.isdisjoint(touched):
            names = names | touched
    return names


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def _taken(data: dict[str, Any], source: Path | None) -> list[Any]:
    """Remove and return the values at ``source``."""
    if source is None:
        return []
    return [place.pop(key) for place, key in list(_places(data, source)) if key in place]


def _places(data: dict[str, Any], path: Path) -> Iterator[Place]:
    """Yield every map that may hold the last key of ``path``."""
    level: list[dict[str, Any]] = [data]
    for name in path[:-1]:
        members: list[Any] = []
        for place in level:
            value = place.get(name)
            members += value if isinstance(value, list) else [value]
        level = [item for item in members if isinstance(item, dict)]
    yield from ((place, path[-1]) for place in level)
