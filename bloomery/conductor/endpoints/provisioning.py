"""The verbs of provisioning, and the calls of agents.

A verb takes a worker's slot first (a full pool is told with nothing written), then the node,
then checks, then moves it.  The lock travels with the flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.conductor import (
    abort,
    adopt,
    agent,
    clean,
    deploy,
    inspect,
    notification_utils,
    rescue,
    runner,
    servicing,
    states,
    task_manager,
    undeploy,
    verify,
)
from bloomery.conductor.endpoints import tasks
from bloomery.conductor.runner import Flow, Phase
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.db import nodes as node_rows
from bloomery.db import rows
from bloomery.db import steps as step_rows
from bloomery.drivers.base import Heartbeat
from bloomery.model.node import Node
from bloomery.model.request import Request
from bloomery.model.rules import verbs
from bloomery.model.step import Step

Json = dict[str, Any]


class ProvisioningEndpoints:
    """Serves ``rpc.contract.Provisioning``."""

    runtime: ConductorRuntime

    def do_node_deploy(
        self,
        request: Request,
        node_uuid: str,
        rebuild: bool,
        configdrive: Any,
        deploy_steps: list[Json] | None,
    ) -> None:
        event = "rebuild" if rebuild else "deploy"
        with tasks.order(self.runtime, request, node_uuid, event) as (task, slot):
            verbs.require_edge(task.node, "rebuild" if rebuild else "active")
            deploy.check(task, rebuild=rebuild)
            deploy.begin(task, configdrive)
            planned = deploy.steps(task, deploy_steps)
            _start(task, slot, event, deploy.PHASE, planned, room=_ROOM_TO_DEPLOY)

    def do_node_tear_down(self, request: Request, node_uuid: str) -> None:
        with tasks.order(self.runtime, request, node_uuid, "undeploy") as (task, slot):
            verbs.require_edge(task.node, "deleted")
            undeploy.check(task)
            planned = undeploy.steps(task)
            _start(task, slot, "delete", undeploy.PHASE, planned, room=_ROOM_TO_UNDEPLOY)

    def do_provisioning_action(self, request: Request, node_uuid: str, action: str) -> None:
        with tasks.order(self.runtime, request, node_uuid, action) as (task, slot):
            verbs.require_edge(task.node, action)
            if action == "provide":
                self._provide(task, slot)
            elif action == "manage" and task.node.provision_state == State.ENROLL:
                _start(task, slot, "manage", verify.PHASE, verify.steps(task))
            elif action == "manage":
                task.process_event("manage")
            elif action == "adopt":
                _start(task, slot, "adopt", adopt.PHASE, adopt.steps(task))
            elif action == "unhold":
                agent.unhold(task, slot)
            elif action == "abort":
                abort.ask(task, slot)
            else:
                raise verbs.refused(task.node, action)

    def _provide(self, task: TaskManager, slot: Slot) -> None:
        node = task.node
        self._refuse_maintenance(node, "provide")
        if node.retired:
            raise errors.NodeIsRetired(node=node.uuid, action="provide")
        clean.begin(task)
        planned = clean.automatic_steps(task)
        _start(task, slot, "provide", clean.PHASE, planned, room=_ROOM_TO_CLEAN)

    def do_node_clean(
        self,
        request: Request,
        node_uuid: str,
        clean_steps: list[Json],
        disable_ramdisk: bool,
    ) -> None:
        with tasks.order(self.runtime, request, node_uuid, "clean") as (task, slot):
            verbs.require_edge(task.node, "clean")
            self._refuse_maintenance(task.node, "clean")
            clean.begin(task)
            task.node.driver_internal_info["cleaning_disable_ramdisk"] = disable_ramdisk
            planned = clean.manual_steps(task, clean_steps)
            _start(
                task, slot, "clean", clean.PHASE, planned,
                target_state=State.MANAGEABLE, room=_ROOM_TO_CLEAN,
            )  # fmt: skip

    def do_node_service(
        self,
        request: Request,
        node_uuid: str,
        service_steps: list[Json],
        disable_ramdisk: bool,
    ) -> None:
        with tasks.order(self.runtime, request, node_uuid, "service") as (task, slot):
            verbs.require_edge(task.node, "service")
            servicing.check(task)
            servicing.begin(task, disable_ramdisk)
            planned = servicing.steps(task, service_steps, disable_ramdisk)
            _start(task, slot, "service", servicing.PHASE, planned)

    def do_node_rescue(self, request: Request, node_uuid: str, rescue_password: str) -> None:
        with tasks.order(self.runtime, request, node_uuid, "rescue") as (task, slot):
            verbs.require_edge(task.node, "rescue")
            rescue.check(task, "rescue")
            rescue.begin(task, rescue_password)
            _start(task, slot, "rescue", rescue.PHASE, rescue.rescue_steps(task))

    def do_node_unrescue(self, request: Request, node_uuid: str) -> None:
        with tasks.order(self.runtime, request, node_uuid, "unrescue") as (task, slot):
            verbs.require_edge(task.node, "unrescue")
            rescue.check(task, "unrescue")
            _start(task, slot, "unrescue", rescue.UNRESCUE, rescue.unrescue_steps(task))

    def inspect_hardware(self, request: Request, node_uuid: str) -> None:
        with tasks.order(self.runtime, request, node_uuid, "inspect") as (task, slot):
            verbs.require_edge(task.node, "inspect")
            inspect.check(task)
            inspect.begin(task)
            _start(task, slot, "inspect", inspect.PHASE, inspect.steps(task))

    def heartbeat(
        self,
        request: Request,
        node_uuid: str,
        callback_url: str,
        agent_version: str | None,
        agent_status: str | None,
        agent_status_message: str | None,
    ) -> None:
        heartbeat = Heartbeat(
            callback_url=callback_url, agent_version=agent_version, status=agent_status,
            status_message=agent_status_message,
        )  # fmt: skip
        agent.heartbeat(Context(runtime=self.runtime, request=request), node_uuid, heartbeat)

    def _refuse_maintenance(self, node: Node, action: str) -> None:
        if not self.runtime.conf.conductor.allow_provisioning_in_maintenance:
            verbs.refuse_in_maintenance(node, action)


class _Room(NamedTuple):
    """A limit on how many nodes do the same at a time."""

    work: str
    states: tuple[State, ...]
    option: str

    def required(self, task: TaskManager) -> task_manager.Write:
        """Return what raises ConcurrentActionLimit, in the transaction that moves the node.

        Counted there, nobody comes in between.
        """
        limit = getattr(task.runtime.conf.conductor, self.option)

        def check(conn: sa.Connection) -> None:
            count = node_rows.count_others_in_states(conn, task.node.uuid, self.states)
            if count >= limit:
                raise errors.ConcurrentActionLimit(
                    task=self.work, count=count, option=self.option, limit=limit
                )

        return check


_CLEANS: Final = (State.DELETING, State.CLEANING, State.CLEANWAIT)
_DEPLOYS: Final = (State.DEPLOYING, State.DEPLOYWAIT)
_ROOM_TO_DEPLOY: Final = _Room("provisioning", _DEPLOYS, "max_concurrent_deploy")
_ROOM_TO_UNDEPLOY: Final = _Room("unprovisioning", _CLEANS, "max_concurrent_clean")
_ROOM_TO_CLEAN: Final = _Room("cleaning", _CLEANS, "max_concurrent_clean")


def _start(
    task: TaskManager,
    slot: Slot,
    event: str,
    phase: Phase,
    steps: Sequence[Step],
    *,
    target_state: str | None = None,
    room: _Room | None = None,
) -> None:
    """Move the node, if there is room, and let a flow begin with the move."""
    flow = runner.plan(task, phase, steps)
    requirements = [room.required(task)] if room is not None else []
    task.process_event(
        event,
        callback=runner.launch,
        call_args=(slot, flow),
        err_handler=_undo(task, flow),
        target_state=target_state,
        journal=[*requirements, *_given_up(task.node), flow.opening],
    )


def _given_up(node: Node) -> list[task_manager.Write]:
    """A flow that waits, or is held, will not go on once another one begins."""
    if node.provision_state in states.WAIT_STATES | states.HOLD_STATES:
        return [lambda conn: step_rows.give_up(conn, node.uuid)]
    return []


def _undo(task: TaskManager, flow: Flow) -> Any:
    """Return the hook for a worker that never came: put the node back, and say so."""

    def put_back(exc: Exception, node: Node, state: str | None, target: str | None) -> None:
        moved = node.provision_state, node.target_provision_state
        node.provision_state, node.target_provision_state = state, target
        node.provision_updated_at, node.last_error = rows.now(), secrets.brief(exc)
        runner.clear_step_fields(flow)
        entry = task.remember(node.last_error, event_type="transition", failed=True)
        told = notification_utils.emit_provision_set_notification(
            task, "error", "error", *moved, "fail"
        )
        task.save(flow.cancelled, entry, told)

    return put_back
