"""Deploy: put the user's operating system on a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.conductor import cleanup, internal_info, step_lists
from bloomery.conductor.runner import Phase, Transition
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.rules import nodes as rules
from bloomery.model.rules import verbs
from bloomery.model.step import Step, StepRun, internal_step
from bloomery.outcome import Outcome

_PREPARE: Final = internal_step("deploy", "prepare")


def check(task: TaskManager, *, rebuild: bool) -> None:
    """Raise unless the node may be deployed now."""
    node = task.node
    action = "rebuild" if rebuild else "deploy"
    verbs.refuse_in_maintenance(node, action)
    if rebuild and node.protected:
        raise errors.NodeProtected(node=node.uuid, action=action)
    _check_boot_mode(task)
    try:
        task.driver.power.validate(task)
        task.driver.deploy.validate(task)
    except errors.Failure as exc:
        raise errors.InstanceDeployFailure(
            reason=f"cannot validate node {node.uuid}: {exc}", cause_status=exc.status,
        ) from exc  # fmt: skip


def _check_boot_mode(task: TaskManager) -> None:
    """Raise BootModeNotAllowed where the node asks for a boot mode that the operator forbids."""
    holders = (task.node.instance_info, task.node.properties)
    disallowed = task.runtime.conf.conductor.disallowed_deployment_boot_modes
    rules.refuse_boot_mode(holders, disallowed, "[conductor]disallowed_deployment_boot_modes")


def steps(task: TaskManager, wanted: Sequence[Mapping[str, Any]] | None) -> list[Step]:
    """Return the steps of the interfaces, overridden by those of the request.

    Priority 0 switches a step off; steps that no interface offers are left out, as an agent
    may offer them later.
    """
    own = {step.name: step for step in step_lists.available_steps(task, "deploy")}
    for step in step_lists.validated_user_steps(task, "deploy", wanted or (), tolerant=True):
        own[step.name] = step
    return [_PREPARE, *step_lists.by_priority(own.values(), "deploy")]


def begin(task: TaskManager, configdrive: Any) -> None:
    """Set the node's fields for a deployment that begins."""
    node = task.node
    internal_info.wipe(node, "deploy")
    if configdrive is not None:
        sealed = task.runtime.sealer.seal_under("configdrive", configdrive)
        node.instance_info = node.instance_info | {"configdrive": sealed}


def clean_up(task: TaskManager) -> None:
    """Take away what was prepared; the failure that is reported is another one."""
    cleanup.tidy(task, task.driver.deploy.clean_up)


def _prepare(task: TaskManager) -> Outcome | None:
    return task.driver.deploy.prepare(task)


def _finish(task: TaskManager) -> Transition:
    internal_info.wipe(task.node, "deploy")
    task.node.conductor_affinity = task.runtime.host
    return Transition(event="done")


def _fail(task: TaskManager, run: StepRun, sentence: str) -> Transition:
    clean_up(task)
    internal_info.wipe(task.node, "deploy")
    return Transition(event="fail", last_error=sentence)


PHASE: Final = Phase(
    name="deploy",
    shows="deploy_step",
    own_steps={"prepare": _prepare},
    finish=_finish,
    fail=_fail,
    called=lambda _node: "deployment",
)
