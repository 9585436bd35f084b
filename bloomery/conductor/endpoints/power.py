"""RPC methods for power, boot devices and consoles."""

from __future__ import annotations

from typing import Any

from bloomery import errors
from bloomery.conductor import bmc_sharing, console, deployments, power, steps, tasks, validation
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.task_manager import TaskManager
from bloomery.drivers import base
from bloomery.drivers.bmc import gateway
from bloomery.model.provision import ProvisionArguments
from bloomery.model.request import Request
from bloomery.model.rules import verbs

Json = dict[str, Any]


class PowerEndpoints:
    """Serves ``rpc.contract.Power``."""

    runtime: ConductorRuntime

    def change_node_power_state(
        self,
        request: Request,
        node_uuid: str,
        new_state: str,
        timeout_s: float | None,
    ) -> None:
        with tasks.order(self.runtime, request, node_uuid, new_state) as (task, slot):
            power.check(task, new_state)
            before = power.steps_of_relatives(task, new_state)
            power.start_power(task, slot, new_state, timeout_s=timeout_s, before=before)

    def change_node_boot_mode(self, request: Request, node_uuid: str, new_mode: str) -> None:
        with tasks.order(self.runtime, request, node_uuid, "mode") as (task, slot):
            verbs.check_boot_mode(task.node, new_mode)
            power.start_boot_setting(task, slot, "boot_mode", new_mode)

    def change_node_secure_boot(self, request: Request, node_uuid: str, on: bool) -> None:
        with tasks.order(self.runtime, request, node_uuid, "mode") as (task, slot):
            verbs.check_secure_boot(task.node, on)
            power.start_boot_setting(task, slot, "secure_boot", on)

    def set_boot_device(
        self,
        request: Request,
        node_uuid: str,
        device: str,
        persistent: bool,
    ) -> None:
        def call(task: TaskManager, management: base.Management) -> None:
            management.set_boot_device(task, device, persistent)
            task.save()

        tasks.ask_management(
            self.runtime, request, node_uuid, "set boot device", call, insists=True
        )

    def get_boot_device(self, request: Request, node_uuid: str) -> Json:
        return tasks.ask_management(
            self.runtime, request, node_uuid, "get boot device",
            lambda task, management: management.get_boot_device(task), shared=True,
        )  # fmt: skip

    def get_supported_boot_devices(self, request: Request, node_uuid: str) -> list[str]:
        def work(task: TaskManager) -> list[str]:
            return list(task.driver.management.get_supported_boot_devices(task))

        return tasks.in_worker(
            self.runtime, request, node_uuid, work, shared=True, purpose="list boot devices"
        )

    def set_console_mode(self, request: Request, node_uuid: str, enabled: bool) -> None:
        with tasks.order(self.runtime, request, node_uuid, "console") as (task, slot):
            console.start_switch(task, slot, enabled)

    def get_console_information(self, request: Request, node_uuid: str) -> Json | None:
        with tasks.shared(self.runtime, request, node_uuid) as task:
            return console.show(task)

    def validate_driver_interfaces(self, request: Request, node_uuid: str) -> Json:
        with tasks.shared(self.runtime, request, node_uuid) as task:
            results = validation.validate(task)
            is_valid = results["deploy"]["result"]
            files = deployments.remote_files(task, ProvisionArguments()) if is_valid else []
        try:
            tasks.look_at(self.runtime, files)
        except errors.Invalid as exc:
            results["deploy"] = {"result": False, "reason": str(exc)}
        return results

    def list_steps(self, request: Request, node_uuid: str, phase: str) -> list[Json]:
        with tasks.shared(self.runtime, request, node_uuid) as task:
            offered = steps.available_steps(task, phase)
        return [step.shown() | {"argsinfo": step.argsinfo or {}} for step in offered]

    def describe_work(self, request: Request, node_uuid: str) -> Json:
        since = self.runtime.workers.missing_since.get(node_uuid)
        with tasks.shared(self.runtime, request, node_uuid) as task:
            bmc, fault = None, None
            try:
                bmc = task.driver.power.describe_bmc(task)
            except errors.Invalid as exc:
                fault = "; ".join(filter(None, (str(exc), validation.describe_misspelt(task))))
            shared = bmc_sharing.describe(task.context, task.node)
            refusal = deployments.refusal(task)
        return {"bmc": bmc, "bmc_shared": shared, "driver_info_fault": fault,
                "deploy_refusal": refusal,
                "no_worker_since": since and since.isoformat()}  # fmt: skip

    def list_bmcs(self, request: Request) -> list[Json]:
        return [each.describe_all() for each in gateway.of(self.runtime.conf).bmcs()]

    def examine_bmc(self, request: Request, node_uuid: str) -> Json:
        def work(task: TaskManager) -> Json:
            task.driver.power.validate(task)
            return task.driver.power.examine_bmc(task)

        return tasks.in_worker(
            self.runtime, request, node_uuid, work, purpose="check BMC", shared=True, insists=True
        )

    def get_driver_properties(self, request: Request, driver: str) -> Json:
        return dict(self.runtime.registry.properties_of(driver))
