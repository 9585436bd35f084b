"""Verify: see whether there is a BMC behind the node, and whether it lets us in."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, TypeVar

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import notification_utils, step_lists
from bloomery.conductor.runner import Phase, Transition
from bloomery.conductor.task_manager import TaskManager, Write
from bloomery.drivers.base import DriverTask
from bloomery.model.step import Step, StepRun, internal_step
from bloomery.outcome import Done, Outcome

LOG = logging.getLogger(__name__)
T = TypeVar("T")

_CHECK_POWER: Final = internal_step("power", "check_power")


def steps(task: TaskManager) -> list[Step]:
    """Return the power check, then the verify steps of the interfaces."""
    overrides = task.runtime.conf.conductor.verify_step_priority_override
    found = step_lists.override(step_lists.available_steps(task, "verify"), overrides)
    return [_CHECK_POWER, *step_lists.by_priority(found, "verify")]


def _check_power(task: TaskManager) -> Outcome:
    task.driver.power.validate(task)
    was, task.node.power_state = task.node.power_state, task.driver.power.get_power_state(task)
    if task.node.power_state != was:
        task.notes["from_power"] = was
    _note_facts(task)
    return Done(result=_cached(task))


def _cached(task: TaskManager) -> dict[str, Any]:
    """Return the BIOS settings and firmware versions that the BMC tells, to be stored."""
    found: dict[str, Any] = {}
    for read in (
        task.driver.bios.cache_bios_settings,
        task.driver.firmware.cache_firmware_components,
    ):
        said = _asked(task, read)
        found |= said.result if isinstance(said, Done) else {}
    return found


def _note_facts(task: TaskManager) -> None:
    """Note what the BMC tells of vendor and boot mode; one that does not tell is no failure."""
    node, management = task.node, task.driver.management
    vendor = _asked(task, management.detect_vendor)
    if vendor is not None:
        node.properties = node.properties | {"vendor": vendor}
    node.boot_mode = _asked(task, management.get_boot_mode) or node.boot_mode
    secure_boot = _asked(task, management.get_secure_boot_state)
    node.secure_boot = node.secure_boot if secure_boot is None else secure_boot


def _asked(task: TaskManager, read: Callable[[DriverTask], T]) -> T | None:
    try:
        return read(task)
    except errors.UnsupportedDriverExtension:
        return None
    except errors.Failure as exc:
        LOG.warning("node %s: %s", task.node.uuid, exc)
        return None


def _finish(task: TaskManager) -> Transition:
    return Transition(event="done", writes=_corrected(task))


def _fail(task: TaskManager, run: StepRun, sentence: str) -> Transition:
    return Transition(event="fail", last_error=sentence, writes=_corrected(task))


def _corrected(task: TaskManager) -> list[Write]:
    """Tell, after the move, that another power state was found than was recorded."""
    if "from_power" not in task.notes:
        return []
    was = task.notes.pop("from_power")

    def write(conn: sa.Connection) -> None:  # made when the node shows where it has moved
        notification_utils.emit_power_state_corrected_notification(task, was)(conn)

    return [write]


PHASE: Final = Phase(
    name="verify",
    own_steps={"check_power": _check_power},
    finish=_finish,
    fail=_fail,
    urgent=True,
    tolerant=True,  # Ironic records a failed verify step and still ends manageable
)
