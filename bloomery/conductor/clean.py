"""Clean: make a node forget its last user, by itself or on an operator's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from bloomery import errors
from bloomery.conductor import cleanup, internal_info, step_lists
from bloomery.conductor.runner import Phase, Transition
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.node import Node
from bloomery.model.step import Step, StepRun, internal_step
from bloomery.outcome import Outcome

_PREPARE: Final = internal_step("deploy", "prepare_cleaning")
_TEAR_DOWN: Final = internal_step("deploy", "tear_down_cleaning")
_REFUSE: Final = internal_step("deploy", "refuse")


def is_automatic(task: TaskManager) -> bool:
    """Is this node cleaned by itself?  Its own word beats the option."""
    own = task.node.automated_clean
    return task.runtime.conf.conductor.automated_clean if own is None else own


def automatic_steps(task: TaskManager) -> list[Step]:
    """Return what automated cleaning runs; nothing where it is switched off."""
    if not is_automatic(task):
        return []
    overrides = task.runtime.conf.conductor.clean_step_priority_override
    found = step_lists.override(step_lists.available_steps(task, "clean"), overrides)
    return [_PREPARE, *step_lists.by_priority(found, "clean"), _TEAR_DOWN]


def manual_steps(task: TaskManager, wanted: Sequence[Mapping[str, Any]]) -> list[Step]:
    """Return the steps that an operator asked for.

    The order is accepted before it is known whether it can be carried out (Ironic answers 202,
    too): a list that cannot becomes a flow that fails with the reason before it does harm.
    """
    try:
        return [_PREPARE, *step_lists.validated_user_steps(task, "clean", wanted), _TEAR_DOWN]
    except errors.Invalid as exc:
        return [replace(_REFUSE, args={"reason": str(exc)})]


def begin(task: TaskManager) -> None:
    """Set the node's fields for a cleaning that begins."""
    internal_info.wipe(task.node, "clean")


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


def _finish(task: TaskManager) -> Transition:
    internal_info.wipe(task.node, "clean")
    manual = task.node.target_provision_state == State.MANAGEABLE
    return Transition(event="manage" if manual or task.node.retired else "done")


def _fail(task: TaskManager, run: StepRun, sentence: str) -> Transition:
    """A node that failed in the middle of a step needs an operator: maintenance, with a fault."""
    node = task.node
    tear_down(task)
    cleanup.call_operator(task, run, "clean failure", sentence)
    if task.runtime.conf.conductor.poweroff_in_cleanfail:
        cleanup.power_off(task)
    internal_info.wipe(node, "clean")
    manual = node.target_provision_state == State.MANAGEABLE
    return Transition(
        event="fail", target_state=State.MANAGEABLE if manual else None, last_error=sentence,
    )  # fmt: skip


def _called(node: Node) -> str:
    manual = node.target_provision_state == State.MANAGEABLE
    return "manual_cleaning" if manual else "automated_cleaning"


PHASE: Final = Phase(
    name="clean",
    shows="clean_step",
    own_steps={"refuse": _refuse, "prepare_cleaning": _prepare, "tear_down_cleaning": _tear_down},
    finish=_finish,
    fail=_fail,
    called=_called,
)
