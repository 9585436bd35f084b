"""A stack as boxes and arrows: each resource a box, each stack below a box with boxes inside."""

from __future__ import annotations

from bloomery import errors
from bloomery.orchestration.drawing import Box, Picture
from bloomery.orchestration.resources import composite
from bloomery.orchestration.stack import Stack, children


def picture(stack: Stack) -> Picture:
    """Draw ``stack`` as its template says; nothing needs to exist."""
    edges: list[tuple[str, str]] = []
    boxes = _boxes(stack, "", edges)
    return Picture(title=stack.definition.identity.name, boxes=boxes, edges=edges)


def _boxes(stack: Stack, above: str, edges: list[tuple[str, str]]) -> list[Box]:
    edges.extend(
        (f"{above}{requirer}", f"{above}{required}")
        for requirer in stack.order
        for required in sorted(stack.graph.requires(requirer))
    )
    return [_box(stack, name, f"{above}{name}", edges) for name in stack.order]


def _box(stack: Stack, name: str, key: str, edges: list[tuple[str, str]]) -> Box:
    child = _child(stack, name)
    inside = None if child is None else _boxes(child, f"{key}/", edges)
    return Box(key=key, name=name, kind=stack.definitions[name].type, inside=inside)


def _child(stack: Stack, name: str) -> Stack | None:
    """The stack below a resource; None if it has none, or one that depends on values to come."""
    if not issubclass(stack.kind(name), composite.Composite):
        return None
    try:
        made = children.preview(stack, name, stack.properties(name, stack.view), {})
        assert isinstance(made, composite.Composite)
        return children.child_stack(stack, made)
    except errors.Failure:
        return None
