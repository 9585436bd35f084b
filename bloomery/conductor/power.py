"""Power on request: a flow of one step that may take its time, and may be repeated."""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conductor import internal_info, notification_utils, states
from bloomery.conductor.runner import Flow, Phase, Transition
from bloomery.conductor.states import Power
from bloomery.conductor.task_manager import TaskManager, Write
from bloomery.db import rows
from bloomery.model.rules import verbs
from bloomery.model.step import Step, StepRun, internal_step
from bloomery.outcome import Outcome

_REBOOTS: Final = (Power.REBOOT, Power.SOFT_REBOOT)


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


def steps(task: TaskManager, target: str, timeout_s: float | None) -> list[Step]:
    if timeout_s is None and target in (Power.SOFT_OFF, Power.SOFT_REBOOT):
        timeout_s = float(task.runtime.conf.conductor.soft_power_off_timeout)
    args = {"target": target, "timeout_s": timeout_s}
    return [internal_step("power", "change", args)]


def begin(task: TaskManager, target: str) -> None:
    """Say on the node what is asked of it."""
    task.node.target_power_state = Power.ON if target in states.ENDS_ON else Power.OFF
    task.node.last_error = None


def _change(task: TaskManager, target: str, timeout_s: float | None) -> Outcome | None:
    """Ask the hardware, unless it is there already."""
    node, power = task.node, task.driver.power
    task.notes["to_power"] = target
    wanted = Power.ON if target in states.ENDS_ON else Power.OFF
    if target not in _REBOOTS and task.turn == 0 and power.get_power_state(task) == wanted:
        node.power_state = wanted
        return None
    internal_info.wipe_for_power(node)
    node.driver_internal_info["last_power_state_change"] = rows.now().isoformat()
    if target == Power.REBOOT:
        return power.reboot(task, timeout_s)
    return power.set_power_state(task, target, timeout_s)


def _finish(task: TaskManager) -> Transition:
    task.node.target_power_state = None
    return Transition(event=None, writes=[notification(task, "end", task.notes["to_power"])])


def _fail(task: TaskManager, run: StepRun, sentence: str) -> Transition:
    task.node.target_power_state, task.node.last_error = None, sentence
    entry = task.remember(sentence, event_type="power", failed=True)
    return Transition(
        event=None, writes=[notification(task, "error", run.step.args["target"]), entry]
    )


def notification(task: TaskManager, status: str, to_power: str | None) -> Write:
    """Return the write of the event ``baremetal.node.power_set.<status>``."""
    return notification_utils.emit_power_set_notification(task, status, to_power)


def corrected(task: TaskManager, from_power: str | None) -> list[Write]:
    """Return the writes that tell of a power state that was found to be another one."""
    return [notification_utils.emit_power_state_corrected_notification(task, from_power)]


def undo(exc: Exception, node: Any, flow: Flow, power_state: str | None) -> None:
    """No worker came: the node is as it was, and says why."""
    task, target = flow.task, flow.runs[0].step.args["target"]
    node.power_state, node.target_power_state = power_state, None
    node.last_error = secrets.brief(exc)
    entry = task.remember(node.last_error, event_type="power", failed=True)
    task.save(flow.cancelled, entry, notification(task, "error", target))


PHASE: Final = Phase(
    name="power", own_steps={"change": _change}, finish=_finish, fail=_fail, urgent=True
)
