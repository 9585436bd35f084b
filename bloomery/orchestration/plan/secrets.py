"""Which values a plan never shows: those that a hidden parameter or a secret went into.

A property is secret when its tree, old or new, asks for a hidden parameter or for a resource that
has a secret; of a plain map only the keys are whose trees do.  What cannot be resolved is judged by
the texts in it, rather once too often.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.orchestration.plan import forecast
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.changes import Change, Changed
from bloomery.orchestration.plan.differences import NOT_SET, Difference, between
from bloomery.orchestration.plan.forecast import Forecast
from bloomery.orchestration.plan.template_side import TemplateSide
from bloomery.orchestration.resources.base import Resource, ending
from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.functions.base import Function

Reasons: TypeAlias = Mapping[tuple[str | int, ...], str]  # why what is at a path is not shown

IN_GROUP: Final = "its group is given a secret"


@dataclass(slots=True)
class Mask:
    """Turns changes into differences that may be shown."""

    builder: PlanBuilder

    def differences(self, name: str, change: Change) -> tuple[Difference, ...]:
        differences = [
            each
            for key, changed in change.properties.items()
            for each in self._differences(name, "properties", key, changed)
        ]
        for part, changed in change.template.items():
            differences += self._differences(name, part, part, changed)
        return tuple(differences)

    def _differences(
        self, name: str, part: str, key: str, changed: Changed
    ) -> Iterator[Difference]:
        whole = Difference(
            path=(key,), before=changed.before, after=changed.after, certain=changed.certain
        )
        reasons = dict(self.reasons(name, part, key))
        if (key,) in reasons:
            yield whole.masked((key,), reasons[key,])
            return
        was, will_be = (_set(value) for value in changed.parts or (changed.before, changed.after))
        if part == "properties":
            ends = {end for kind in self._kinds(name) for end in kind.secret_paths}
            for path in (each for value in (was, will_be) for each in ending(ends, value, (key,))):
                reasons[path] = f"{path[-1]} is a secret"
        # No leaf differs where two values are not known, and not the same.
        leaves = list(between(was, will_be, (key,), certain=changed.certain)) or [whole]
        shown = [_masked(each, reasons) for each in leaves]
        yield from {each.path: each for each in shown}.values()

    # ------------------------------------------------------------------------- what is a secret

    def reasons(self, name: str, part: str, key: str) -> Reasons:
        """Return why parts of a value must not be shown, by path; ``(key,)`` is all of it."""
        if self.builder.secret:
            return {(key,): IN_GROUP}
        sides = (self.builder.old, self.builder.new)
        if part == "properties" and any(
            key in kind.secret_properties for kind in self._kinds(name)
        ):
            return {(key,): f"{key} is a secret"}
        if part == "properties" and key in self.builder.secret_properties:
            return {(key,): IN_GROUP}
        trees = [(side, self._tree(side, name, part, key)) for side in sides]
        return dict(self._reasons(trees, (key,)))

    def _kinds(self, name: str) -> list[type[Resource]]:
        sides = (self.builder.old, self.builder.new)
        return [side.kind(name) for side in sides if name in side.definitions]

    def _reasons(
        self, trees: Sequence[tuple[TemplateSide, Any]], path: tuple[str | int, ...]
    ) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield where secrets are below ``path``: as deep as both sides are plain maps."""
        trees = [(side, tree) for side, tree in trees if tree is not None]
        why = next(filter(None, (self._reason(side, tree) for side, tree in trees)), None)
        if why is None:
            return
        inside: list[tuple[tuple[str | int, ...], str]] = []
        if all(isinstance(tree, dict) for _, tree in trees):
            for key in dict.fromkeys(key for _, tree in trees for key in tree):
                below = [(side, tree.get(key)) for side, tree in trees]
                inside += self._reasons(below, (*path, key))
        yield from inside or [(path, why)]

    @staticmethod
    def _tree(side: TemplateSide, name: str, part: str, key: str) -> Any:
        definition = side.definitions.get(name)
        tree = getattr(definition, part, None)
        return tree.get(key) if part == "properties" and isinstance(tree, dict) else tree

    def _reason(self, side: TemplateSide, tree: Any) -> str | None:
        """Say which secret a tree asks for; None: it asks for none."""
        if not isinstance(tree, dict | list | Function):
            return None
        if names := asked_hidden(side, tree, hidden_of(self.builder, side)):
            return f"parameter {', '.join(sorted(names))} is hidden"
        if not self._secretive():
            return None
        asked = (each.resource for each in base.references(tree, side.view))
        resource = next(filter(self.secretive, asked), None)
        return None if resource is None else f"resource {resource} has a secret"

    def secretive(self, name: str) -> bool:
        """Whether a secret went into a resource, so that its id and attributes may tell it."""
        return name in self._secretive()

    def _secretive(self) -> set[str]:
        if self.builder.secretive is None:
            self.builder.secretive = spread(self.builder)
        return self.builder.secretive


def _masked(leaf: Difference, reasons: Reasons) -> Difference:
    """Return a leaf without what is secret in it, or above it."""
    for path, why in reasons.items():
        depth = min(len(path), len(leaf.path))
        if path[:depth] == leaf.path[:depth]:
            return leaf.masked(leaf.path[:depth], why)
    return leaf


def _set(value: Any) -> Any:
    """A property that is null is one that is not set."""
    return NOT_SET if value is None else value


def spread(builder: PlanBuilder) -> set[str]:
    """Return the resources that a secret went into, directly or through others."""
    sides = (builder.old, builder.new)
    reached = {name for name, row in builder.records.items() if row is not None and row.redacted}
    for side in sides:
        hidden = hidden_of(builder, side)
        trees = ((name, each.properties) for name, each in side.definitions.items())
        reached |= {name for name, tree in trees if asked_hidden(side, tree, hidden)}
    users = _users(sides) if reached else {}
    todo = list(reached)
    while todo:
        new = users.get(todo.pop(), set()) - reached
        reached |= new
        todo += new
    return reached


def _users(sides: Iterable[TemplateSide]) -> dict[str, set[str]]:
    """Return by name who refers to it."""
    users = defaultdict[str, set[str]](set)
    for side in sides:
        for name, each in side.definitions.items():
            for reference in base.references(each.properties, side.view):
                users[reference.resource].add(name)
    return users


def hidden_of(builder: PlanBuilder, side: TemplateSide) -> set[str]:
    """Return the parameters that are never shown: those of a stack below know it from above."""
    return {*side.hidden, *builder.hidden}


def asked_hidden(side: TemplateSide, tree: Any, hidden: Collection[str]) -> set[str]:
    """Return the hidden parameters that a tree asks for, or may."""
    if not hidden:
        return set()
    view = Forecast(side.view)
    try:
        left = forecast.settled(tree, view)
    except errors.Failure:
        return {*hidden}
    names = {text for residue in forecast.residues(left) for text in residue.texts()}
    return (names | {*view.asked_parameters}) & {*hidden}
