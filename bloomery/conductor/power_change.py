"""A change of power: what every one of them does, on request or as a step of another flow.

The agent of before is forgotten: the one that boots next gets a token of its own.
"""

from __future__ import annotations

from typing import Final

from bloomery.conductor import states
from bloomery.conductor.states import Power
from bloomery.conductor.task_manager import TaskManager
from bloomery.db import rows
from bloomery.model.rules import verbs
from bloomery.outcome import DONE, Outcome

_REBOOTS: Final = (Power.REBOOT, Power.SOFT_REBOOT)


def change(task: TaskManager, target: str, timeout_s: float | None = None) -> Outcome:
    """Take one turn of bringing the node to ``target``; hardware that is there is not asked.

    Raises PowerStateFailure for a node that may not be switched off, and what drivers raise.
    """
    node, power = task.node, task.driver.power
    verbs.refuse_power_off(node, target)
    end_state = Power.ON if target in states.ENDS_ON else Power.OFF
    if target not in _REBOOTS and task.turn == 0 and power.get_power_state(task) == end_state:
        node.power_state = end_state
        return DONE
    if not task.turn:  # an agent that boots while the BMC still works is a new one
        task.log("power: %s", target)
        task.forget_agent(may_boot_again=True)
    changed_at = rows.now().replace(tzinfo=None)  # as Ironic writes it: UTC, and no word of that
    node.driver_internal_info["last_power_state_change"] = changed_at.isoformat()
    if target == Power.REBOOT:
        return power.reboot(task, timeout_s) or DONE
    return power.set_power_state(task, target, timeout_s) or DONE
