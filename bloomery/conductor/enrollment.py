"""Enrollment: verify a node's BMC, inspect its hardware, adopt its instance."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from bloomery import secrets
from bloomery.conductor import (
    cleanup,
    console,
    hardware,
    inspection,
    notification_utils,
    row_updates,
    runner,
    steps,
    writes,
)
from bloomery.conductor.phase import FlowFailure, Phase, Transition, ends_with
from bloomery.conductor.runner import Flow
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.conductor.writes import DeferredWrite, EncodedWrite
from bloomery.db import nodes, records
from bloomery.db import steps as step_rows
from bloomery.model.node import FLOW_RETRY
from bloomery.model.nouns import PORT
from bloomery.model.request import ProvisionArguments
from bloomery.model.step import Run, Step, internal_step
from bloomery.outcome import Done, Outcome

Json = dict[str, Any]

_CHANGE_PASSWORD: Final = internal_step("management", "change_factory_password")
_CHECK_POWER: Final = internal_step("power", "check_power")
_INSPECT: Final = internal_step("inspect", "inspect_hardware")
_RELEASE_AGENT: Final = internal_step("inspect", "finish")
ADOPTION: Final = internal_step("deploy", "adopt")


# ------------------------------------------------------------------------------------- verify


def verify_steps(task: TaskManager, arguments: ProvisionArguments) -> list[Step] | None:
    """Return the power check and the verify steps, or None for a node that needs no flow.

    A new BMC may first want its password changed.
    """
    if task.node.provision_state != State.ENROLL:
        return None
    overrides = task.runtime.conf.conductor.verify_step_priority_override
    available = steps.override(steps.available_steps(task, "verify"), overrides)
    first = [_CHANGE_PASSWORD] if task.runtime.conf.redfish.change_factory_password else []
    return [*first, _CHECK_POWER, *steps.by_priority(available, "verify")]


def _change_factory_password(task: TaskManager) -> Outcome | None:
    task.driver.power.validate(task)
    return task.driver.management.change_factory_password(task)


def _check_power(task: TaskManager) -> Outcome:
    """Check that the BMC answers and accepts the login.

    Read vendor, health, modes and firmware versions; a BMC that reports none is no failure.
    """
    task.driver.power.validate(task)
    node, power_state = task.node, task.driver.power.get_power_state(task)
    management = task.driver.management
    vendor = hardware.read_if_supported(task, management.detect_vendor)
    if vendor is not None:
        node.properties = node.properties | {"vendor": vendor}
    node.boot_mode = hardware.read_if_supported(task, management.get_boot_mode) or node.boot_mode
    secure_boot = hardware.read_if_supported(task, management.get_secure_boot_state)
    node.secure_boot = node.secure_boot if secure_boot is None else secure_boot
    result = dict(hardware.read_in_short(task).result)
    if task.runtime.conf.conductor.enable_health_monitoring:
        health = hardware.read_if_supported(task, management.get_node_health)
        if health not in (None, node.health):
            result["from_health"], node.health = node.health, health
    if node.power_state != power_state:
        result["from_power"], node.power_state = node.power_state, power_state
    return Done(result=result)


def _finish_verify(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    return Transition(event="done", writes=_corrections(task, result))


def _fail_verify(task: TaskManager, failure: FlowFailure) -> Transition:
    corrections = _corrections(task, failure.result)
    return Transition(event="fail", last_error=failure.sentence, writes=corrections)


def _corrections(task: TaskManager, result: Mapping[str, Any]) -> list[DeferredWrite]:
    """Return what tells of the power state and health that ``_check_power`` found changed."""
    tell = {
        "from_power": notification_utils.emit_power_state_corrected_notification,
        "from_health": writes.health_entry,
    }
    return [
        DeferredWrite(partial(write, task.context, task.node, result[was]))
        for was, write in tell.items()
        if was in result
    ]


VERIFY: Final = Phase(
    name="verify",
    own_steps={
        "change_factory_password": _change_factory_password,
        "check_power": _check_power,
    },
    finish=_finish_verify,
    fail=_fail_verify,
    urgent=True,
    tolerant=True,  # Ironic records a failed verify step and still ends manageable
)


# ------------------------------------------------------------------------------------ inspect


def check_inspect(task: TaskManager, arguments: ProvisionArguments) -> None:
    """Raise unless the node's driver can inspect the node."""
    task.driver.power.validate(task)
    task.driver.network.validate(task)
    task.driver.inspect.validate(task)


def begin_inspect(task: TaskManager, arguments: ProvisionArguments) -> None:
    task.node.driver_internal_info.pop(FLOW_RETRY, None)
    cleanup.wipe_internal_info(task, may_keep_agent=True)


def inspect_steps(task: TaskManager, arguments: ProvisionArguments) -> list[Step]:
    """Return the inspection, and for in-band inspection the step that ends the agent."""
    if not task.driver.inspect.in_band:
        return [_INSPECT]
    return [*steps.parent_first(task), _INSPECT, _RELEASE_AGENT]


