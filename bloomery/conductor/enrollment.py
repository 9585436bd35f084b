"""A node comes under management: verify its BMC, inspect what it is made of, adopt its instance."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from bloomery import errors
from bloomery.conductor import cleanup, console, notification_utils, steps
from bloomery.conductor.runner import FlowFailure, Phase, Transition
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.writes import DeferredWrite
from bloomery.drivers.base import DriverTask
from bloomery.model.provision import ProvisionArguments
from bloomery.model.step import Run, Step, internal_step
from bloomery.outcome import Done, Outcome

LOG = logging.getLogger(__name__)
T = TypeVar("T")

_CHECK_POWER: Final = internal_step("power", "check_power")
_INSPECT: Final = internal_step("inspect", "inspect_hardware")
_TAKE_OVER: Final = internal_step("deploy", "adopt")


# ------------------------------------------------------------------------------------- verify


def verify_steps(task: TaskManager, arguments: ProvisionArguments) -> list[Step] | None:
    """Return the power check and the verify steps; None: a node past ``enroll`` just moves."""
    if task.node.provision_state != State.ENROLL:
        return None
    overrides = task.runtime.conf.conductor.verify_step_priority_override
    available = steps.override(steps.available_steps(task, "verify"), overrides)
    return [_CHECK_POWER, *steps.by_priority(available, "verify")]


def _check_power(task: TaskManager) -> Outcome:
    """See whether there is a BMC, and whether it lets us in; read what it tells by the way."""
    task.driver.power.validate(task)
    node, power_state = task.node, task.driver.power.get_power_state(task)
    _read_properties(task)
    result = _read_bios_and_firmware(task)
    if node.power_state != power_state:
        result["from_power"], node.power_state = node.power_state, power_state
    return Done(result=result)


def _read_bios_and_firmware(task: TaskManager) -> dict[str, Any]:
    """Return the BIOS settings and firmware versions that the BMC tells, to be stored."""
    result: dict[str, Any] = {}
    for read in (
        task.driver.bios.cache_bios_settings,
        task.driver.firmware.cache_firmware_components,
    ):
        outcome = _read_if_supported(task, read)
        result |= outcome.result if isinstance(outcome, Done) else {}
    return result


def _read_properties(task: TaskManager) -> None:
    """Note what the BMC tells of vendor and boot mode; one that does not tell is no failure."""
    node, management = task.node, task.driver.management
    vendor = _read_if_supported(task, management.detect_vendor)
    if vendor is not None:
        node.properties = node.properties | {"vendor": vendor}
    node.boot_mode = _read_if_supported(task, management.get_boot_mode) or node.boot_mode
    secure_boot = _read_if_supported(task, management.get_secure_boot_state)
    node.secure_boot = node.secure_boot if secure_boot is None else secure_boot


def _read_if_supported(task: TaskManager, read: Callable[[DriverTask], T]) -> T | None:
    try:
        return read(task)
    except errors.UnsupportedDriverExtension:
        return None
    except errors.Failure as exc:
        LOG.warning("node %s: cannot read %s: %s", task.node.uuid, read.__name__, exc)
        return None


def _finish_verify(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    return Transition(event="done", writes=_power_correction(task, result))


def _fail_verify(task: TaskManager, failure: FlowFailure) -> Transition:
    writes = _power_correction(task, failure.result)
    return Transition(event="fail", last_error=failure.sentence, writes=writes)


def _power_correction(task: TaskManager, result: Mapping[str, Any]) -> list[DeferredWrite]:
    """Tell, with the transition, that another power state was read than was recorded."""
    if "from_power" not in result:
        return []
    emit = notification_utils.emit_power_state_corrected_notification
    return [DeferredWrite(lambda: emit(task.context, task.node, result["from_power"]))]


VERIFY: Final = Phase(
    name="verify",
    own_steps={"check_power": _check_power},
    finish=_finish_verify,
    fail=_fail_verify,
    urgent=True,
    tolerant=True,  # Ironic records a failed verify step and still ends manageable
)


# ------------------------------------------------------------------------------------ inspect


def check_inspect(task: TaskManager, arguments: ProvisionArguments) -> None:
    """Raise unless the node's driver could inspect it."""
    task.driver.power.validate(task)
    task.driver.inspect.validate(task)


def begin_inspect(task: TaskManager, arguments: ProvisionArguments) -> None:
    cleanup.wipe_internal_info(task.node)


def inspect_steps(task: TaskManager, arguments: ProvisionArguments) -> list[Step]:
    return [_INSPECT]


def abort_inspect(task: TaskManager) -> None:
    """Take away what waits for the agent's inventory."""
    cleanup.tidy(task, task.driver.inspect.abort)


def _inspect(task: TaskManager) -> Outcome | None:
    return task.driver.inspect.inspect_hardware(task)


def _finish(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    return Transition(event="done")


def _fail_inspect(task: TaskManager, failure: FlowFailure) -> Transition:
    if failure.run.state == Run.WAITING:
        abort_inspect(task)
    cleanup.wipe_internal_info(task.node)
    return Transition(event="fail", last_error=failure.sentence)


INSPECT: Final = Phase(
    name="inspect", own_steps={"inspect_hardware": _inspect}, finish=_finish, fail=_fail_inspect
)


# -------------------------------------------------------------------------------------- adopt


def adopt_steps(task: TaskManager, arguments: ProvisionArguments) -> list[Step]:
    return [_TAKE_OVER]


def _adopt(task: TaskManager) -> None:
    """Take over a machine that runs its user's system already, without touching it."""
    driver, node = task.driver, task.node
    driver.power.validate(task)
    driver.boot.validate(task)
    driver.deploy.take_over(task)
    if node.console_enabled:
        console.restore(task)
    node.power_state = driver.power.get_power_state(task) or node.power_state
    node.conductor_affinity = task.runtime.host


def _fail_adopt(task: TaskManager, failure: FlowFailure) -> Transition:
    task.node.power_state = None
    return Transition(event="fail", last_error=failure.sentence)


ADOPT: Final = Phase(name="adopt", own_steps={"adopt": _adopt}, finish=_finish, fail=_fail_adopt)
