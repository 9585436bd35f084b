"""A change of power, on request or as a step of another flow.

It ends the session of the node's agent: the next agent gets a new token.
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
    """Run one attempt to bring the node to ``target``; skip the order where it is there already.

    Raises PowerStateFailure for a node that may not be switched off, and the driver's errors.
    """
    node, power = task.node, task.driver.power
    verbs.refuse_power_off(node, target)
    end_state = Power.ON if target in states.ENDS_ON else Power.OFF
    if target not in _REBOOTS and task.turn == 0 and power.get_power_state(task) == end_state:
        node.power_state = end_state
        return DONE
    if not task.turn:  # later attempts must not end the session of the new agent
        task.log("power: %s", target)
        if not power.only_restarts:
            task.forget_agent(may_boot_again=True)
    changed_at = rows.now().replace(tzinfo=None)  # Ironic's format: UTC without an offset
    node.driver_internal_info["last_power_state_change"] = changed_at.isoformat()
    if target == Power.REBOOT:
        return power.reboot(task, timeout_s) or DONE
    return power.set_power_state(task, target, timeout_s) or DONE
