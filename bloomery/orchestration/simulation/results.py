"""The results of a simulation, for people and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bloomery.model.stacks import StoredResource
from bloomery.orchestration.resources.states import Action, Status, error_type
from bloomery.orchestration.template.redaction import Redaction

_OPEN: Final = Redaction()  # nothing is hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change of a resource or, if ``type`` is ``states.STACK_TYPE``, of its stack."""

    at_s: float  # on the clock of the simulation
    stack: str
    stack_id: str
    depth: int  # of the stack below the root
    resource: str  # its name, or that of the stack
    type: str
    physical_id: str | None
    action: Action
    status: Status
    reason: str

    @property
    def state(self) -> str:
        return f"{self.action}_{self.status}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """``type``: as Heat's API calls it."""

    type: str
    message: str

    def document(self) -> dict[str, str]:
        return {"type": self.type, "message": self.message}


def error_of(exc: BaseException, redaction: Redaction = _OPEN) -> Error:
    return Error(type=error_type(exc), message=redaction.masked(str(exc)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The value of an output, or the error in its place."""

    description: str = ""
    value: Any = None
    error: Error | None = None

    def document(self) -> dict[str, Any]:
        return {"value": self.value} if self.error is None else {"error": self.error.document()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """``status`` is None when nothing was begun, because the template was refused.

    ``resources``: of the root stack, as they are at the end.
    """

    status: str | None
    reason: str = ""
    error: Error | None = None
    outputs: Mapping[str, Output] = field(default_factory=dict)
    events: Sequence[Event] = ()
    resources: Sequence[StoredResource] = ()

    def document(self) -> dict[str, Any]:
        """Return the result as JSON for programs (``bloomery template run --json``)."""
        return {
            "status": self.status,
            "outputs": {name: output.document() for name, output in self.outputs.items()},
            "error": None if self.error is None else self.error.document(),
        }
