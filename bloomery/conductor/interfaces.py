"""Calls of a node's interfaces without a flow: changes that are done on return, and questions.

A BMC is called in a worker (``tasks.in_worker``).
"""

from __future__ import annotations

from typing import Any

from bloomery import errors
from bloomery.conductor import bmc_sharing, deployments, steps, tasks, validation
from bloomery.conductor.runtime import Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.db import nodes
from bloomery.drivers import base
from bloomery.drivers.bmc import gateway
from bloomery.model.request import ProvisionArguments
from bloomery.model.rules import attributes

Json = dict[str, Any]


# ------------------------------------------------------------------------- questions of a node


def validate(context: Context, node_uuid: str) -> Json:
    with tasks.shared(context, node_uuid) as task:
        results = validation.validate(task)
        is_valid = results["deploy"]["result"]
        files = deployments.remote_files(task, ProvisionArguments()) if is_valid else []
    try:
        if looked := tasks.look_at(context.runtime, files):
            with tasks.shared(context, node_uuid) as task:
                deployments.choose_interface(task, looked)
                results = validation.validate(task)
    except errors.Invalid as exc:
        results["deploy"] = {"result": False, "reason": str(exc)}
    return results


def list_steps(context: Context, node_uuid: str, phase: str) -> list[Json]:
    with tasks.shared(context, node_uuid) as task:
        available = steps.available_steps(task, phase)
    return [
        step.shown() | {"argsinfo": step.argsinfo or {}, "keeps_disks": step.keeps_disks}
        for step in available
    ]


def describe_work(context: Context, node_uuid: str) -> Json:
    since = context.runtime.workers.missing_since.get(node_uuid)
    heard_at = context.runtime.heartbeats.last_at(node_uuid)
    with tasks.shared(context, node_uuid) as task:
        bmc, fault = None, None
        try:
            bmc = task.driver.power.describe_bmc(task)
        except errors.Invalid as exc:
            fault = "; ".join(filter(None, (str(exc), validation.describe_misspelt(task))))
        return {
            "bmc": bmc, "bmc_shared": bmc_sharing.describe(context, task.node),
            "driver_info_fault": fault, "deploy_refusal": deployments.refusal(task),
            "no_worker_since": since and since.isoformat(),
            "agent_heard_at": heard_at and heard_at.isoformat(),
        }  # fmt: skip


def list_bmcs(context: Context) -> list[Json]:
    return [each.describe_all() for each in gateway.of(context.runtime.conf).bmcs()]


def examine_bmc(context: Context, node_uuid: str) -> Json:
    def work(task: TaskManager) -> Json:
        task.driver.power.validate(task)
        return task.driver.power.examine_bmc(task)

    return tasks.in_worker(context, node_uuid, work, purpose="check BMC", shared=True, insists=True)


def read_bmc_log(context: Context, node_uuid: str) -> Json:
    return tasks.ask_management(
        context, node_uuid, "read BMC log",
        lambda task, management: management.read_bmc_log(task), shared=True, insists=True,
    )  # fmt: skip


def get_sensors(context: Context, node_uuid: str) -> Json:
    runtime, options = context.runtime, context.runtime.conf.sensor_data
    also_free = options.enable_for_undeployed_nodes
    with runtime.db.read() as conn:
        is_listed, in_maintenance = nodes.get_sensor_facts(conn, node_uuid, also_free=also_free)
    reason = None
    if not options.send_sensor_data:
        reason = f"sensors are not read: set [sensor_data]send_sensor_data on host {runtime.host}"
    elif not is_listed and in_maintenance:
        reason = "sensors are not read in maintenance"
    elif not is_listed:
        option = "[sensor_data]enable_for_undeployed_nodes"
        reason = f"sensors of machines that are not active are not read: set {option}"
    return {
        "interval_s": options.interval, "is_read": reason is None, "reason": reason,
        **runtime.sensors.describe_hours(node_uuid),
    }  # fmt: skip


def get_driver_properties(context: Context, driver: str) -> Json:
    return dict(context.runtime.registry.properties_of(driver))


# -------------------------------------------------------------- boot devices, NMI and indicators


def set_boot_device(context: Context, node_uuid: str, device: str, persistent: bool) -> None:
    def call(task: TaskManager, management: base.Management) -> None:
        management.set_boot_device(task, device, persistent)
        task.save()

    tasks.ask_management(context, node_uuid, "set boot device", call, insists=True)


def get_boot_device(context: Context, node_uuid: str) -> Json:
    return tasks.ask_management(
        context, node_uuid, "get boot device",
        lambda task, management: management.get_boot_device(task), shared=True,
    )  # fmt: skip


def get_supported_boot_devices(context: Context, node_uuid: str) -> list[str]:
    return tasks.in_worker(
        context, node_uuid,
        lambda task: list(task.driver.management.get_supported_boot_devices(task)),
        shared=True, purpose="list boot devices",
    )  # fmt: skip


def inject_nmi(context: Context, node_uuid: str) -> None:
    tasks.ask_management(
        context, node_uuid, "inject nmi",
        lambda task, management: management.inject_nmi(task), insists=True,
    )  # fmt: skip


def get_supported_indicators(context: Context, node_uuid: str, component: str | None) -> Json:
    return tasks.ask_management(
        context, node_uuid, "list indicators",
        lambda task, management: dict(management.get_supported_indicators(task, component)),
        shared=True,
    )  # fmt: skip


def get_indicator_state(context: Context, node_uuid: str, component: str, indicator: str) -> str:
    return tasks.ask_management(
        context, node_uuid, "get indicator",
        lambda task, management: management.get_indicator_state(task, component, indicator),
    )  # fmt: skip


def set_indicator_state(
    context: Context, node_uuid: str, component: str, indicator: str, state: str
) -> None:
    tasks.ask_management(
        context, node_uuid, "set indicator",
        lambda task, management: management.set_indicator_state(task, component, indicator, state),
        insists=True,
    )  # fmt: skip


# -------------------------------------------------------------------------------- RAID and VIFs


def set_target_raid_config(context: Context, node_uuid: str, target_raid_config: Json) -> None:
    attributes.refuse_sealed_in(target_raid_config)
    with tasks.exclusive(context, node_uuid, "set target raid config") as task:
        if target_raid_config:
            task.driver.raid.validate_raid_config(task, target_raid_config)
        task.node.target_raid_config = target_raid_config
        task.save()


def get_raid_logical_disk_properties(context: Context, driver: str) -> Json:
    interface = context.runtime.registry.default_interface(driver, "raid")
    assert isinstance(interface, base.Raid)
    properties = interface.get_logical_disk_properties()
    if properties is None:
        raise errors.UnsupportedDriverExtension(
            driver=driver, extension="get_raid_logical_disk_properties"
        )
    return dict(properties)


def vif_attach(context: Context, node_uuid: str, vif_info: Json) -> None:
    with tasks.exclusive(context, node_uuid, "attach vif") as task:
        task.driver.network.vif_attach(task, vif_info)
        task.save()


def vif_detach(context: Context, node_uuid: str, vif_id: str) -> None:
    with tasks.exclusive(context, node_uuid, "detach vif") as task:
        task.driver.network.vif_detach(task, vif_id)
        task.save()


def vif_list(context: Context, node_uuid: str) -> list[Json]:
    with tasks.shared(context, node_uuid) as task:
        return task.driver.network.vif_list(task)
