"""Which values a plan never shows: those that a hidden parameter or a secret went into.

A property is secret when its tree, old or new, asks for a hidden parameter or for a resource that
has a secret.  What cannot be resolved is judged by the texts in it, rather once too often.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bloomery import errors
from bloomery.orchestration.plan import forecast
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.changes import Change, Changed
from bloomery.orchestration.plan.differences import NOT_SET, Difference, between
from bloomery.orchestration.plan.forecast import Forecast
from bloomery.orchestration.plan.template_side import TemplateSide
from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.functions.base import Function


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
        if self.secret(name, part, key):
            yield whole.masked()
            return
        was, will_be = (_set(value) for value in changed.parts or (changed.before, changed.after))
        # No leaf differs where two values are not known, and not the same.
        yield from list(between(was, will_be, (key,), certain=changed.certain)) or [whole]

    # ------------------------------------------------------------------------- what is a secret

    def secret(self, name: str, part: str, key: str) -> bool:
        """Whether a value of one resource must not be shown."""
        if self.builder.secret:
            return True
        sides = (self.builder.old, self.builder.new)
        kinds = (side.kind(name) for side in sides if name in side.definitions)
        if part == "properties" and any(key in kind.secret_properties for kind in kinds):
            return True
        return any(self._asks_secret(side, self._tree(side, name, part, key)) for side in sides)

    @staticmethod
    def _tree(side: TemplateSide, name: str, part: str, key: str) -> Any:
        definition = side.definitions.get(name)
        tree = getattr(definition, part, None)
        return tree.get(key) if part == "properties" and isinstance(tree, dict) else tree

    def _asks_secret(self, side: TemplateSide, tree: Any) -> bool:
        if not isinstance(tree, dict | list | Function):
            return False
        if asks_hidden(side, tree, hidden_of(self.builder, side)):
            return True
        if not self._secretive():
            return False
        return any(self.secretive(each.resource) for each in base.references(tree, side.view))

    def secretive(self, name: str) -> bool:
        """Whether a secret went into a resource, so that its id and attributes may tell it."""
        return name in self._secretive()

    def _secretive(self) -> set[str]:
        if self.builder.secretive is None:
            self.builder.secretive = spread(self.builder)
        return self.builder.secretive


def _set(value: Any) -> Any:
    """A property that is null is one that is not set."""
    return NOT_SET if value is None else value


def spread(builder: PlanBuilder) -> set[str]:
    """Return the resources that a secret went into, directly or through others."""
    sides = (builder.old, builder.new)
    reached = {name for name, row in builder.records.items() if row is not None and row.redacted}
    for side in sides:
        hidden = hidden_of(builder, side)
        tree_diff = ((name, each.properties) for name, each in side.definitions.items())
        reached |= {name for name, tree in tree_diff if asks_hidden(side, tree, hidden)}
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


def asks_hidden(side: TemplateSide, tree: Any, hidden: Collection[str]) -> bool:
    """Whether a tree asks for a hidden parameter, or may."""
    if not hidden:
        return False
    view = Forecast(side.view)
    try:
        left = forecast.settled(tree, view)
    except errors.Failure:
        return True
    names = {text for residue in forecast.residues(left) for text in residue.texts()}
    return not names.isdisjoint(hidden) or not view.asked_parameters.isdisjoint(hidden)
