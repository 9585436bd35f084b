"""Deploy a user's operating system on a node; undeploy the instance and clean up after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conductor import (
    allocations,
    cleaning,
    cleanup,
    configdrive,
    console,
    rescue,
    steps,
    validation,
)
from bloomery.conductor.phase import FlowFailure, Phase, Transition
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.writes import Write
from bloomery.db import records
from bloomery.drivers import autodetect
from bloomery.drivers.agent_boot import http_client
from bloomery.drivers.base import RemoteFile
from bloomery.model.deploy_template import DeployTemplate
from bloomery.model.nouns import DEPLOY_TEMPLATE
from bloomery.model.request import ProvisionArguments
from bloomery.model.rules import nodes as rules
from bloomery.model.rules import steps as step_rules
from bloomery.model.step import Step, internal_step
from bloomery.outcome import Outcome

_PREPARE: Final = internal_step("deploy", "prepare")
_NO_STEPS: Final = internal_step("deploy", "no_steps")
_CORE: Final = "deploy.deploy"
_TEAR_DOWN: Final = internal_step("deploy", "tear_down")
_MOST_LESSEE: Final = 255  # characters
_RESCUED: Final = (State.RESCUEWAIT, State.RESCUE, State.UNRESCUEFAIL, State.RESCUEFAIL)


# ------------------------------------------------------------------------------------- deploy


def check(task: TaskManager, arguments: ProvisionArguments) -> None:
    """Raise unless the node may be deployed now, or again over its instance."""
    node = task.node
    if arguments.configdrive:
        configdrive.check_size(node, arguments.configdrive)
    rules.check_instance(node, task.runtime.conf.conductor.disallowed_deployment_boot_modes)
    try:
        task.driver.power.validate(task)
        task.driver.network.validate(task)
        task.driver.deploy.validate(task)
    except errors.Failure as exc:
        raise errors.InstanceDeployFailure(
            reason=f"cannot validate node {errors.name_of(node)}: {exc}", cause_status=exc.status,
        ) from exc  # fmt: skip


def refusal(task: TaskManager) -> str | None:
    """Return why an available node would refuse its deployment; no server is asked."""
    if task.node.provision_state != State.AVAILABLE:
        return None
    try:
        check(task, ProvisionArguments())
    except errors.Failure as exc:
        return secrets.brief(exc)
    return None


def remote_files(task: TaskManager, arguments: ProvisionArguments) -> list[RemoteFile]:
    """Return the files to look at before a deployment that is valid otherwise."""
    files = list(task.driver.deploy.remote_files(task))
    stored = task.node.instance_info.get("configdrive")
    drive = arguments.configdrive or task.opened(stored)
    if isinstance(drive, str):
        files.append(RemoteFile(name="configdrive", url=drive))
    return http_client.list_checkable(task.runtime.conf, files)


def choose_interface(task: TaskManager, results: Mapping[str, Any]) -> None:
    """Let ``autodetect`` choose by what a look at the image has found.

    ``results``: by URL.  Raises InvalidParameterValue where no enabled interface takes the image.
    """
    node = task.node
    if not autodetect.is_asked(node):
        return
    source = task.opened(node.instance_info.get("image_source"))
    autodetect.remember(node, results.get(str(source)))
    task.driver = None  # type: ignore[assignment]  # loaded anew, of the image's kind
    task.load_driver()
    kind = autodetect.recall(node)
    if kind is not None and not task.driver.deploy.takes(node):
        raise errors.InvalidParameterValue(
            reason=f"instance_info/image_source is a {kind}, which no deploy interface of "
            "[DEFAULT]autodetect_deploy_interfaces takes that is enabled: bootc installs "
            "containers, direct writes disks; see [DEFAULT]enabled_deploy_interfaces",
        )


def begin(task: TaskManager, arguments: ProvisionArguments) -> None:
    """Set the node's fields for a deployment."""
    cleanup.wipe_internal_info(task, "deploy", may_keep_agent=True)
    conf, node = task.runtime.conf.conductor, task.node
    if conf.automatic_lessee and node.lessee is None:  # until undeploy
        own = node.instance_info.get("project_id")
        is_own = conf.automatic_lessee_source == "instance"
        project = own if is_own else task.context.request.project
        if isinstance(project, str) and 0 < len(project) <= _MOST_LESSEE:
            node.lessee = project
            node.driver_internal_info["automatic_lessee"] = True
    if arguments.configdrive:
        with configdrive.ONE_AT_A_TIME:
            _store_configdrive(task, arguments.configdrive)


def _store_configdrive(task: TaskManager, drive: Any) -> None:
    sealed = task.runtime.sealer.seal_under("configdrive", drive)
    task.node.instance_info = task.node.instance_info | {"configdrive": sealed}


