"""The ``resource_registry``: from type names to kinds of resource or nested templates.

    registry = Registry({"My::*": "OS::Heat::*", "Db": "db.yaml"}, kinds)
    registry.find("My::Value", "a").kind  # the class of OS::Heat::Value
    registry.find("Db", "b").template  # "db.yaml", a key of the files

Rules apply in this order: rules for the resource name, rules for all resources, then the operator's
likewise; on each level the exact name first, then the longest wildcard.  The target of a rule is
looked up again, so that rules form chains; a rule without a known target is skipped.  A chain has
each wildcard at most once, and a loop is refused.  (Heat lets the shortest wildcard win over the
exact name, and does not survive loops.)

A rule to null removes earlier rules of its own level, and rules of all weaker levels.  Null rules
of the operator also remove kinds.  Hooks and restricted actions are here too, by patterns of
resource names.  A child stack gets the section under the name of its resource (``child_registry``).
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.template.kinds import Kinds
from bloomery.orchestration.template.resource_rules import BASE_URL, KEYS, ResourceRules

RESOURCES: Final = "resources"
FILES: Final = (".yaml", ".template")
ADDRESSES: Final = ("http://", "https://", "file://")


def is_template(target: str) -> bool:
    """Whether a type or a rule names a template rather than another type."""
    return target.endswith(FILES) or target.startswith(ADDRESSES)


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One line of a registry; a ``name`` that ends with * is for all types with this prefix."""

    name: str
    target: str

    def applied(self, name: str) -> str:
        """Return the target for ``name``; a * in the target becomes the text that matched *."""
        if not (self.name.endswith("*") and self.target.endswith("*")):
            return self.target
        return self.target[:-1] + name[len(self.name) - 1 :]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedType:
    """The result of a lookup: a kind, or a template; ``rule`` is the last one of the chain."""

    kind: type[Any] | None = None
    template: str | None = None
    rule: Rule | None = None


class _Prefixes:
    """Rules by prefix, longest first.

    The cost of a lookup is in the number of different lengths, not of rules.
    """

    __slots__ = ("_lengths", "_rules")

    def __init__(self) -> None:
        self._rules: dict[str, Rule] = {}
        self._lengths: list[int] = []  # descending

    def add(self, prefix: str, rule: Rule) -> None:
        self._rules[prefix] = rule
        at = bisect.bisect_left(self._lengths, -len(prefix), key=operator.neg)
        if self._lengths[at : at + 1] != [len(prefix)]:
            self._lengths.insert(at, len(prefix))

    def of(self, name: str) -> Iterator[Rule]:
        for length in self._lengths:
            if length <= len(name) and (rule := self._rules.get(name[:length])) is not None:
                yield rule


class Level:
    """The rules of one level."""

    __slots__ = ("_gone", "_gone_prefixes", "_wild", "exact")

    def __init__(self, lines: dict[str, str | None]) -> None:
        self.exact: dict[str, Rule] = {}
        self._wild = _Prefixes()
        self._gone: set[str] = set()
        self._gone_prefixes = _Prefixes()
        for name, target in reversed(lines.items()):  # a removal comes after the rules it removes
            prefix = name[:-1] if name.endswith("*") else None
            if target is None:
                self._gone.add(name)
                if prefix is not None:
                    self._gone_prefixes.add(prefix, Rule(name, ""))
            elif self.removes(name):
                continue
            elif prefix is None:
                self.exact[name] = Rule(name, target)
            else:
                self._wild.add(prefix, Rule(name, target))

    def candidates(self, name: str) -> Iterator[Rule]:
        if (rule := self.exact.get(name)) is not None:
            yield rule
        yield from self._wild.of(name)

    def holds(self, rule: Rule) -> bool:
        return any(one is rule for one in self.candidates(rule.name))

    def removes(self, name: str) -> bool:
        """Return whether a null rule removes rules called ``name``, here or on weaker levels."""
        return name in self._gone or next(self._gone_prefixes.of(name), None) is not None


