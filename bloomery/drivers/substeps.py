"""Do several things in one step, over as many turns as they take.

    return substeps.run_in_order(task, "ramdisk_deploy", off, boot, on)

The position is kept by its name in ``driver_internal_info``.  A substep during which the BMC was
silent is repeated when the same turn is taken again; turn 0 begins with the first one, as the
position may be left from another run of the step.  Each must be idempotent.  A flow begins
without any positions: a substep that has substeps of its own begins after turn 0.
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
    """Run the substeps one after another; an outcome other than Done is handed on."""
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
    """Let ``name`` begin with its first substep again; return where it stood."""
    info = task.node.driver_internal_info
    positions = dict(info.pop(POSITIONS, {}))
    position: int = positions.pop(name, 0)
    if positions:
        info[POSITIONS] = positions
    return position


def _remember(task: DriverTask, name: str, position: int) -> None:
    info = task.node.driver_internal_info
    info[POSITIONS] = info.get(POSITIONS, {}) | {name: position}
