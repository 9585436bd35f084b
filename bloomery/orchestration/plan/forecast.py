"""What can be known of a stack before its plan is walked.

A plan resolves properties of the new template while the resources they refer to are still to be
made.  ``Forecast`` is the view it resolves them against: it answers for what will stay as it is and
raises ``NotKnown`` for the rest, so that no function ever sees a made-up value::

    the resource is          its id                          an attribute
    unchanged, refused       known if live                   known if live
    updated in place         known if live                   may change
    created                  changes                         changes
    replaced, made again     changes                         may change
    taken back               may change                      may change

What is not live (a plan from two templates alone, an id that nobody looked up) but stays as it is
is *steady*: its value is not known, but it is the same before and after.  Then two trees are
compared instead of two values (``settled``).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.functions.base import Function, Reference
from bloomery.orchestration.template.view import Facade, ResourceView, StackView


class Knowledge(enum.IntEnum):
    """How well a referred value is known; the higher, the less."""

    KNOWN = 0
    STEADY = 1
    MAY_CHANGE = 2
    CHANGES = 3


class NotKnown(Exception):
    """A value was asked for that comes only while the plan is walked."""

    def __init__(self, reference: Reference) -> None:
        super().__init__(reference)
        self.reference = reference


Judge = Callable[[Reference], Knowledge]


def blind(reference: Reference) -> Knowledge:
    """Judge nothing to be known: what is left of a tree is its own doing."""
    return Knowledge.STEADY


@dataclass(slots=True)
class Forecast:
    """A view of a stack, which raises NotKnown for what comes only while the plan is walked."""

    stack: StackView
    judge: Judge = blind
    live: Mapping[str, ResourceView] = field(default_factory=dict)
    _references: dict[int, tuple[Any, tuple[Reference, ...]]] = field(default_factory=dict)

    @property
    def limits(self) -> Limits:
        return self.stack.limits

    @property
    def facade(self) -> Facade | None:
        return self.stack.facade

    def tick(self) -> None:
        self.stack.tick()

    def parameter(self, name: str) -> Any:
        return self.stack.parameter(name)

    def has_parameter(self, name: str) -> bool:
        return self.stack.has_parameter(name)

    def file(self, key: str) -> str:
        return self.stack.file(key)

    def condition(self, name: str) -> bool:
        return self.stack.condition(name)

    def mapping(self, name: str) -> Mapping[str, Any]:
        return self.stack.mapping(name)

    def resource(self, name: str) -> ResourceView:
        return Foreseen(name, self)

    def references(self, tree: Any) -> tuple[Reference, ...]:
        """Return what a tree of a definition asks for, each once; found once for each tree."""
        if not isinstance(tree, dict | list | Function):
            return ()
        entry = self._references.get(id(tree))
        if entry is None:  # the tree is kept, so that no other comes to have its id
            entry = tree, tuple(dict.fromkeys(base.references(tree, self)))
            self._references[id(tree)] = entry
        return entry[1]

    def live_resource(self, reference: Reference) -> ResourceView:
        """Return who can tell the value, or raise NotKnown."""
        if self.judge(reference) is not Knowledge.KNOWN:
            raise NotKnown(reference)
        return self.live[reference.resource]


@dataclass(slots=True, frozen=True)
class Foreseen:
    """One resource as far as the plan knows it."""

    name: str
    forecast: Forecast

    @property
    def ready(self) -> bool:
        return True

    def reference_id(self) -> Any:
        return self.forecast.live_resource(Reference(self.name, None)).reference_id()

    def has_attribute(self, name: str) -> bool:
        return True  # the stack was validated; a name that is wrong fails where its value is asked

    def attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        reference = Reference(self.name, name)
        try:
            return self.forecast.live_resource(reference).attribute(name, path)
        except errors.InvalidTemplateAttribute as exc:
            # A stack below that was changed by itself may lack an output until it is updated.
            raise NotKnown(reference) from exc

    def attributes(self) -> Mapping[str, Any]:
        return self.forecast.live_resource(Reference(self.name, "")).attributes()


@dataclass(slots=True, frozen=True)
class Residue:
    """A call that cannot be made yet: equal to another if both must give the same."""

    call: type[Function]
    args: Any

    def texts(self) -> Iterator[str]:
        """Yield the texts among the arguments, which may name parameters."""
        todo = [self.args]
        while todo:
            tree = todo.pop()
            if isinstance(tree, str):
                yield tree
            elif isinstance(tree, Residue):
                todo.append(tree.args)
            elif isinstance(tree, dict | list):
                todo += tree.values() if isinstance(tree, dict) else tree


def settled(tree: Any, view: Forecast) -> Any:
    """Resolve each call of ``tree`` that can be; the others become what is left of them."""
    if isinstance(tree, Function):
        try:
            return base.resolve(tree, view)
        except NotKnown:
            return Residue(type(tree), settled(tree.args, view))
    if isinstance(tree, dict):
        return {key: settled(value, view) for key, value in tree.items()}
    if isinstance(tree, list):
        return [settled(value, view) for value in tree]
    return tree


def residues(tree: Any) -> Iterator[Residue]:
    """Yield what could not be settled in ``tree``."""
    todo = [tree]
    while todo:
        part = todo.pop()
        if isinstance(part, Residue):
            yield part
        elif isinstance(part, dict | list):
            todo += part.values() if isinstance(part, dict) else part
