"""Power, boot mode and secure boot on request: flows of one step, as a machine takes its time.

Such a flow moves no provision state, may be repeated, and says on the node what became of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conductor import cleanup, runner, states, writes
from bloomery.conductor.notification_utils import (
    emit_power_set_notification,
    emit_power_state_corrected_notification,
)
from bloomery.conductor.runner import Flow, FlowFailure, Phase, Transition
from bloomery.conductor.states import Power
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.conductor.writes import EncodedWrite
from bloomery.db import rows
from bloomery.model.rules import verbs
from bloomery.model.step import internal_step
from bloomery.outcome import DONE, Done, Outcome

_REBOOTS: Final = (Power.REBOOT, Power.SOFT_REBOOT)


def _with_result(outcome: Outcome | None, result: Mapping[str, Any]) -> Outcome:
    """Add ``result`` to an outcome that ends the step."""
    outcome = outcome or DONE
    return Done(result={**outcome.result, **result}) if isinstance(outcome, Done) else outcome


def _history(task: TaskManager, text: str, event_type: str) -> EncodedWrite:
    return writes.history_entry(task.context, task.node, text, event_type=event_type, failed=True)


# -------------------------------------------------------------------------------------- power


def start_power(
    task: TaskManager,
    slot: Slot,
    target: str,
    timeout_s: float | None = None,
    *,
    keep_error: bool = False,
) -> None:
    """Let a flow begin that brings the node to power state ``target``; ``check`` it before.

    ``keep_error``: the node's last_error tells of something that is not over.
    """
    task.node.target_power_state = Power.ON if target in states.ENDS_ON else Power.OFF
    task.node.last_error = task.node.last_error if keep_error else None
    if timeout_s is None and target in (Power.SOFT_OFF, Power.SOFT_REBOOT):
        timeout_s = float(task.runtime.conf.conductor.soft_power_off_timeout)
    step = internal_step("power", "change", {"target": target, "timeout_s": timeout_s})
    started = emit_power_set_notification(task.context, task.node, "start", target)
    runner.start(task, slot, POWER, step, _undo_power, started)


def check(task: TaskManager, target: str) -> None:
    """Raise unless the node may be asked for ``target``."""
    node = task.node
    verbs.check_power_target(node, target)
    task.driver.power.validate(task)
    supported = task.driver.power.get_supported_power_states(task)
    if target not in supported:
        raise errors.InvalidParameterValue(
            reason=f"power interface {node.power_interface} of node {node.uuid} does not support "
            f'"{target}": it supports {", ".join(supported)}',
        )


def _change(task: TaskManager, target: str, timeout_s: float | None) -> Outcome:
    """Ask the hardware, unless it is there already."""
    node, power, result = task.node, task.driver.power, {"to_power": target}
    end_state = Power.ON if target in states.ENDS_ON else Power.OFF
    if target not in _REBOOTS and task.turn == 0 and power.get_power_state(task) == end_state:
        node.power_state = end_state
        return Done(result=result)
    cleanup.wipe_agent_at_power_change(node)
    node.driver_internal_info["last_power_state_change"] = rows.now().isoformat()
    if target == Power.REBOOT:
        return _with_result(power.reboot(task, timeout_s), result)
    return _with_result(power.set_power_state(task, target, timeout_s), result)


def _finish_power(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    task.node.target_power_state = None
    ended = emit_power_set_notification(task.context, task.node, "end", result["to_power"])
    return Transition(event=None, writes=[ended])


def _fail_power(task: TaskManager, failure: FlowFailure) -> Transition:
    return Transition(event=None, writes=_give_up(task, failure.run.step.args, failure.sentence))


def _undo_power(exc: Exception, flow: Flow) -> None:
    """No worker came: the node is as it was, and says why."""
    journal = _give_up(flow.task, flow.runs[0].step.args, secrets.brief(exc))
    flow.task.save(flow.cancelled, *journal)


def _give_up(task: TaskManager, args: Mapping[str, Any], sentence: str) -> list[EncodedWrite]:
    task.node.target_power_state, task.node.last_error = None, sentence
    failed = emit_power_set_notification(task.context, task.node, "error", args["target"])
    return [failed, _history(task, sentence, "power")]


def corrected(task: TaskManager, from_power: str | None) -> list[EncodedWrite]:
    """Return the writes that tell that another power state was read than was recorded."""
    return [emit_power_state_corrected_notification(task.context, task.node, from_power)]


POWER: Final = Phase(
    name="power", own_steps={"change": _change}, finish=_finish_power, fail=_fail_power, urgent=True
)


# --------------------------------------------------------------------- boot mode, secure boot

_SETTERS: Final = {"boot_mode": "set_boot_mode", "secure_boot": "set_secure_boot_state"}


def start_boot_setting(task: TaskManager, slot: Slot, field: str, value: Any) -> None:
    """Let a flow begin that brings the node's ``boot_mode`` or ``secure_boot`` to ``value``."""
    step = internal_step("management", "set", {"field": field, "value": value})
    runner.start(task, slot, BOOT_SETTINGS, step, _undo_boot_setting)


def _set(task: TaskManager, field: str, value: Any) -> Outcome:
    if task.turn == 0:
        task.node.last_error = None  # as power does: the history keeps it
        if getattr(task.node, field) == value:
            return DONE
    outcome = getattr(task.driver.management, _SETTERS[field])(task, value)
    return _with_result(outcome, {"node": {field: value}})


def _finish_boot_setting(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    return Transition(event=None)


def _fail_boot_setting(task: TaskManager, failure: FlowFailure) -> Transition:
    task.node.last_error = failure.sentence
    return Transition(event=None, writes=[_history(task, failure.sentence, "boot")])


def _undo_boot_setting(exc: Exception, flow: Flow) -> None:
    """No worker came: nothing was set, and the node says why."""
    flow.task.node.last_error = secrets.brief(exc)
    flow.task.save(flow.cancelled, _history(flow.task, secrets.brief(exc), "boot"))


BOOT_SETTINGS: Final = Phase(
    name="boot_settings",
    own_steps={"set": _set},
    finish=_finish_boot_setting,
    fail=_fail_boot_setting,
    urgent=True,
)