def deploy_steps(task: TaskManager, arguments: ProvisionArguments) -> list[Step]:
    """Return the steps of the interfaces, overridden by those of templates and of the request.

    The traits of the instance name the templates.  Priority 0 disables a step; the core step takes
    no other priority.  Raises StepNotFound for a step that no interface offers, and
    InvalidParameterValue for a step in two templates.
    """
    available = steps.available_steps(task, "deploy")
    disallowed = task.runtime.conf.api.disallow_deploy_steps
    templates: list[DeployTemplate] = []
    if traits := task.node.instance_info.get("traits"):
        with task.runtime.db.read() as conn:
            templates = records.list_where(conn, DEPLOY_TEMPLATE, name=list(traits))
        step_rules.refuse_repeated([step for template in templates for step in template.steps])
    overriding: list[Step] = []
    for template in templates:
        opened: list[steps.UserStep] = task.runtime.sealer.open(template.steps)
        allowed = [s for s in opened if f"{s['interface']}.{s['step']}" not in disallowed]
        try:
            overriding += steps.validated_user_steps(task, "deploy", allowed)
        except errors.StepNotFound as exc:
            names = f"{exc.facts['steps']} (of deploy template {template.name})"
            raise errors.StepNotFound(**exc.facts | {"steps": names}) from exc
    if arguments.steps:
        overriding += steps.validated_user_steps(task, "deploy", arguments.steps)
    if any(step.name == _CORE and step.priority for step in overriding):
        raise errors.InvalidParameterValue(
            reason=f"deploy step {_CORE} is the core of a deployment: its priority can be 0 only, "
            "which switches it off",
        )
    if overriding:
        available = list({step.name: step for step in (*available, *overriding)}.values())
    planned = steps.by_priority(available, "deploy")
    planned = planned if planned or not overriding else [_NO_STEPS]
    return [*steps.parent_first(task), _PREPARE, *planned]


def _fail_without_steps(task: TaskManager) -> None:
    raise errors.StepFailure(reason="no deploy step is left: all have priority 0")


def clean_up(task: TaskManager) -> None:
    """Remove what was prepared; log a failure only, because the flow has failed already."""
    cleanup.collect_logs(task, "deploy")
    cleanup.tidy_in_turns(task, task.driver.deploy.clean_up)


def _prepare(task: TaskManager) -> Outcome | None:
    if not task.turn:
        validation.warn(task)
        if "configdrive" in task.node.instance_info:
            # The end of the step stores the image; after a crash the step builds it again.
            with configdrive.ONE_AT_A_TIME:
                drive = task.runtime.sealer.open(task.node.instance_info["configdrive"])
                if isinstance(drive, dict):  # an image of a large one takes seconds
                    _store_configdrive(task, configdrive.image_of(task.node, drive))
    return task.driver.deploy.prepare(task)


def _finish_deploy(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    cleanup.wipe_internal_info(task, "deploy")
    task.node.conductor_affinity = task.runtime.host
    return Transition(event="done")


def _fail_deploy(task: TaskManager, failure: FlowFailure) -> Transition:
    clean_up(task)
    cleanup.wipe_internal_info(task, "deploy")
    return Transition(event="fail", last_error=failure.sentence)


DEPLOY: Final = Phase(
    name="deploy",
    shows="deploy_step",
    own_steps={"prepare": _prepare, "no_steps": _fail_without_steps},
    finish=_finish_deploy,
    fail=_fail_deploy,
    history_name=lambda _node: "deployment",
)


# ----------------------------------------------------------------------------------- undeploy


def check_undeploy(task: TaskManager, arguments: ProvisionArguments) -> None:
    """Raise unless the instance may be removed now."""
    try:
        task.driver.power.validate(task)
    except errors.Failure as exc:
        raise errors.InstanceDeployFailure(
            reason=f"cannot tear down node {errors.name_of(task.node)}: {exc}"
        ) from exc


def undeploy_steps(task: TaskManager, arguments: ProvisionArguments) -> list[Step]:
    """Return the only step; its argument says whether the node is in rescue."""
    rescued = task.node.provision_state in _RESCUED
    return [replace(_TEAR_DOWN, args={"rescued": True}) if rescued else _TEAR_DOWN]


def _tear_down(task: TaskManager, *, rescued: bool = False) -> Outcome | None:
    if rescued and not task.turn:
        rescue.clean_up(task)
    if task.node.console_enabled:
        console.stop(task, "console_stop")
    return task.driver.deploy.tear_down(task)


def _forget_instance(task: TaskManager) -> tuple[Write, ...]:
    """Empty the fields of the instance; return the write that deletes its allocation."""
    node = task.node
    writes = (allocations.release(task.context, node),)
    node.instance_info = {}
    node.instance_uuid = node.instance_name = node.allocation_uuid = None
    if node.driver_internal_info.pop("automatic_lessee", False):
        node.lessee = None
    node.deploy_step, node.service_step = {}, {}
    cleanup.wipe_internal_info(task, "deploy", "service", "instance")
    return writes


def _finish_undeploy(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    writes = _forget_instance(task)
    cleanup.wipe_internal_info(task, "clean")
    then = (cleaning.CLEAN, cleaning.automatic_steps(task))
    return Transition(event="clean", writes=writes, then=then)


def _fail_undeploy(task: TaskManager, failure: FlowFailure) -> Transition:
    writes = _forget_instance(task)
    return Transition(event="fail", last_error=failure.sentence, writes=writes)


UNDEPLOY: Final = Phase(
    name="undeploy",
    own_steps={"tear_down": _tear_down},
    finish=_finish_undeploy,
    fail=_fail_undeploy,
)
