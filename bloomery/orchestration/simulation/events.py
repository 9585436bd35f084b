"""What happens in a simulation, told as Heat tells it in its list of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bloomery.orchestration.resources.states import Action, Status

STACK_TYPE: Final = "OS::Heat::Stack"
CHANGED: Final = "state changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change of a resource or, where ``type`` is STACK_TYPE, of its stack."""

    at_s: float  # on the clock of the simulation
    stack: str
    stack_id: str
    depth: int  # of the stack below the root
    resource: str  # of its stack: the name of the stack
    type: str
    physical_id: str | None
    action: Action
    status: Status
    reason: str

    @property
    def state(self) -> str:
        return f"{self.action}_{self.status}"


def started(action: Action) -> str:
    return f"Stack {action} started"


def completed(action: Action) -> str:
    return f"Stack {action} completed successfully"


def failed(action: Action, fault: object) -> str:
    return f"Resource {action} failed: {fault}"


def cancelled(action: Action) -> str:
    return f"Stack {action} cancelled"


def replacement(name: str) -> str:
    return f"The Resource {name} requires replacement."


def paused(action: Action, hook: str) -> str:
    return f"{action} paused until Hook {hook} is cleared"


def cleared(hook: str) -> str:
    return f"Hook {hook} is cleared"


TIMED_OUT: Final = "Timed out"
CANCELLED_BY_USER: Final = "user triggered cancel"
