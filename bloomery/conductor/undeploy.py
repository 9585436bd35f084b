"""Tear down: take the instance away, and clean up after it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bloomery import errors
from bloomery.conductor import clean, console, internal_info, rescue
from bloomery.conductor.runner import Phase, Transition
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.node import Node
from bloomery.model.step import Step, StepRun, internal_step
from bloomery.outcome import Outcome

_TEAR_DOWN: Final = internal_step("deploy", "tear_down")
_RESCUED: Final = (State.RESCUEWAIT, State.RESCUE, State.UNRESCUEFAIL, State.RESCUEFAIL)


def check(task: TaskManager) -> None:
    """Raise unless the instance may be taken away now."""
    node = task.node
    if node.protected:
        raise errors.NodeProtected(node=node.uuid, action="undeploy")
    try:
        task.driver.power.validate(task)
    except errors.Failure as exc:
        raise errors.InstanceDeployFailure(
            reason=f"cannot tear down node {node.uuid}: {exc}"
        ) from exc


def steps(task: TaskManager) -> list[Step]:
    """The one step; it is told whether a rescue must be taken away first."""
    rescued = task.node.provision_state in _RESCUED
    return [replace(_TEAR_DOWN, args={"rescued": True}) if rescued else _TEAR_DOWN]


def _tear_down(task: TaskManager, *, rescued: bool = False) -> Outcome | None:
    if rescued and not task.turn:
        rescue.clean_up(task)
    if task.node.console_enabled:
        console.stop(task, "console_stop")
    return task.driver.deploy.tear_down(task)


def _forget_instance(node: Node) -> None:
    node.instance_info = {}
    node.instance_uuid = node.instance_name = node.allocation_uuid = None
    if node.driver_internal_info.pop("automatic_lessee", False):
        node.lessee = None
    node.deploy_step, node.service_step = {}, {}
    internal_info.wipe(node, "deploy", "service", "instance")


def _finish(task: TaskManager) -> Transition:
    _forget_instance(task.node)
    clean.begin(task)
    return Transition(event="clean", then=(clean.PHASE, clean.automatic_steps(task)))


def _fail(task: TaskManager, run: StepRun, sentence: str) -> Transition:
    _forget_instance(task.node)
    return Transition(event="fail", last_error=sentence)


PHASE: Final = Phase(
    name="undeploy",
    own_steps={"tear_down": _tear_down},
    finish=_finish,
    fail=_fail,
)
