"""Steps that the conductor itself knows, by the same name on every interface.

They may stand in any list that a user gives: power_on, power_off, reboot, hold and wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bloomery.conductor.states import Power
from bloomery.conductor.task_manager import TaskManager
from bloomery.outcome import DONE, Again, Hold, Outcome, WaitForCall


def _power_on(task: TaskManager) -> Outcome:
    return task.driver.power.set_power_state(task, Power.ON)


def _power_off(task: TaskManager) -> Outcome:
    return task.driver.power.set_power_state(task, Power.OFF)


def _reboot(task: TaskManager) -> Outcome:
    return task.driver.power.reboot(task)


def _hold(task: TaskManager) -> Outcome:
    return Hold(reason="a hold step: unhold the node to go on, or abort")


def _wait(task: TaskManager, seconds: float | None = None) -> Outcome:
    """Wait so many seconds, or for the next call of the agent."""
    if seconds is None:
        return WaitForCall(reason="a wait step: goes on when the agent calls")
    if task.turn:
        return DONE
    limit_s = task.runtime.conf.conductor.max_conductor_wait_step_seconds
    return Again(after_s=min(float(seconds), limit_s), reason=f"a wait step of {seconds} s")


TABLE: Final[dict[str, Callable[..., Outcome]]] = {
    "power_on": _power_on,
    "power_off": _power_off,
    "reboot": _reboot,
    "hold": _hold,
    "wait": _wait,
}
ARGSINFO: Final[dict[str, dict[str, Any]]] = {
    "wait": {"seconds": {"description": "how long; left out: until the agent calls"}},
}
