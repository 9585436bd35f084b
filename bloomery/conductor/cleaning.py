"""Clean: make a node forget its last user, by itself or on an operator's order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from bloomery import errors
from bloomery.conductor import cleanup, steps
from bloomery.conductor.runner import FlowFailure, Phase, Transition
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.node import Node
from bloomery.model.provision import ProvisionArguments
from bloomery.model.rules import verbs
from bloomery.model.step import Step, internal_step
from bloomery.outcome import Outcome

_PREPARE: Final = internal_step("deploy", "prepare_cleaning")
_TEAR_DOWN: Final = internal_step("deploy", "tear_down_cleaning")
_REFUSE: Final = internal_step("deploy", "refuse")


def check(task: TaskManager, arguments: ProvisionArguments) -> None:
    """Raise unless an operator may have the node cleaned now."""
    _refuse_in_maintenance(task, "clean")


def check_provide(task: TaskManager, arguments: ProvisionArguments) -> None:
    """Raise unless the node may be made available now."""
    _refuse_in_maintenance(task, "provide")
    if task.node.retired:
        raise errors.NodeIsRetired(node=task.node.uuid, action="provide")


def _refuse_in_maintenance(task: TaskManager, action: str) -> None:
    if not task.runtime.conf.conductor.allow_provisioning_in_maintenance:
        verbs.refuse_in_maintenance(task.node, action)


def begin(task: TaskManager, arguments: ProvisionArguments) -> None:
    """Set the node's fields for a manual cleaning that begins."""
    begin_automatic(task, arguments)
    task.node.driver_internal_info["cleaning_disable_ramdisk"] = arguments.disable_ramdisk


def begin_automatic(task: TaskManager, arguments: ProvisionArguments) -> None:
    """Set the node's fields for a cleaning that begins."""
    cleanup.wipe_internal_info(task.node, "clean")


def is_automatic(task: TaskManager) -> bool:
    """Is this node cleaned by itself?  Its own setting beats the option."""
    own = task.node.automated_clean
    return task.runtime.conf.conductor.automated_clean if own is None else own


def automatic_steps(task: TaskManager, arguments: ProvisionArguments | None = None) -> list[Step]:
    """Return what automated cleaning runs; nothing where it is switched off."""
    if not is_automatic(task):
        return []
    overrides = task.runtime.conf.conductor.clean_step_priority_override
    available = steps.override(steps.available_steps(task, "clean"), overrides)
    return [_PREPARE, *steps.by_priority(available, "clean"), _TEAR_DOWN]


def manual_steps(task: TaskManager, arguments: ProvisionArguments) -> list[Step]:
    """Return the steps that an operator asked for.

    The order is accepted before it is known whether it can be carried out (Ironic answers 202,
    too): a list that cannot becomes a flow that fails with the reason before it does harm.
    """
    try:
        user_steps = steps.validated_user_steps(task, "clean", arguments.steps)
    except errors.Invalid as exc:
        return [replace(_REFUSE, args={"reason": str(exc)})]
    return [_PREPARE, *user_steps, _TEAR_DOWN]


def _refuse(task: TaskManager, reason: str) -> None:
    raise errors.StepFailure(reason=reason)


def _prepare(task: TaskManager) -> Outcome | None:
    task.driver.power.validate(task)
    task.driver.network.validate(task)
    return task.driver.deploy.prepare_cleaning(task)


def tear_down(task: TaskManager) -> None:
    """Take the agent away, if there is one; the failure that is reported is another one."""
    cleanup.tidy(task, task.driver.deploy.tear_down_cleaning)


def _tear_down(task: TaskManager) -> Outcome | None:
    return task.driver.deploy.tear_down_cleaning(task)


def _is_manual(node: Node) -> bool:
    return node.target_provision_state == State.MANAGEABLE


def _finish(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    cleanup.wipe_internal_info(task.node, "clean")
    return Transition(event="manage" if _is_manual(task.node) or task.node.retired else "done")


def _fail(task: TaskManager, failure: FlowFailure) -> Transition:
    """A node that failed in the middle of a step needs an operator: maintenance, with a fault."""
    node = task.node
    tear_down(task)
    cleanup.call_operator(node, failure, "clean failure")
    if task.runtime.conf.conductor.poweroff_in_cleanfail:
        cleanup.power_off(task)
    cleanup.wipe_internal_info(node, "clean")
    target = State.MANAGEABLE if _is_manual(node) else None
    return Transition(event="fail", target_state=target, last_error=failure.sentence)


CLEAN: Final = Phase(
    name="clean",
    shows="clean_step",
    own_steps={"refuse": _refuse, "prepare_cleaning": _prepare, "tear_down_cleaning": _tear_down},
    finish=_finish,
    fail=_fail,
    history_name=lambda node: "manual_cleaning" if _is_manual(node) else "automated_cleaning",
)
