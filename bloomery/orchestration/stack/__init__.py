"""A definition joined with the kinds of its resources: the graph, and the whole validation.

    stack = Stack(definition)
    validate(stack)  # as create, update and preview do it
    validate(stack, ValidationLevel.SHAPE)  # as POST validate does
    list(stack.graph)  # the names of the resources, what is required first

stacks       the stack: kinds, dependencies, what a plan asks of it
variants     a stack with fewer resources, another template, or missing values
nesting      stacks below stacks: their templates, how deep, how many resources in all
children     the stack that a composite resource stands for
secrecy      which values are secret, and what readers see in their place
validation   every check, in the order in which Heat finds faults
"""

from __future__ import annotations

from bloomery.orchestration.stack.stacks import Stack, ValidationLevel
from bloomery.orchestration.stack.validation import validate

__all__ = ["Stack", "ValidationLevel", "validate"]
