"""Actions, statuses and reasons of resources and stacks, as Heat's API has them.

Clients split failure texts at their colons.  The failure of a child stack chains through its
parents::

    str(states.fault_of("a", ValueError("it broke")))  # ValueError: resources.a: it broke
    str(states.child_fault("n", "Resource CREATE failed: ValueError: resources.a: it broke"))
    # ValueError: resources.n.resources.a: it broke
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bloomery.model.stacks import STACK_TYPE, Action, Status

__all__ = ["STACK_TYPE", "Action", "Status"]  # defined in model.stacks, beside the stored rows

CHANGED: Final = "state changed"
CANCELLED_BY_USER: Final = "user triggered cancel"
STACK_PREFIX: Final = re.compile(r"\AResource [A-Z]+ failed: ")
CHAINED: Final = re.compile(
    r"\A(?:(?P<error>\w+): )?(?P<path>resources\.[^:]+): (?P<message>.*)\Z", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Fault:
    error: str  # the class that was raised; empty where only a text is known
    path: str  # from the stack that the text describes
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.error, self.path, self.message) if part)


class ChildFailed(Exception):
    """The child stack of a composite resource ended in FAILED; the argument is its reason."""


def started(action: Action) -> str:
    return f"Stack {action} started"


def cancelled(action: Action) -> str:
    return f"Stack {action} cancelled"


def failed(action: Action, fault: object) -> str:
    return f"Resource {action} failed: {fault}"


def replacement(name: str) -> str:
    return f"The Resource {name} requires replacement."


def hook_cleared(hook: str) -> str:
    return f"Hook {hook} is cleared"


def fault_of(resource: str, exc: BaseException) -> Fault:
    if isinstance(exc, ChildFailed):
        return child_fault(resource, str(exc))
    return Fault(error_type(exc), f"resources.{resource}", str(exc))


def child_fault(resource: str, reason: str) -> Fault:
    text = STACK_PREFIX.sub("", reason)
    if chained := CHAINED.match(text):
        return Fault(
            chained["error"] or "", f"resources.{resource}.{chained['path']}", chained["message"]
        )
    return Fault("", f"resources.{resource}", text)


def error_type(exc: BaseException) -> str:
    return getattr(exc, "wire_type", None) or type(exc).__name__
