"""Variants of a stack: with fewer resources, another template, or parameters without values."""

from __future__ import annotations

from collections.abc import Collection

from bloomery.orchestration.stack.stacks import Stack, ValidationLevel
from bloomery.orchestration.template.definition import Definition
from bloomery.orchestration.template.dialect import Template


def relaxed(stack: Stack) -> Stack:
    """Return the same stack, with parameters that may lack values."""
    if stack.definition.lenient:
        return stack
    return _with(stack, stack.definition.relaxed())


def only(stack: Stack, names: Collection[str]) -> Stack:
    """Return the same stack with no other resources than ``names``."""
    return _with(stack, stack.definition.only(names), stack.validated)


def amended(stack: Stack, template: Template, part: Stack) -> Stack:
    """Return the same stack with another template, which differs in the resources of ``part``.

    Nothing else is parsed or validated again.
    """
    definition = stack.definition.amended(template, part.definition)
    return _with(stack, definition, stack.validated)


def _with(
    stack: Stack, definition: Definition, validated: Collection[ValidationLevel] = ()
) -> Stack:
    variant = Stack(
        definition,
        tree=stack.tree,
        depth=stack.depth,
        timeout_s=stack.timeout_s,
        is_counted=stack.is_counted,
    )
    variant.validated.update(validated)
    return variant
