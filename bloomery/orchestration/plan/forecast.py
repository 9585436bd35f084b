"""Values of a stack that are known before its plan is traversed.

A plan resolves properties of the new template before the resources they refer to are created.
``Forecast`` is the view for that: it returns values of resources that stay as they are and raises
``NotKnown`` for the others, so that no function ever sees a made-up value::

    the resource is          its id                          an attribute
    unchanged, refused       known if live                   known if live
    updated in place         known if live                   may change
    created                  changes                         changes
    replaced, made again     changes                         may change
    taken back               may change                      may change

A resource that stays as it is but is not live (as in a plan from two templates alone) is *steady*:
its values are not known, but they are the same before and after.  Then two trees are compared
instead of two values (``settled``).
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
    """How well the value of a reference is known; higher means less."""

    KNOWN = 0
    STEADY = 1
    MAY_CHANGE = 2
    CHANGES = 3


class NotKnown(Exception):
    """A function has read a value that is known only during the traversal."""

    def __init__(self, reference: Reference) -> None:
        super().__init__(reference)
        self.reference = reference


Judge = Callable[[Reference], Knowledge]


def blind(reference: Reference) -> Knowledge:
    """Judge every reference as steady, so that trees are compared and not values."""
    return Knowledge.STEADY


@dataclass(slots=True)
class Forecast:
    """A view of a stack that raises NotKnown for values known only during the traversal."""

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
        """Return the distinct references in a tree of a definition, cached by tree."""
        if not isinstance(tree, dict | list | Function):
            return ()
        entry = self._references.get(id(tree))
        if entry is None:  # keep the tree, so that no other object gets its id
            entry = tree, tuple(dict.fromkeys(base.references(tree, self)))
            self._references[id(tree)] = entry
        return entry[1]

    def live_resource(self, reference: Reference) -> ResourceView:
        """Return the live resource of a reference, or raise NotKnown."""
        if self.judge(reference) is not Knowledge.KNOWN:
            raise NotKnown(reference)
        return self.live[reference.resource]


@dataclass(slots=True, frozen=True)
class Foreseen:
    """A resource as far as the plan knows it."""

    name: str
    forecast: Forecast

    @property
    def ready(self) -> bool:
        return True

    def reference_id(self) -> Any:
        return self.forecast.live_resource(Reference(self.name, None)).reference_id()

    def has_attribute(self, name: str) -> bool:
        return True  # the stack is validated; a wrong name fails when its value is read

    def attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        reference = Reference(self.name, name)
        try:
            return self.forecast.live_resource(reference).attribute(name, path)
        except errors.InvalidTemplateAttribute as exc:
            # A child stack that was updated directly may lack an output until its next update.
            raise NotKnown(reference) from exc

    def attributes(self) -> Mapping[str, Any]:
        return self.forecast.live_resource(Reference(self.name, "")).attributes()


@dataclass(slots=True, frozen=True)
class UnresolvedCall:
    """A call that cannot be resolved yet; equal calls resolve to equal values."""

    call: type[Function]
    args: Any

    def texts(self) -> Iterator[str]:
        """Yield the texts among the arguments, which may name parameters."""
        todo = [self.args]
        while todo:
            tree = todo.pop()
            if isinstance(tree, str):
                yield tree
            elif isinstance(tree, UnresolvedCall):
                todo.append(tree.args)
            elif isinstance(tree, dict | list):
                todo += tree.values() if isinstance(tree, dict) else tree


def settled(tree: Any, view: Forecast) -> Any:
    """Resolve the calls in ``tree`` whose values are known; replace others by UnresolvedCalls."""
    if isinstance(tree, Function):
        try:
            return base.resolve(tree, view)
        except NotKnown:
            return UnresolvedCall(type(tree), settled(tree.args, view))
    if isinstance(tree, dict):
        return {key: settled(value, view) for key, value in tree.items()}
    if isinstance(tree, list):
        return [settled(value, view) for value in tree]
    return tree


def unresolved_calls(tree: Any) -> Iterator[UnresolvedCall]:
    """Yield the unresolved calls in a settled ``tree``."""
    todo = [tree]
    while todo:
        part = todo.pop()
        if isinstance(part, UnresolvedCall):
            yield part
        elif isinstance(part, dict | list):
            todo += part.values() if isinstance(part, dict) else part
