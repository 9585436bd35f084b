"""A definition joined with the kinds of its resources: the graph, and the whole validation.

    found = Stack(definition)
    found.validate()  # as create, update and preview do it; strict=False: as POST validate does
    list(found.graph)  # the names of the resources, what is required first

stacks       the stack: kinds, dependencies, what a plan asks of it
validation   every check, in the order in which Heat finds faults
nesting      stacks below stacks: their templates, how deep, how many resources in all
children     the stack that a composite resource stands for
names        what a stack may be called
"""

from __future__ import annotations

from bloomery.orchestration.stack.names import check_name
from bloomery.orchestration.stack.stacks import Stack
from bloomery.orchestration.stack.validation import ValidationLevel

__all__ = ["Stack", "ValidationLevel", "check_name"]
