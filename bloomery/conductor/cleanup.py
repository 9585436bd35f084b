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


def call_operator(task: TaskManager, run: StepRun, fault: str, sentence: str) -> None:
    """Put a node into maintenance whose step broke in the middle; others stay as they are.

    An internal step leaves nothing half done; one that was aborted came to its end.
    """
    if run.step.internal or task.notes.get("aborted"):
        return
    node = task.node
    node.fault, node.maintenance = fault, True
    node.maintenance_reason = node.maintenance_reason or sentence


def power_off(task: TaskManager) -> str | None:
    """Ask once for power off, unless the node may not be switched off; nobody waits for it."""
    if task.node.disable_power_off:
        return None
    return tidy(task, lambda task: task.driver.power.set_power_state(task, Power.OFF))
