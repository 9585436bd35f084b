"""Do several things in one step, over as many turns as they take.

    return stages.in_order(held, "ramdisk_deploy", off, boot, on)

Where it stands is remembered on the node.  A part during which the BMC was silent is done once
more when the same turn is taken again; in turn 0 all parts are, as what is remembered then may be
of another run of the step.  Each must land in the same place when it is done again.
"""

from __future__ import annotations

from collections.abc import Callable

from bloomery import errors
from bloomery.drivers.base import DriverTask
from bloomery.outcome import DONE, Done, Outcome

Part = Callable[[], Outcome | None]


def run_in_order(task: DriverTask, name: str, *parts: Part) -> Outcome:
    """Do the parts one after another; what one says other than Done is handed on."""
    memory = task.node.driver_internal_info
    at = memory.pop(name, 0) if task.turn else 0
    memory.pop(name, None)
    for position, part in enumerate(parts[at:], start=at):
        try:
            said = part() or DONE
        except errors.BmcUnreachable:
            memory[name] = position
            raise
        if not isinstance(said, Done):
            memory[name] = position
            return said
    return DONE
