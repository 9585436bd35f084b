"""What happens in a simulation, told as Heat tells it in its list of events."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.orchestration.engine.events import STACK_TYPE
from bloomery.orchestration.resources.states import Action, Status

__all__ = ["STACK_TYPE", "Event"]


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
