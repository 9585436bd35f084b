"""A step of a flow, as planned and as it went: one row of ``step_runs``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final


class Run(StrEnum):
    """Life of a step run: planned -> running -> done, failed, or parked in between."""

    PLANNED = "planned"
    RUNNING = "running"
    AGAIN = "again"  # waits for its turn; the lock stays
    WAITING = "waiting"  # parked until a call comes
    HELD = "held"  # parked until an operator unholds
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  # its flow ended before its turn


ABORTED: Final = "aborted on request"  # in the error of the step at which a flow was aborted
OPEN_RUNS = (Run.RUNNING, Run.AGAIN, Run.WAITING, Run.HELD, Run.PLANNED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of an interface, with a user's arguments.

    ``resumable``: the next conductor of the node may repeat an interrupted run.
    ``internal`` steps are the conductor's own, around those of the interfaces (prepare, tear down);
    no API shows them.  ``keeps_disks``: no disk is written; False also where nobody has said so.
    ``child``: the node below the flow's own that the step is run on.
    """

    interface: str
    step: str
    args: dict[str, Any] = field(default_factory=dict)
    priority: int = 0
    abortable: bool = False
    requires_ramdisk: bool = True
    argsinfo: dict[str, Any] | None = None
    resumable: bool = False
    keeps_disks: bool = False
    internal: bool = False
    child: str | None = None

    @property
    def name(self) -> str:
        return f"{self.interface}.{self.step}"

    @property
    def is_own(self) -> bool:
        """Whether an interface of the node itself runs it."""
        return not self.internal and self.child is None

    def shown(self) -> dict[str, Any]:
        """Return the dictionary that clean_step, deploy_step and service_step show."""
        document: dict[str, Any] = {
            "interface": self.interface,
            "step": self.step,
            "abortable": self.abortable,
            "priority": self.priority,
        }
        if self.child is not None:
            document |= {
                "execute_on_child_nodes": True, "limit_child_node_execution": [self.child],
            }  # fmt: skip
        return document | ({"args": self.args} if self.args else {})


def internal_step(interface: str, step: str, args: dict[str, Any] | None = None) -> Step:
    """Return a step of the conductor's own; each of them may be repeated after a crash."""
    return Step(interface=interface, step=step, args=args or {}, internal=True, resumable=True)


@dataclass(slots=True, kw_only=True)
class StepRun:
    """One row of ``step_runs``; ``flow`` groups the rows of one flow in order of ``position``."""

    flow: str
    node_uuid: str
    phase: str
    position: int
    step: Step
    state: str = Run.PLANNED
    id: int = 0
    conductor: str | None = None
    lock_generation: int = 0
    request_id: str | None = None
    reason: str | None = None
    error: str | None = None
    resume_then: str | None = None
    recovery_weight: int = 0  # what its interruptions count (recovery.CRASH, recovery.DEATH)
    due_at: datetime | None = None
    deadline_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


def find_parked(runs: Iterable[StepRun]) -> StepRun | None:
    """Return the step whose flow waits or is held: no worker runs it meanwhile."""
    return next((run for run in runs if run.state in (Run.WAITING, Run.HELD)), None)
