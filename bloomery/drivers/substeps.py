"""Do several things in one step, over as many turns as they take.

    return substeps.run_in_order(task, "ramdisk_deploy", off, boot, on)

The position is kept in ``driver_internal_info``.  A substep during which the BMC was silent is
repeated when the same turn is taken again; turn 0 begins with the first one, as the position may
be left from another run of the step.  Each must be idempotent.
"""

from __future__ import annotations

from collections.abc import Callable

from bloomery import errors
from bloomery.drivers.base import DriverTask
from bloomery.outcome import DONE, Done, Outcome

Substep = Callable[[], Outcome | None]


def run_in_order(task: DriverTask, name: str, *substeps: Substep) -> Outcome:
    """Run the substeps one after another; an outcome other than Done is handed on."""
    memory = task.node.driver_internal_info
    at = memory.pop(name, 0) if task.turn else 0
    memory.pop(name, None)
    for position, substep in enumerate(substeps[at:], start=at):
        try:
            outcome = substep() or DONE
        except errors.BmcUnreachable:
            memory[name] = position
            raise
        if not isinstance(outcome, Done):
            memory[name] = position
            return outcome
    return DONE
