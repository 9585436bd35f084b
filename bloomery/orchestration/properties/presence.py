"""Rules on which properties a template gives, such as "exactly one of node and selector".

    rules = (ExactlyOne("allocation", "node", "selector", reason="cannot tell where it runs"),)
    check(rules, properties)
    check(rules, properties, Pending(written={("node",)}))  # node is a get_attr of a new resource

Before a stack exists, some values depend on resources that are not created yet.  A rule asks for
presence: a written property counts as given, whatever its value will be.  A value inside a pending
map may be given or not, so no rule refuses it.  ``Known`` serves rules about content in the same
spirit: a check that reads a pending value ends without a verdict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from bloomery import errors

Path: TypeAlias = tuple[str | int, ...]
_DOT: Final = "."


@dataclass(frozen=True, slots=True)
class Pending:
    """Paths whose values are not known yet.

    ``written``: the template has a call there.  ``possible``: the template may have a value there,
    as in the members that a group makes of pending values.
    """

    written: Collection[Path] = frozenset()
    possible: Collection[Path] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.written or self.possible)

    def at(self, path: Path) -> bool:
        """Tell whether the value at a path, or a map around it, is pending."""
        return any(
            path[:end] in self.written or path[:end] in self.possible
            for end in range(len(path) + 1)
        )

    def inside(self, path: Path) -> bool:
        """Tell whether any value below a path is pending."""
        return any(
            each[: len(path)] == path for paths in (self.written, self.possible) for each in paths
        )


NOTHING: Final = Pending()


def empty_paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of empty values, which pending values are until they are known."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from empty_paths(inner, (*path, key))
    elif not value:
        yield path


# ----------------------------------------------------------------------------------------- rules


@dataclass(frozen=True, slots=True, init=False)
class Rule:
    """A rule about the presence of properties; a dot separates the keys of maps.

    ``reason``: what cannot be done, in the message.  ``place``: the property of the error's path.
    """

    names: Sequence[str]
    reason: str
    place: str | None

    def __init__(self, *names: str, reason: str, place: str | None = None) -> None:
        for field, value in (("names", names), ("reason", reason), ("place", place)):
            object.__setattr__(self, field, value)

    @property
    def advice(self) -> str:
        raise NotImplementedError

    def is_broken(self, set_names: Sequence[str], pending: Sequence[str]) -> bool:
        """``set_names``: the names that have a value; ``pending``: others that may have one."""
        raise NotImplementedError

    def sentence(self) -> str:
        """Return the rule for the documentation of the kind."""
        return f"{self.advice[0].upper()}{self.advice[1:]}."


class ExactlyOne(Rule):
    __slots__ = ()

    @property
    def advice(self) -> str:
        return f"give exactly one of {_listed(self.names, 'and')}"

    def is_broken(self, set_names: Sequence[str], pending: Sequence[str]) -> bool:
        return len(set_names) > 1 or not (set_names or pending)


class AtLeastOne(Rule):
    __slots__ = ()

    @property
    def advice(self) -> str:
        return f"give {_listed(self.names, 'or')}"

    def is_broken(self, set_names: Sequence[str], pending: Sequence[str]) -> bool:
        return not (set_names or pending)


class Excludes(Rule):
    """The first property excludes the others."""

    __slots__ = ()

    @property
    def advice(self) -> str:
        first, *others = self.names
        return f"give {first}, or {_listed(others, 'and')}"

    def is_broken(self, set_names: Sequence[str], pending: Sequence[str]) -> bool:
        return self.names[0] in set_names and len(set_names) > 1


def _listed(names: Sequence[str], conjunction: str) -> str:
    *others, last = names
    return f"{', '.join(others)} {conjunction} {last}" if others else last


def check(rules: Sequence[Rule], properties: Mapping[str, Any], pending: Pending = NOTHING) -> None:
    """Raise StackValidationFailed for the first rule that no pending value can satisfy."""
    for rule in rules:
        set_names, open_names = [], []
        for name in rule.names:
            path, value = tuple(name.split(_DOT)), properties
            for key in path:
                value = value.get(key, {}) if isinstance(value, Mapping) else {}
            if path in pending.written or value:
                set_names.append(name)
            elif pending.at(path) or pending.inside(path):
                open_names.append(name)
        if rule.is_broken(set_names, open_names):
            raise errors.StackValidationFailed(
                reason=f"{rule.reason}: {rule.advice}", path=[rule.place] if rule.place else []
            )


# --------------------------------------------------------------------------------------- content


class NotKnownYet(Exception):
    """A check has read a pending value."""


class Known(Mapping[str, Any]):
    """Properties for a check of content: reading a pending value raises NotKnownYet."""

    __slots__ = ("_path", "_pending", "_values")

    def __init__(self, values: Mapping[str, Any], pending: Pending, path: Path = ()) -> None:
        self._values = values
        self._pending = pending
        self._path = path

    def __getitem__(self, key: str) -> Any:
        value, path = self._values[key], (*self._path, key)
        if self._pending.at(path):
            raise NotKnownYet
        if not self._pending.inside(path):
            return value
        if isinstance(value, Mapping):
            return Known(value, self._pending, path)
        raise NotKnownYet

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
