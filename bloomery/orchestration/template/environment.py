"""Environments: parameters, defaults, resource registry, hooks and event sinks.

    environment = Environment.of({"parameters": {"size": 3}, "resource_registry": {...}}, kinds)
    environment.registry.find("My::Server", "web")
    environment.child("nested", parameters={...}, resolved=...)  # for the child stack of "nested"

The operator's environment yields to the user's: its parameters and defaults are defaults, and its
registry applies after the user's.  Its sinks get the events of every stack.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from bloomery import errors, plugins
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.template.kinds import Kinds, installed
from bloomery.orchestration.template.registry import Registry, ResolvedType

PARAMETERS: Final = "parameters"
DEFAULTS: Final = "parameter_defaults"
REGISTRY: Final = "resource_registry"
SINKS: Final = "event_sinks"
ENCRYPTED: Final = "encrypted_param_names"
STRATEGIES: Final = "parameter_merge_strategies"  # of files that are merged; else without effect
SECTIONS: Final[Mapping[str, type[Any]]] = {
    PARAMETERS: dict,
    DEFAULTS: dict,
    REGISTRY: dict,
    SINKS: list,
    ENCRYPTED: list,
    STRATEGIES: dict,
}
SHAPES: Final[Mapping[type[Any], str]] = {dict: "a map", list: "a list"}
SINK_GROUP: Final = "bloomery.event_sinks"
MASKED: Final = "******"


class Environment:
    """An environment.  It is immutable."""

    __slots__ = (
        "_defaults",
        "_operators",
        "encrypted_param_names",
        "event_sinks",
        "parameter_defaults",
        "parameters",
        "registry",
    )

    def __init__(
        self,
        sections: Mapping[str, Any],
        registry: Registry,
        operators: Environment | None,
    ) -> None:
        self.parameters: Mapping[str, Any] = sections.get(PARAMETERS, {})
        self.registry = registry
        self.event_sinks: Sequence[Mapping[str, Any]] = sections.get(SINKS, [])
        self.encrypted_param_names: Sequence[str] = sections.get(ENCRYPTED, [])
        self._defaults: Mapping[str, Any] = sections.get(DEFAULTS, {})
        self._operators = operators
        self.parameter_defaults = self._defaults
        if operators is not None:
            operator_defaults = {**operators.parameter_defaults, **operators.parameters}
            self.parameter_defaults = {**operator_defaults, **self._defaults}

    @classmethod
    def of(
        cls,
        document: Mapping[str, Any] | None,
        kinds: Kinds | None = None,
        *,
        operators: Environment | None = None,
        sinks: Collection[str] | None = None,
        limits: Limits = LIMITS,
    ) -> Environment:
        """Check an environment; ``kinds`` and ``sinks`` default to the installed ones.

        Raises TemplateUnreadable for invalid sections, which Heat refuses in its API and not in its
        engine, StackValidationFailed for the content of a section, InvalidBreakPointHook and
        InvalidRestrictedAction.
        """
        sections = {} if document is None else checked(document)
        sinks = installed_sinks() if sinks is None else sinks
        for index, sink in enumerate(sections.get(SINKS, [])):
            kind = sink.get("type") if isinstance(sink, dict) else None
            if not isinstance(kind, str) or kind not in sinks:
                fault = (
                    "needs a type" if kind is None else f"{str(kind)[:100]!r} is no type of sink"
                )
                these = f"known are {', '.join(sorted(sinks))}" if sinks else "none is installed"
                raise errors.StackValidationFailed(
                    reason=f"{fault}: {these}.{errors.nearest(kind, sinks)}", path=(SINKS, index)
                )
        for index, name in enumerate(sections.get(ENCRYPTED, [])):
            if not isinstance(name, str):
                raise errors.StackValidationFailed(
                    reason="write the name of a parameter", path=(ENCRYPTED, index)
                )
        operator_registry = None if operators is None else operators.registry
        kinds = installed() if kinds is None else kinds
        try:
            registry = Registry(sections.get(REGISTRY, {}), kinds, operator_registry, limits)
        except errors.Misplaced as exc:
            raise exc.under(REGISTRY) from exc
        return cls(sections, registry, operators)

    def child(
        self,
        resource_name: str,
        parameters: Mapping[str, Any] | None = None,
        resolved: ResolvedType | None = None,
    ) -> Environment:
        """Return the environment of a resource's child stack.

        ``resolved``: the resolved type of the resource; the rule that led to its template is not
        passed down.  Defaults and sinks are passed down, ``encrypted_param_names`` is not.
        """
        sections: dict[str, Any] = {
            PARAMETERS: parameters or {},
            DEFAULTS: self._defaults,
            REGISTRY: self.registry.child_registry(resource_name, resolved),
            SINKS: self.event_sinks,
        }
        operator_registry = None if self._operators is None else self._operators.registry
        registry = Registry(
            sections[REGISTRY], self.registry.kinds, operator_registry, self.registry.limits
        )
        return Environment(sections, registry, self._operators)

    def all_sinks(self) -> list[Mapping[str, Any]]:
        """Return all event sinks, the operator's last."""
        return [*self.event_sinks, *(self._operators.event_sinks if self._operators else ())]

    def document(self, public: Collection[str] | None = None) -> dict[str, Any]:
        """Return the document as stored; ``public``: mask all parameters but these, for readers."""
        registry = dict(self.registry.document)
        return {
            PARAMETERS: _masked(self.parameters, public),
            DEFAULTS: _masked(self._defaults, public),
            REGISTRY: registry | {"resources": registry.get("resources", {})},
            SINKS: [*self.event_sinks],
            ENCRYPTED: [*self.encrypted_param_names],
        }


def _masked(values: Mapping[str, Any], public: Collection[str] | None) -> dict[str, Any]:
    return {
        name: value if public is None or name in public else MASKED
        for name, value in values.items()
    }


# ------------------------------------------------------------------------------------- sections


def checked(document: Any) -> dict[str, Any]:
    """Return ``document`` if its sections have the right shape.  Raises TemplateUnreadable."""
    if not isinstance(document, dict):
        raise _unreadable("the environment must be a map of sections")
    for name, section in document.items():
        if name not in SECTIONS:
            near = errors.nearest(name, SECTIONS) or f" It may have {', '.join(SECTIONS)}."
            raise _unreadable(f'environment has wrong section "{str(name)[:100]}".{near}')
        if section is None:
            raise _unreadable(f'environment has empty section "{name}": fill it or leave it out')
        if not isinstance(section, SECTIONS[name]):
            raise _unreadable(f'section "{name}" must be {SHAPES[SECTIONS[name]]}')
    return document


def _unreadable(reason: str) -> errors.TemplateUnreadable:
    return errors.TemplateUnreadable(reason=reason)


@functools.cache
def installed_sinks() -> Collection[str]:
    """Return the types of the installed event sinks, the names of their entry points."""
    return frozenset(plugins.loaders(SINK_GROUP))
