"""Several actions in one step, over several attempts.

    return substeps.run_in_order(task, "ramdisk_deploy", off, boot, on)

``driver_internal_info`` stores the position under its name.  After silence of the BMC the substep
is repeated; turn 0 begins with the first one, as the position may be from another run.  Each
substep must be idempotent.  A flow begins without positions, so a substep with substeps of its own
begins after turn 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bloomery import errors
from bloomery.drivers.base import DriverTask
from bloomery.outcome import DONE, Done, Outcome

Substep = Callable[[], Outcome | None]

POSITIONS: Final = "substeps"  # in driver_internal_info: {name: position}


def run_in_order(task: DriverTask, name: str, *substeps: Substep) -> Outcome:
    """Run the substeps one after another; return the first outcome other than Done."""
    left_at = forget(task, name)
    at = left_at if task.turn else 0
    for position, substep in enumerate(substeps[at:], start=at):
        try:
            outcome = substep() or DONE
        except errors.BmcUnreachable:
            _remember(task, name, position)
            raise
        if not isinstance(outcome, Done):
            _remember(task, name, position)
            return outcome
    return DONE


def forget(task: DriverTask, name: str) -> int:
    """Reset ``name`` to its first substep; return the old position."""
    info = task.node.driver_internal_info
    positions = dict(info.pop(POSITIONS, {}))
    position: int = positions.pop(name, 0)
    if positions:
        info[POSITIONS] = positions
    return position


def _remember(task: DriverTask, name: str, position: int) -> None:
    info = task.node.driver_internal_info
    info[POSITIONS] = info.get(POSITIONS, {}) | {name: position}
