"""Service: run steps on an active node, on an operator's order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery.conductor import cleanup, steps
from bloomery.conductor.phase import FlowFailure, Phase, Transition
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.request import ProvisionArguments
from bloomery.model.step import Step, internal_step
from bloomery.outcome import Outcome

_PREPARE: Final = internal_step("deploy", "prepare_service")
_TEAR_DOWN: Final = internal_step("deploy", "tear_down_service")


def check(task: TaskManager, arguments: ProvisionArguments) -> None:
    """Raise unless the node may be serviced now."""
    task.driver.power.validate(task)
    task.driver.network.validate(task)


def begin(task: TaskManager, arguments: ProvisionArguments) -> None:
    """Set the node's fields for a service."""
    cleanup.wipe_internal_info(task, "service")
    task.node.driver_internal_info["service_disable_ramdisk"] = arguments.disable_ramdisk


def user_steps(task: TaskManager, arguments: ProvisionArguments) -> list[Step]:
    """Return the user's steps in order, with the agent's boot and removal where a step needs it."""
    planned = steps.raw_user_steps(task, "service", arguments.steps)
    if arguments.disable_ramdisk or not any(step.requires_ramdisk for step in planned):
        return planned
    return [*steps.parent_first(task), _PREPARE, *planned, _TEAR_DOWN]


def _release_agent(task: TaskManager) -> Outcome | None:
    """Remove the agent and boot the instance."""
    if not task.turn:
        task.driver.deploy.collect_logs(task, "service", failed=False)
    return task.driver.deploy.tear_down_service(task)


def tear_down(task: TaskManager) -> None:
    """Remove the agent; log a failure only, because the flow has failed already."""
    cleanup.collect_logs(task, "service")
    cleanup.tidy_in_turns(task, task.driver.deploy.tear_down_service)


def _finish(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    cleanup.wipe_internal_info(task, "service")
    return Transition(event="done")


def _fail(task: TaskManager, failure: FlowFailure) -> Transition:
    tear_down(task)
    cleanup.call_operator(task.node, failure, "service failure")
    if task.runtime.conf.conductor.poweroff_in_servicefail:
        cleanup.power_off(task)
    cleanup.wipe_internal_info(task, "service")
    return Transition(event="fail", last_error=failure.sentence)


SERVICE: Final = Phase(
    name="service",
    shows="service_step",
    own_steps={
        "prepare_service": lambda task: task.driver.deploy.prepare_service(task),
        "tear_down_service": _release_agent,
    },
    finish=_finish,
    fail=_fail,
    history_name=lambda _node: "servicing",
)
