"""What a step may return: the grammar that drivers, the runner and stacks all speak.

``Done`` goes on, ``Again`` asks for another turn, ``WaitForCall`` parks until somebody
calls, ``Hold`` parks until an operator says so.  Failures are raised.  Each ``reason``
is shown to the user.  ``FlowOutcome`` is what all steps of a flow have come to.

``source`` is the UUID of the object whose events count as the call.  A step of a driver leaves it
out: the agent of its node calls.  A resource of a stack may leave out the reason where it gives a
source: then the state of the source is the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The step is finished; ``result`` holds findings that the runner stores."""

    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Call the same step again in ``after_s`` seconds; the lock stays, no thread does."""

    after_s: float
    reason: str
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForCall:
    """Park in the wait state of the flow until a call comes, or ``timeout_s`` passes (0: none).

    ``then`` says what the call continues with: the same step once more, or the next one.
    """

    reason: str
    timeout_s: float = 0
    then: Literal["same", "next"] = "next"
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Park in the hold state of the flow until an operator unholds or aborts."""

    reason: str


Outcome: TypeAlias = Done | Again | WaitForCall | Hold

DONE = Done()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowOutcome:
    """How a flow goes, or went; neither open nor an error: all its steps are done.

    ``is_aborted``: somebody asked for its end.
    """

    request_id: str | None
    is_open: bool
    error: str | None
    is_aborted: bool
