"""Taking things away after a failure: as well as it goes, without hiding the first failure."""

from __future__ import annotations

import logging
from collections.abc import Callable

from bloomery import errors, secrets
from bloomery.conductor.states import Power
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.step import StepRun

LOG = logging.getLogger(__name__)


def tidy(task: TaskManager, call: Callable[[TaskManager], object]) -> str | None:
    """Call a driver's clean-up; return what went wrong, if something did.  Raises LockLost."""
    try:
        call(task)
    except errors.LockLost:
        raise
    except Exception as exc:  # noqa: BLE001  drivers may raise anything; the flow fails anyway
        LOG.warning("node %s: cannot tidy up: %s", task.node.uuid, secrets.brief(exc))
        return secrets.brief(exc)
    return None


def needs_operator(task: TaskManager, run: StepRun) -> bool:
    """A step of an interface broke in the middle; one that was aborted had come to its end."""
    return not run.step.inner and not task.notes.get("aborted")


def power_off(task: TaskManager) -> str | None:
    """Ask once for power off, unless the node may not be switched off; nobody waits for it."""
    if task.node.disable_power_off:
        return None
    return tidy(task, lambda held: held.driver.power.set_power_state(held, Power.OFF))
