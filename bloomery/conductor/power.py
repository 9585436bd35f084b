"""Power, boot mode and secure boot on request: flows of one step.

Such a flow keeps the provision state, may be repeated, and stores its result on the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from bloomery import errors
from bloomery.conductor import runner, states, steps, tasks, writes
from bloomery.conductor.notification_utils import (
    emit_power_set_notification,
    emit_power_state_corrected_notification,
)
from bloomery.conductor.phase import FlowFailure, Phase, Transition, ends_with, records_failure
from bloomery.conductor.runtime import Context
from bloomery.conductor.states import Power
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.conductor.writes import EncodedWrite
from bloomery.db import nodes
from bloomery.model.rules import verbs
from bloomery.model.step import Step, internal_step
from bloomery.outcome import DONE, Done, Outcome


def _with_result(outcome: Outcome | None, result: Mapping[str, Any]) -> Outcome:
    outcome = outcome or DONE
    return Done(result={**outcome.result, **result}) if isinstance(outcome, Done) else outcome


# -------------------------------------------------------------------------------------- power


def change_power_state(
    context: Context, node_uuid: str, new_state: str, timeout_s: float | None
) -> None:
    with tasks.order(context, node_uuid, new_state) as (task, slot):
        node = task.node
        verbs.check_power_target(node, new_state)
        task.driver.power.validate(task)
        supported = task.driver.power.get_supported_power_states(task)
        if new_state not in supported:
            raise errors.InvalidParameterValue(
                reason=f"power interface {node.power_interface} of node {errors.name_of(node)} "
                f'does not support "{new_state}": it supports {", ".join(supported)}',
            )
        before = steps_of_relatives(task, new_state)
        start_power(task, slot, new_state, timeout_s=timeout_s, before=before)


def start_power(
    task: TaskManager,
    slot: Slot,
    target: str,
    *journal: EncodedWrite,
    timeout_s: float | None = None,
    keep_error: bool = False,
    before: Sequence[Step] = (),
) -> None:
    """Start a flow that brings the node to power state ``target``.

    ``journal``: further writes of the first transaction.  ``keep_error``: keep last_error, whose
    cause persists.  ``before``: the steps of ``steps_of_relatives``.
    """
    task.node.target_power_state = Power.ON if target in states.ENDS_ON else Power.OFF
    task.node.last_error = task.node.last_error if keep_error else None
    if timeout_s is None and target in (Power.SOFT_OFF, Power.SOFT_REBOOT):
        timeout_s = float(task.runtime.conf.conductor.soft_power_off_timeout)
    step = internal_step("power", "change", {"target": target, "timeout_s": timeout_s})
    started = emit_power_set_notification(task.context, task.node, "start", target)
    runner.start(task, slot, POWER, step, *journal, started, before=before)


def steps_of_relatives(task: TaskManager, target: str) -> list[Step]:
    """Return the power steps of parent or children that must run before this node's.

    A child without its own power supply depends on its parent: the parent goes on first, and
    children go off first.  Raises ParentNodeLocked, ChildNodeLocked, and PowerStateFailure for a
    child that may not be switched off.
    """
    node = task.node
    if target == Power.ON:
        return steps.parent_first(task, refuses_locked=True)
    if target != Power.OFF:
        return []
    with task.runtime.db.read() as conn:
        children = nodes.list_children(conn, node.uuid)
    live = [c for c in children if c.uuid != node.uuid and c.power_state != Power.OFF]
    dependent = [child for child in live if steps.takes_power_from_parent(child)]
    for child in dependent:
        verbs.refuse_power_off(child, Power.OFF)
        if child.reservation is not None:
            raise errors.ChildNodeLocked(
                node=errors.name_of(node), child=child.uuid, holder=child.reservation
            )
    step = internal_step("power", "power_off")
    return [replace(step, child=child.uuid) for child in dependent]


def _change(task: TaskManager, target: str, timeout_s: float | None) -> Outcome:
    return _with_result(steps.change_power(task, target, timeout_s), {"to_power": target})


def _finish_power(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    task.node.target_power_state = None
    ended = emit_power_set_notification(task.context, task.node, "end", result["to_power"])
    return Transition(event=None, writes=[ended])


def _fail_power(task: TaskManager, failure: FlowFailure) -> Transition:
    # A relative's step has no target.
    target = failure.run.step.args.get("target", task.node.target_power_state)
    task.node.target_power_state = None
    entry = writes.failure_entry(task.context, task.node, failure.sentence, "power")
    event = emit_power_set_notification(task.context, task.node, "error", target)
    return Transition(event=None, writes=[event, entry])


def corrected(task: TaskManager, from_power: str | None) -> list[EncodedWrite]:
    """Return the notification that the power state read differs from the recorded one."""
    task.log("power was recorded as %s, and is %s", from_power, task.node.power_state)
    return [emit_power_state_corrected_notification(task.context, task.node, from_power)]


POWER: Final = Phase(
    name="power", own_steps={"change": _change}, finish=_finish_power, fail=_fail_power, urgent=True
)


# --------------------------------------------------------------------- boot mode, secure boot

_SETTERS: Final = {"boot_mode": "set_boot_mode", "secure_boot": "set_secure_boot_state"}


def change_boot_mode(context: Context, node_uuid: str, new_mode: str) -> None:
    with tasks.order(context, node_uuid, "mode") as (task, slot):
        verbs.check_boot_mode(task.node, new_mode)
        _start_boot_setting(task, slot, "boot_mode", new_mode)


def change_secure_boot(context: Context, node_uuid: str, on: bool) -> None:
    with tasks.order(context, node_uuid, "mode") as (task, slot):
        verbs.check_secure_boot(task.node, on)
        _start_boot_setting(task, slot, "secure_boot", on)


def _start_boot_setting(task: TaskManager, slot: Slot, field: str, value: Any) -> None:
    step = internal_step("management", "set", {"field": field, "value": value})
    runner.start(task, slot, BOOT_SETTINGS, step)


def _set(task: TaskManager, field: str, value: Any) -> Outcome:
    if task.turn == 0 and getattr(task.node, field) == value:
        return DONE
    outcome = getattr(task.driver.management, _SETTERS[field])(task, value)
    return _with_result(outcome, {"node": {field: value}})


BOOT_SETTINGS: Final = Phase(
    name="boot_settings",
    own_steps={"set": _set},
    finish=ends_with(None),
    fail=records_failure("boot"),
    urgent=True,
)
