"""The RPC endpoint of a conductor: thin, one method per contract method.

A verb takes a worker's slot first (a full pool is told with nothing written), then the node,
then checks, then moves it.  The lock travels with the flow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.conductor import (
    abort,
    adopt,
    agent,
    boot_settings,
    clean,
    console,
    deploy,
    inspect,
    node_lock,
    nodes,
    notification_utils,
    ports,
    power,
    rescue,
    runner,
    servicing,
    states,
    task_manager,
    undeploy,
    verify,
)
from bloomery.conductor.runner import Flow, Phase
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.db import nodes as node_rows
from bloomery.db import rows
from bloomery.db import steps as step_rows
from bloomery.drivers.base import Heartbeat
from bloomery.model.node import INTERFACES, Node
from bloomery.model.request import Request
from bloomery.model.step import Step

Json = dict[str, Any]
T = TypeVar("T")

_API_CALL_S: Final = 30.0  # that a caller of the API waits for one call to a BMC: places are few


class ConductorManager:
    """Serves ``rpc.contract.Conductor``; see there for what each method promises."""

    def __init__(self, runtime: ConductorRuntime) -> None:
        self.runtime = runtime

    def _context(self, request: Request) -> Context:
        return Context(runtime=self.runtime, request=request)

    # --------------------------------------------------------------------------------- records

    def create_node(self, request: Request, values: Json) -> None:
        nodes.create(self._context(request), values)

    def update_node(
        self,
        request: Request,
        node_uuid: str,
        patch: list[Json],
        reset_interfaces: bool,
    ) -> None:
        nodes.update(self._context(request), node_uuid, patch, reset_interfaces=reset_interfaces)

    def destroy_node(self, request: Request, node_uuid: str) -> None:
        nodes.destroy(self._context(request), node_uuid)

    def set_maintenance(
        self,
        request: Request,
        node_uuid: str,
        maintenance: bool,
        reason: str | None,
    ) -> None:
        nodes.set_maintenance(self._context(request), node_uuid, maintenance, reason)

    def add_node_traits(
        self,
        request: Request,
        node_uuid: str,
        traits: list[str],
        replace: bool,
    ) -> None:
        nodes.add_traits(self._context(request), node_uuid, traits, replace=replace)

    def remove_node_traits(
        self,
        request: Request,
        node_uuid: str,
        traits: list[str] | None,
    ) -> None:
        nodes.remove_traits(self._context(request), node_uuid, traits)

    def create_port(self, request: Request, values: Json) -> None:
        ports.create(self._context(request), values)

    def update_port(self, request: Request, port_uuid: str, patch: list[Json]) -> None:
        ports.update(self._context(request), port_uuid, patch)

    def destroy_port(self, request: Request, port_uuid: str) -> None:
        ports.destroy(self._context(request), port_uuid)

    # ----------------------------------------------------------------------------------- verbs

    def do_node_deploy(
        self,
        request: Request,
        node_uuid: str,
        rebuild: bool,
        configdrive: Any,
        deploy_steps: list[Json] | None,
    ) -> None:
        event = "rebuild" if rebuild else "deploy"
        with self.runtime.workers.slot() as slot, self._hold(request, node_uuid, event) as task:
            _require_edge(task, event, "active")
            deploy.check(task, rebuild=rebuild)
            deploy.begin(task, configdrive)
            planned = deploy.steps(task, deploy_steps)
            _start(task, slot, event, deploy.PHASE, planned, room=_ROOM_TO_DEPLOY)

    def do_node_tear_down(self, request: Request, node_uuid: str) -> None:
        with (
            self.runtime.workers.slot() as slot,
            self._hold(request, node_uuid, "undeploy") as task,
        ):
            _require_edge(task, "delete", "deleted")
            undeploy.check(task)
            planned = undeploy.steps(task)
            _start(task, slot, "delete", undeploy.PHASE, planned, room=_ROOM_TO_UNDEPLOY)

    def do_provisioning_action(self, request: Request, node_uuid: str, action: str) -> None:
        with self.runtime.workers.slot() as slot, self._hold(request, node_uuid, action) as task:
            _require_edge(task, action, action)
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
                raise _refused(task.node, action)

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
        with self.runtime.workers.slot() as slot, self._hold(request, node_uuid, "clean") as task:
            _require_edge(task, "clean", "clean")
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
        with self.runtime.workers.slot() as slot, self._hold(request, node_uuid, "service") as task:
            _require_edge(task, "service", "service")
            servicing.check(task)
            servicing.begin(task, disable_ramdisk)
            planned = servicing.steps(task, service_steps, disable_ramdisk)
            _start(task, slot, "service", servicing.PHASE, planned)

    def do_node_rescue(self, request: Request, node_uuid: str, rescue_password: str) -> None:
        with self.runtime.workers.slot() as slot, self._hold(request, node_uuid, "rescue") as task:
            _require_edge(task, "rescue", "rescue")
            rescue.check(task, "rescue")
            rescue.begin(task, rescue_password)
            _start(task, slot, "rescue", rescue.PHASE, rescue.rescue_steps(task))

    def do_node_unrescue(self, request: Request, node_uuid: str) -> None:
        with (
            self.runtime.workers.slot() as slot,
            self._hold(request, node_uuid, "unrescue") as task,
        ):
            _require_edge(task, "unrescue", "unrescue")
            rescue.check(task, "unrescue")
            _start(task, slot, "unrescue", rescue.UNRESCUE, rescue.unrescue_steps(task))

    def inspect_hardware(self, request: Request, node_uuid: str) -> None:
        with self.runtime.workers.slot() as slot, self._hold(request, node_uuid, "inspect") as task:
            _require_edge(task, "inspect", "inspect")
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
        agent.heartbeat(self._context(request), node_uuid, heartbeat)

    def _refuse_maintenance(self, node: Node, action: str) -> None:
        if node.maintenance and not self.runtime.conf.conductor.allow_provisioning_in_maintenance:
            raise errors.NodeInMaintenance(node=node.uuid, action=action)

    # ------------------------------------------------------------------------------------ power

    def change_node_power_state(
        self,
        request: Request,
        node_uuid: str,
        new_state: str,
        timeout_s: float | None,
    ) -> None:
        with self.runtime.workers.slot() as slot, self._hold(request, node_uuid, new_state) as task:
            power.check(task, new_state)
            was = task.node.power_state
            power.begin(task, new_state)
            flow = runner.plan(task, power.PHASE, power.steps(task, new_state, timeout_s))
            task.save(flow.opening, power.notification(task, "start", new_state))
            task.set_spawn_error_hook(power.undo, task.node, flow, was)
            task.spawn_after(runner.launch, slot, flow)
        self.runtime.on_events_written()

    def change_node_boot_mode(self, request: Request, node_uuid: str, new_mode: str) -> None:
        with self.runtime.workers.slot() as slot, self._hold(request, node_uuid, "mode") as task:
            _set_boot(task, slot, "boot_mode", new_mode)

    def change_node_secure_boot(self, request: Request, node_uuid: str, on: bool) -> None:
        with (
            self.runtime.workers.slot() as slot,
            self._hold(request, node_uuid, "mode") as task,
        ):
            _set_boot(task, slot, "secure_boot", on)

    def set_boot_device(
        self,
        request: Request,
        node_uuid: str,
        device: str,
        persistent: bool,
    ) -> None:
        def work(task: TaskManager) -> None:
            task.driver.management.validate(task)
            task.driver.management.set_boot_device(task, device, persistent)
            task.save()

        self._beside(request, node_uuid, work, purpose="set boot device", insists=True)

    def get_boot_device(self, request: Request, node_uuid: str) -> Json:
        def work(task: TaskManager) -> Json:
            task.driver.management.validate(task)
            return task.driver.management.get_boot_device(task)

        return self._beside(request, node_uuid, work, purpose="get boot device")

    def get_supported_boot_devices(self, request: Request, node_uuid: str) -> list[str]:
        def work(task: TaskManager) -> list[str]:
            return list(task.driver.management.get_supported_boot_devices(task))

        return self._beside(request, node_uuid, work, shared=True, purpose="list boot devices")

    def set_console_mode(self, request: Request, node_uuid: str, enabled: bool) -> None:
        with self.runtime.workers.slot() as slot, self._hold(request, node_uuid, "console") as task:
            task.driver.console.validate(task)
            if task.node.console_enabled == enabled:
                return
            task.node.last_error = None
            flow = runner.plan(task, console.PHASE, console.steps(enabled))
            task.save(flow.opening, console.notification(task, "start"))
            task.set_spawn_error_hook(console.undo, flow)
            task.spawn_after(runner.launch, slot, flow)

    def get_console_information(self, request: Request, node_uuid: str) -> Json | None:
        with self._look(request, node_uuid) as task:
            return console.show(task)

    # ---------------------------------------------------------------------- interfaces, network

    def validate_driver_interfaces(self, request: Request, node_uuid: str) -> Json:
        with self._look(request, node_uuid) as task:
            return {kind: _validated(task, kind) for kind in INTERFACES if kind != "vendor"}

    def describe_bmc(self, request: Request, node_uuid: str) -> Json | None:
        with self._look(request, node_uuid) as task:
            return task.driver.power.describe_bmc(task)

    def vif_attach(self, request: Request, node_uuid: str, vif_info: Json) -> None:
        with self._hold(request, node_uuid, "attach vif") as task:
            task.driver.network.vif_attach(task, vif_info)
            task.save()

    def vif_detach(self, request: Request, node_uuid: str, vif_id: str) -> None:
        with self._hold(request, node_uuid, "detach vif") as task:
            task.driver.network.vif_detach(task, vif_id)
            task.save()

    def vif_list(self, request: Request, node_uuid: str) -> list[Json]:
        with self._look(request, node_uuid) as task:
            return task.driver.network.vif_list(task)

    def get_driver_properties(self, request: Request, driver: str) -> Json:
        return dict(self.runtime.registry.properties_of(driver))

    # ----------------------------------------------------------------------------------- tasks

    def _hold(self, request: Request, node_uuid: str, purpose: str) -> TaskManager:
        return task_manager.acquire(
            self._context(request), node_uuid, purpose=purpose, insists=True
        )

    def _look(self, request: Request, node_uuid: str) -> TaskManager:
        return task_manager.acquire(self._context(request), node_uuid, shared=True)

    def _beside(
        self,
        request: Request,
        node_uuid: str,
        work: Callable[[TaskManager], T],
        *,
        purpose: str,
        shared: bool = False,
        insists: bool = False,
    ) -> T:
        """Return what ``work``, which may ask a BMC, answers: it runs in a worker.

        The calling thread is one of the API's and waits, in a place of those that may.  Raises
        ApiThreadsBusy and NoFreeConductorWorker at once, and what ``work`` raises, as it is.
        ``insists``: an order, which tries a BMC that is left alone; a look does not.
        """
        context = Context(runtime=self.runtime, request=request, in_place=True)
        with (
            self.runtime.workers.slot() as slot,
            node_lock.place(self.runtime, f"{purpose} of node {node_uuid}"),
            task_manager.acquire(
                context,
                node_uuid,
                shared=shared,
                purpose=purpose,
                insists=insists,
                budget_s=_API_CALL_S,
            ) as task,
        ):
            return slot.spawn(work, task).result()


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


def _require_edge(task: TaskManager, event: str, verb: str) -> None:
    """The state may have changed since the API looked: refuse as it would have."""
    if not states.allows(task.node.provision_state, event):
        raise _refused(task.node, verb)


def _refused(node: Node, verb: str) -> errors.InvalidStateRequested:
    return errors.InvalidStateRequested(action=verb, node=node.uuid, state=node.provision_state)


def _validated(task: TaskManager, kind: str) -> Json:
    """Return what validation says of one interface; only what we know by name is told."""
    try:
        task.driver.interface(kind).validate(task)
    except errors.Invalid as exc:
        return {"result": False, "reason": str(exc)}
    return {"result": True}


def _set_boot(task: TaskManager, slot: Slot, field: str, value: Any) -> None:
    """Let a flow set the boot mode, or secure boot."""
    flow = runner.plan(task, boot_settings.PHASE, boot_settings.steps(field, value))
    task.save(flow.opening)
    task.set_spawn_error_hook(boot_settings.undo, flow)
    task.spawn_after(runner.launch, slot, flow)
