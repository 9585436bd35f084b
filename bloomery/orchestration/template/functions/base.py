"""The base of all functions of templates, and the traversal of trees with calls.

A document becomes a *tree* (see parser.py): its maps, lists and scalars, in which a ``Function``
replaces each map that is a call.  A function is built once and holds no data of a stack: its
methods take a ``StackView``, so that one tree serves validation, plan and engine::

    tree = parser.parse({"list_join": [",", [{"get_param": "a"}, "b"]]})
    references(tree, view)  # which resources it needs
    validate(tree, view)  # what can be refused before anything exists
    resolve(tree, view)  # "x,b"

An error is raised without a path; the traversal of each container puts the key before it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, ClassVar, Final, NamedTuple

from bloomery import errors
from bloomery.orchestration.template.functions import shapes
from bloomery.orchestration.template.view import StackView


class Absence(enum.Enum):
    """The result of a false ``if`` with two arguments: the container drops its key or index."""

    ABSENT = "absent"


ABSENT: Final = Absence.ABSENT


class Reference(NamedTuple):
    """A resource that a tree needs; ``attribute`` is None for its id, "" for all attributes."""

    resource: str
    attribute: str | None


class Function:
    """A function call.  ``args`` is a tree: literals, and calls not yet resolved.

    A subclass refuses a wrong shape in ``check`` as far as literals show it, and again in
    ``resolve``, where calls among the arguments have become values.  Both raise
    StackValidationFailed without a path.
    """

    __slots__ = ("args", "name")
    summary: ClassVar[str] = ""  # one line for ``template_versions/{version}/functions``

    def __init__(self, name: str, args: Any) -> None:
        self.name = name
        self.args = args
        self.check()

    def check(self) -> None:
        """Refuse arguments whose literal shape is wrong."""

    def validate(self, view: StackView) -> None:
        """Refuse errors that are visible before the stack exists; values may still be missing."""
        validate(self.args, view)

    def resolve(self, view: StackView) -> Any:
        raise NotImplementedError

    def references(self, view: StackView) -> Iterator[Reference]:
        """Yield each resource whose id or attribute the call will ask for."""
        yield from references(self.args, view)

    def fault(self, reason: str) -> errors.StackValidationFailed:
        return errors.StackValidationFailed(reason=reason)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and (self.name, self.args) == (other.name, other.args)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{{{self.name}: {self.args!r}}}"


def resolve(tree: Any, view: StackView) -> Any:
    """Return ``tree`` with every call replaced by its value.

    The values of all calls in one map or list, together, keep to the limits of one function,
    because thousands of small calls may name the same large parameter.
    """
    if isinstance(tree, Function):
        return _resolve_call(tree, view)
    return _Resolving(view).value(tree) if isinstance(tree, dict | list) else tree


def _resolve_call(call: Function, view: StackView) -> Any:
    view.tick()
    try:
        return call.resolve(view)
    except errors.Misplaced as exc:
        raise exc.under(call.name) from exc
    except RecursionError as exc:  # a deep place in the template, and a deep value in it
        raise call.fault("its arguments are nested too deep; flatten them") from exc


class _Resolving:
    """Resolves maps and lists, and measures the values of all calls in them."""

    __slots__ = ("chars", "nodes", "view")

    def __init__(self, view: StackView) -> None:
        self.view = view
        self.nodes = self.chars = 0

    def value(self, tree: dict[Any, Any] | list[Any]) -> Any:
        if isinstance(tree, dict):
            return {key: self._at(key, value) for key, value in tree.items()}
        return [self._at(index, value) for index, value in enumerate(tree)]

    def _at(self, key: str | int, tree: Any) -> Any:
        if not isinstance(tree, dict | list | Function):
            return tree
        try:
            if not isinstance(tree, Function):
                return self.value(tree)
            value = _resolve_call(tree, self.view)
            if isinstance(value, dict | list | str):
                nodes, chars = shapes.size(value, self.view.limits)
                self.nodes, self.chars = self.nodes + nodes, self.chars + chars
                shapes.bound_nodes(self.nodes, self.view.limits)
                shapes.bound_chars(self.chars, self.view.limits)
        except errors.Misplaced as exc:
            raise exc.under(key) from exc
        return value


def validate(tree: Any, view: StackView) -> None:
    """Validate every call in ``tree``, before the stack exists."""
    if isinstance(tree, Function):
        try:
            tree.validate(view)
        except errors.Misplaced as exc:
            raise exc.under(tree.name) from exc
        return
    if not isinstance(tree, dict | list):
        return
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        if isinstance(value, dict | list | Function):
            try:
                validate(value, view)
            except errors.Misplaced as exc:
                raise exc.under(key) from exc


def references(tree: Any, view: StackView) -> Iterator[Reference]:
    """Yield the references of every call in ``tree``; references may repeat."""
    waiting = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Function):
            yield from value.references(view)
        elif isinstance(value, dict):
            waiting += reversed(value.values())  # the order of the template is kept
        elif isinstance(value, list):
            waiting += reversed(value)


class Call(Function):
    """A call whose arguments are plain values by the time it runs: most functions."""

    __slots__ = ()

    def resolve(self, view: StackView) -> Any:
        return self.result(self.values(view), view)

    def result(self, args: Any, view: StackView) -> Any:
        """Return the value of the call; ``args`` holds no calls, and no more than limits allow."""
        raise NotImplementedError

    def values(self, view: StackView) -> Any:
        if isinstance(self.args, str):
            return self.args
        args = resolve(self.args, view)
        if isinstance(self.args, Function):  # else ``resolve`` has measured the calls
            shapes.size(args, view.limits)
        return None if args is ABSENT else args


class TreeReader:
    """Reads trees against a view for ``properties.values``, which knows no functions."""

    __slots__ = ("view",)

    def __init__(self, view: StackView) -> None:
        self.view = view

    def resolve(self, tree: Any) -> Any:
        return resolve(tree, self.view)

    def settled(self, tree: Any) -> bool:
        """Return whether all resources that ``tree`` refers to are ready."""
        resource = self.view.resource
        return all(resource(reference.resource).ready for reference in references(tree, self.view))
