"""A definition joined with the kinds of its resources: the graph, and the whole validation.

    stack = Stack(definition)
    validate(stack)  # as create, update and preview do it
    validate(stack, ValidationLevel.SHAPE)  # as POST validate does
    list(stack.graph)  # the names of the resources, what is required first

stacks       the stack: kinds, dependencies, values for plans, variants
nesting      nested stacks: their templates, their depth, the number of all resources
children     previews of the stacks that composite resources own
template_side  the interface of a stack to plans and secrecy
secrecy      the secret values, and their masks
validation   every check, in the order in which Heat finds faults
"""

from __future__ import annotations

from bloomery.orchestration.stack.stacks import Stack, ValidationLevel
from bloomery.orchestration.stack.validation import list_faults, validate

__all__ = ["Stack", "ValidationLevel", "list_faults", "validate"]