def abort_inspect(task: TaskManager) -> None:
    """Remove what waits for the agent's inventory."""
    cleanup.tidy_in_turns(task, task.driver.inspect.abort)


def _inspect(
    task: TaskManager, inventory: Json | None = None, plugin_data: Json | None = None
) -> Outcome | None:
    """Let the driver inspect, or process the inventory that the agent sent."""
    if inventory is not None:
        return inspection.process(task, inventory, plugin_data or {})
    outcome = task.driver.inspect.inspect_hardware(task)
    if not isinstance(outcome, Done) or "inventory" not in outcome.result:
        return outcome
    data = outcome.result["inventory"]
    fields = outcome.result.get("node", {})
    return inspection.process(task, data["inventory"], data.get("plugin_data", {}), fields)


def _finish_inspect(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    task.node.driver_internal_info.pop(FLOW_RETRY, None)
    if not task.driver.inspect.in_band:
        return Transition(event="done")
    if task.runtime.conf.inspector.power_off and not cleanup.is_fast_track(task):
        task.forget_agent()
    return Transition(event="done", writes=[_forget_inventory(task)])


def _fail_inspect(task: TaskManager, failure: FlowFailure) -> Transition:
    leaves_agent = task.driver.inspect.in_band and failure.run.step.step == _INSPECT.step
    if failure.run.state == Run.WAITING or leaves_agent:
        abort_inspect(task)
    cleanup.wipe_internal_info(task)
    cleanup.plan_retry(task, failure)
    return Transition(event="fail", last_error=failure.sentence, writes=[_forget_inventory(task)])


def _forget_inventory(task: TaskManager) -> EncodedWrite:
    """Return the write that drops the agent's inventory from the rows of its flow."""
    uuid = task.node.uuid
    return lambda conn: step_rows.forget_args(conn, uuid, (INSPECT.name, DISCOVER.name))


INSPECT: Final = Phase(
    name="inspect",
    own_steps={
        "inspect_hardware": _inspect,
        "finish": lambda task: task.driver.inspect.finish(task),
    },
    finish=_finish_inspect,
    fail=_fail_inspect,
)


# ------------------------------------------------------------------------------------ discover


def start_discovery(task: TaskManager, slot: Slot, inventory: Json, plugin_data: Json) -> None:
    """Process the inventory of an auto-discovered node, which stays in enroll."""
    args = {"inventory": inventory, "plugin_data": plugin_data}
    runner.start(
        task, slot, DISCOVER, internal_step("inspect", "process", args), undo=_undo_discovery
    )


def _undo_discovery(exc: Exception, flow: Flow) -> None:
    flow.task.node.last_error = secrets.brief(exc)
    flow.task.save(flow.cancelled, _forget_inventory(flow.task))


def _finish_discovery(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    """Keep the node, unless other nodes have got all its ports meanwhile."""
    stored, uuid, delete = result.get("inspection"), task.node.uuid, _delete_discovered(task)

    def settle(conn: sa.Connection) -> None:
        if stored and stored.new_ports and not records.list_where(conn, PORT, node_uuid=uuid):
            delete(conn)

    return Transition(event=None, writes=[_forget_inventory(task), settle])


def _fail_discovery(task: TaskManager, failure: FlowFailure) -> Transition:
    """Delete the node: the agent posts again and would enroll another one each time."""
    return Transition(event=None, writes=[_forget_inventory(task), _delete_discovered(task)])


def _delete_discovered(task: TaskManager) -> EncodedWrite:
    uuid = task.node.uuid
    event = row_updates.CrudEvent(task.context, "node", uuid, "delete")
    event.snapshot_deletion(task.node)

    def write(conn: sa.Connection) -> None:
        nodes.delete(conn, uuid)
        event(conn)

    return write


DISCOVER: Final = Phase(
    name="discover",
    own_steps={"process": inspection.process},
    finish=_finish_discovery,
    fail=_fail_discovery,
)


# -------------------------------------------------------------------------------------- adopt


def _adopt(task: TaskManager) -> None:
    """Adopt a machine that runs its user's system, without changing it."""
    driver, node = task.driver, task.node
    driver.power.validate(task)
    driver.boot.validate(task)
    driver.deploy.take_over(task)
    if node.console_enabled:
        console.restore(task)
    node.power_state = driver.power.get_power_state(task) or node.power_state
    node.conductor_affinity = task.runtime.host


def _fail_adopt(task: TaskManager, failure: FlowFailure) -> Transition:
    task.node.power_state = None
    return Transition(event="fail", last_error=failure.sentence)


ADOPT: Final = Phase(
    name="adopt", own_steps={"adopt": _adopt}, finish=ends_with("done"), fail=_fail_adopt
)