class Registry:
    """One ``resource_registry``, over the operator's.  It is immutable."""

    def __init__(
        self,
        document: Mapping[str, Any],
        kinds: Kinds,
        operators: Registry | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        """``document``: errors have a path below it."""
        self.document = document
        self.kinds = kinds
        self._operators = operators
        self.limits = limits
        self.level = Level(_lines(document, limits))
        try:
            self._resources = ResourceRules(document.get(RESOURCES, {}), limits)
        except errors.Misplaced as exc:
            raise exc.under(RESOURCES) from exc
        self._levels_of: dict[str, Level] = {}  # for resources with types of their own
        self._resolved: dict[tuple[str, str], ResolvedType] = {}

    # ------------------------------------------------------------------------------------ types

    def find(self, type_name: str, resource_name: str = "") -> ResolvedType:
        """Return the resolved type for the resource.

        Raises StackValidationFailed for an unknown type, and for rules in a loop.
        """
        own = resource_name if self.singles_out(resource_name) else ""
        if (cached := self._resolved.get((type_name, own))) is None:
            if (cached := _Search(self, own).resolve(type_name, None)) is None:
                if (rule := next(self.rules(type_name, own), None)) is None:
                    raise self.kinds.unknown(type_name, self.level.exact)
                raise errors.StackValidationFailed(
                    reason=f"The Resource Type ({type_name}) could not be found: "
                    f"resource_registry maps it to {rule.applied(type_name)!r}, which is neither "
                    "a type nor the name of a .yaml or .template file"
                )
            self._resolved[type_name, own] = cached
        return cached

    def levels(self, resource_name: str) -> Iterator[Level]:
        """Yield the levels that apply to a resource, strongest first."""
        if (own := self._own_level(resource_name)) is not None:
            yield own
        yield self.level
        if self._operators is not None:
            yield from self._operators.levels(resource_name)

    def singles_out(self, resource_name: str) -> bool:
        """Whether there are rules for this resource alone."""
        operators = self._operators
        if operators is not None and operators.singles_out(resource_name):
            return True
        return self._own_level(resource_name) is not None

    def _own_level(self, resource_name: str) -> Level | None:
        if resource_name not in self._levels_of:
            if not (lines := self._resources.types(resource_name)):
                return None
            self._levels_of[resource_name] = Level(lines)
        return self._levels_of[resource_name]

    def rules(self, name: str, resource_name: str) -> Iterator[Rule]:
        """Yield the rules for a type name, strongest first, without those that a level removes."""
        stronger: list[Level] = []
        for level in self.levels(resource_name):
            for rule in level.candidates(name):
                if not any(one.removes(rule.name) for one in stronger):
                    yield rule
            stronger.append(level)

    def kind(self, name: str) -> type[Any] | None:
        """Return the kind called ``name``, unless the operator has removed it."""
        operators = self._operators
        if operators is not None and operators.level.removes(name):
            return None
        return self.kinds.find(name)

    # ---------------------------------------------------------------------------------- resources

    def hooks(self, resource_name: str) -> frozenset[str]:
        """Return the hooks at which the resource waits until the hook is cleared."""
        hooks = self._resources.actions(resource_name, "hooks")
        return hooks if self._operators is None else hooks | self._operators.hooks(resource_name)

    def restricted_actions(self, resource_name: str) -> frozenset[str]:
        """Return the restricted actions of a resource: ``update``, ``replace``."""
        actions = self._resources.actions(resource_name, "restricted_actions")
        if self._operators is not None:
            actions |= self._operators.restricted_actions(resource_name)
        return actions

    def child_registry(
        self, resource_name: str, resolved: ResolvedType | None = None
    ) -> dict[str, Any]:
        """Return the registry for the child stack of ``resource_name``.

        The rule that led to its template is left out, so that a template for a type can have
        a resource of the original type.
        """
        document = {key: value for key, value in self.document.items() if key != RESOURCES}
        rule = None if resolved is None else resolved.rule
        if rule is not None and self.level.holds(rule):
            del document[rule.name]
        elif rule is not None and self._operators is not None and self._operators.level.holds(rule):
            document = {rule.name: None} | {k: v for k, v in document.items() if k != rule.name}
        return document | {RESOURCES: self._resources.child_rules(resource_name)}


class _Search:
    """One lookup, with the names and rules on its way."""

    __slots__ = ("_names", "_registry", "_resource", "_used", "_way")

    def __init__(self, registry: Registry, resource_name: str) -> None:
        self._registry = registry
        self._resource = resource_name
        self._way: list[str] = []  # names of the chain
        self._used: set[Rule] = set()  # rules on the way
        self._names: set[str] = set()  # all names looked up, unknown ones too

    def resolve(self, name: str, rule: Rule | None) -> ResolvedType | None:
        """Return the resolved type of ``name``, the target of ``rule``; None if it is unknown."""
        self._way.append(name)
        self._names.add(name)
        limits = self._registry.limits
        if len(self._names) > limits.registry_names:
            raise limits.exceeded("registry_names", "names", f"the resource type {self._way[0]}")
        for onward in self._registry.rules(name, self._resource):
            target = onward.applied(name)
            if onward in self._used:
                continue
            if is_template(target):
                return ResolvedType(template=target, rule=onward)
            if target == name and onward.name.endswith("*"):
                continue  # the wildcard maps the name to itself
            if target in self._way:
                way = " to ".join([*self._way[self._way.index(target) :], target])
                raise errors.StackValidationFailed(
                    reason=f"resource_registry leads in a circle, from {way}: take one rule out"
                )
            if target in self._names:
                continue
            self._used.add(onward)
            resolved = self.resolve(target, onward)
            self._used.discard(onward)
            if resolved is not None:
                return resolved
        self._way.pop()
        if is_template(name):
            return ResolvedType(template=name, rule=rule)
        kind = self._registry.kind(name)
        return None if kind is None else ResolvedType(kind=kind, rule=rule)


def _lines(document: Mapping[Any, Any], limits: Limits) -> dict[str, str | None]:
    """Return the rules for all resources, checked."""
    lines: dict[str, str | None] = {}
    for name, target in document.items():
        if name == RESOURCES or (name == BASE_URL and isinstance(target, str)):
            continue
        reason = ""
        if not isinstance(name, str):
            reason = "a type must be text: quote it"
        elif name in KEYS:
            reason = f"this belongs to a resource: write resources: {{NAME: {{{name}: ...}}}}"
        elif "*" in name[:-1]:
            reason = "a wildcard may stand at the end of a type only"
        elif len(name) > limits.type_chars:
            reason = f"a type has {limits.type_chars} characters at most (type_chars)"
        elif target is not None and (not isinstance(target, str) or not target):
            reason = "map a type to a type, to the name of a .yaml or .template file, or to null"
        if reason:
            raise errors.StackValidationFailed(reason=reason, path=(str(name),))
        lines[name] = target
    return lines
