"""Declarations of RPC methods: version, arguments, and repeatability.

@since("1.0", question=True)
def vif_list(self, request: Request, node_uuid: str) -> list[Json]: ...

list_methods(Conductor)["vif_list"].parameters      # ("node_uuid",)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_MARK: Final = "contract_facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method of a contract, without ``request``.

    ``is_question``: it changes nothing, so that a repeated call is executed again. ``longest_s``:
    of methods that answer from memory: the time limit. ``field_since``: the versions of parameters
    newer than the method. ``drops_new_fields``: calls to older peers leave those parameters out,
    instead of failing.
    """

    name: str
    since: str
    parameters: tuple[str, ...]
    required: frozenset[str]
    is_question: bool = False
    longest_s: float | None = None
    field_since: Mapping[str, str]
    drops_new_fields: bool = False

    def arguments(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments by name.  Raises TypeError, as a call of the method would."""
        arguments: dict[str, Any] = {**dict(zip(self.parameters, args, strict=False)), **named}
        if len(args) + len(named) != len(arguments) or (fault := self.fault_of(arguments)):
            raise TypeError(f"{self.name}(): {fault or 'arguments that it does not have'}")
        return arguments

    def fault_of(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the fault of these arguments, or None."""
        if missing := self.required - arguments.keys():
            return f"without {', '.join(sorted(missing))}"
        if surplus := arguments.keys() - set(self.parameters):
            return f"with {', '.join(sorted(map(str, surplus)))}, which it does not take"
        return None

    def version_of(self, arguments: Mapping[str, Any]) -> str:
        """Return the oldest version of the contract that supports this call."""
        fields = (v for name, v in self.field_since.items() if name in arguments)
        return max((self.since, *fields), key=parsed)


def since(
    version: str,
    *,
    question: bool = False,
    longest_s: float | None = None,
    fields: Mapping[str, str] | None = None,
    drops_new_fields: bool = False,
) -> Callable[[F], F]:
    """Declare the contract version of a method, and of its later parameters (``fields``)."""

    def mark(method: F) -> F:
        facts = {"since": version, "is_question": question, "field_since": dict(fields or {})}
        more = {"longest_s": longest_s, "drops_new_fields": drops_new_fields}
        setattr(method, _MARK, facts | more)
        return method

    return mark


def list_methods(contract: type[Any]) -> dict[str, Method]:
    """Return the methods of a contract by name."""
    methods = {}
    for name, function in inspect.getmembers(contract, inspect.isfunction):
        if (facts := getattr(function, _MARK, None)) is not None:
            _self, _request, *parameters = inspect.signature(function).parameters.values()
            methods[name] = Method(
                name=name,
                parameters=tuple(each.name for each in parameters),
                required=frozenset(each.name for each in parameters if each.default is each.empty),
                **facts,
            )
    return methods


def parsed(version: str) -> tuple[int, int]:
    """Return a version as comparable numbers.  Raises ValueError."""
    major, minor = version.split(".")
    return int(major), int(minor)


def understands(own: str, other: str) -> bool:
    """Does contract ``own`` support a call of version ``other``?"""
    return parsed(own)[0] == parsed(other)[0] and parsed(other) <= parsed(own)
