"""RPC methods for RAID, NMI, indicators, virtual media and vendor calls."""

from __future__ import annotations

from typing import Any

from bloomery import errors
from bloomery.conductor import tasks, vendor_passthru, virtual_media
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.drivers import base
from bloomery.drivers.agent_boot import preflight
from bloomery.model.request import Request
from bloomery.model.rules import attributes
from bloomery.model.vendor_call import VendorCall

Json = dict[str, Any]


class HardwareEndpoints:
    """Serves ``rpc.contract.Hardware``."""

    runtime: ConductorRuntime

    # ------------------------------------------------------------------------------------ RAID

    def set_target_raid_config(
        self, request: Request, node_uuid: str, target_raid_config: Json
    ) -> None:
        attributes.refuse_sealed_in(target_raid_config)
        with tasks.exclusive(self.runtime, request, node_uuid, "set target raid config") as task:
            if target_raid_config:
                task.driver.raid.validate_raid_config(task, target_raid_config)
            task.node.target_raid_config = target_raid_config
            task.save()

    def get_raid_logical_disk_properties(self, request: Request, driver: str) -> Json:
        interface = self.runtime.registry.default_interface(driver, "raid")
        assert isinstance(interface, base.Raid)
        properties = interface.get_logical_disk_properties()
        if properties is None:
            raise errors.UnsupportedDriverExtension(
                driver=driver, extension="get_raid_logical_disk_properties"
            )
        return dict(properties)

    # --------------------------------------------------------------------------- NMI and lights

    def inject_nmi(self, request: Request, node_uuid: str) -> None:
        tasks.ask_management(
            self.runtime, request, node_uuid, "inject nmi",
            lambda task, management: management.inject_nmi(task), insists=True,
        )  # fmt: skip

    def get_supported_indicators(
        self, request: Request, node_uuid: str, component: str | None
    ) -> Json:
        return tasks.ask_management(
            self.runtime, request, node_uuid, "list indicators",
            lambda task, management: dict(management.get_supported_indicators(task, component)),
            shared=True,
        )  # fmt: skip

    def get_indicator_state(
        self, request: Request, node_uuid: str, component: str, indicator: str
    ) -> str:
        return tasks.ask_management(
            self.runtime, request, node_uuid, "get indicator",
            lambda task, management: management.get_indicator_state(task, component, indicator),
        )  # fmt: skip

    def set_indicator_state(
        self, request: Request, node_uuid: str, component: str, indicator: str, state: str
    ) -> None:
        tasks.ask_management(
            self.runtime, request, node_uuid, "set indicator",
            lambda task, management: management.set_indicator_state(
                task, component, indicator, state
            ),
            insists=True,
        )  # fmt: skip

    # ---------------------------------------------------------------------------- virtual media

    def attach_virtual_media(
        self,
        request: Request,
        node_uuid: str,
        device_type: str,
        image_url: str,
        image_download_source: str | None,
    ) -> None:
        file = base.RemoteFile(name="image_url", url=image_url)
        tasks.look_at(self.runtime, preflight.due(self.runtime.conf, [file]))
        with tasks.order(self.runtime, request, node_uuid, "attach media") as (task, slot):
            virtual_media.start_attach(task, slot, device_type, image_url)

    def detach_virtual_media(
        self, request: Request, node_uuid: str, device_types: list[str] | None
    ) -> None:
        with tasks.order(self.runtime, request, node_uuid, "detach media") as (task, slot):
            virtual_media.start_detach(task, slot, device_types)

    def get_virtual_media(self, request: Request, node_uuid: str) -> list[Json]:
        return tasks.ask_management(
            self.runtime, request, node_uuid, "list media",
            lambda task, management: list(management.get_virtual_media(task)), shared=True,
        )  # fmt: skip

    # ----------------------------------------------------------------------------- vendor calls

    def vendor_passthru(
        self, request: Request, node_uuid: str, driver_method: str, http_method: str, info: Json
    ) -> Json:
        call = VendorCall(method=driver_method, http_method=http_method, info=info)
        return vendor_passthru.perform(self.runtime, request, node_uuid, call)

    def driver_vendor_passthru(
        self, request: Request, driver: str, driver_method: str, http_method: str, info: Json
    ) -> Json:
        call = VendorCall(method=driver_method, http_method=http_method, info=info)
        return vendor_passthru.perform_for_driver(self.runtime, driver, call)

    def get_node_vendor_passthru_methods(self, request: Request, node_uuid: str) -> Json:
        with tasks.shared(self.runtime, request, node_uuid) as task:
            return vendor_passthru.list_methods(task.driver.vendor)

    def get_driver_vendor_passthru_methods(self, request: Request, driver: str) -> Json:
        return vendor_passthru.list_driver_methods(self.runtime, driver)
