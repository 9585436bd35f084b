"""Results of steps, for drivers, the runner and stacks.

``Done`` continues the flow, ``Again`` repeats the step, ``WaitForCall`` waits for a call, ``Hold``
for an operator.  Failures are raised.  Each ``reason`` is shown to the user.  ``FlowOutcome`` is
the result of a whole flow.

``source`` is the UUID of the object whose events count as the call.  A step of a driver leaves it
out: its node's agent calls.  A resource of a stack with a source may leave out the reason: the
state of the source is then the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The step is finished; the runner stores ``result``."""

    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Repeat the step in ``after_s`` seconds; the lock is kept, the thread is freed.

    ``emits``: of a resource: a new reason is an event of its stack.
    """

    after_s: float
    reason: str
    source: str = ""
    emits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForCall:
    """Wait in the flow's wait state for a call, at most ``timeout_s`` (0: no limit).

    ``then``: the call repeats the step, or continues with the next one.
    """

    reason: str
    timeout_s: float = 0
    then: Literal["same", "next"] = "next"
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Wait in the flow's hold state until an operator unholds or aborts."""

    reason: str


Outcome: TypeAlias = Done | Again | WaitForCall | Hold

DONE = Done()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowOutcome:
    """The state of a flow; neither open nor failed: all its steps are done.

    ``is_aborted``: an operator or a request aborted it.
    """

    request_id: str | None
    is_open: bool
    error: str | None
    is_aborted: bool
