"""Service: work on an active node, on an operator's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery.conductor import cleanup, internal_info, step_lists
from bloomery.conductor.runner import Phase, Transition
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.rules import verbs
from bloomery.model.step import Step, StepRun, internal_step
from bloomery.outcome import Outcome

_PREPARE: Final = internal_step("deploy", "prepare_service")
_TEAR_DOWN: Final = internal_step("deploy", "tear_down_service")


def check(task: TaskManager) -> None:
    """Raise unless the node may be serviced now."""
    verbs.refuse_in_maintenance(task.node, "service")
    task.driver.power.validate(task)
    task.driver.network.validate(task)


def steps(task: TaskManager, wanted: Sequence[Mapping[str, Any]], no_ramdisk: bool) -> list[Step]:
    """Return the steps in the user's order; an agent is booted only where one of them needs it."""
    given = step_lists.raw_user_steps(task, "service", wanted)
    if no_ramdisk or not any(step.requires_ramdisk for step in given):
        return given
    return [_PREPARE, *given, _TEAR_DOWN]


def begin(task: TaskManager, no_ramdisk: bool) -> None:
    internal_info.wipe(task.node, "service")
    task.node.driver_internal_info["service_disable_ramdisk"] = no_ramdisk


def tear_down(task: TaskManager) -> None:
    """Take the agent away, if there is one; the failure that is reported is another one."""
    cleanup.tidy(task, task.driver.deploy.tear_down_service)


def _prepare(task: TaskManager) -> Outcome | None:
    return task.driver.deploy.prepare_service(task)


def _tear_down(task: TaskManager) -> Outcome | None:
    return task.driver.deploy.tear_down_service(task)


def _finish(task: TaskManager) -> Transition:
    internal_info.wipe(task.node, "service")
    return Transition(event="done")


def _fail(task: TaskManager, run: StepRun, sentence: str) -> Transition:
    tear_down(task)
    cleanup.call_operator(task, run, "service failure", sentence)
    if task.runtime.conf.conductor.poweroff_in_servicefail:
        cleanup.power_off(task)
    internal_info.wipe(task.node, "service")
    return Transition(event="fail", last_error=sentence)


PHASE: Final = Phase(
    name="service",
    shows="service_step",
    own_steps={"prepare_service": _prepare, "tear_down_service": _tear_down},
    finish=_finish,
    fail=_fail,
    called=lambda _node: "servicing",
)
