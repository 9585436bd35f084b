"""Versions of firmware as the BMC tells them."""

from __future__ import annotations

from typing import Any, TypeAlias

from bloomery.drivers import base
from bloomery.drivers.redfish import reading
from bloomery.drivers.redfish.hardware import RedfishInterface
from bloomery.outcome import Done

Json: TypeAlias = dict[str, Any]


class RedfishFirmware(RedfishInterface, base.Firmware):
    def cache_firmware_components(self, task: base.DriverTask) -> Done | None:
        rows = self.access.read(task, components)
        return Done(result={"firmware": rows}) if rows else None


def components(system: Any) -> list[Json]:
    """Return what the BMC tells of ``bios`` and ``bmc``."""
    versions: list[Json] = []
    if system.bios_version:
        versions.append({"component": "bios", "current_version": system.bios_version})
    manager = next(reading.managers(system), None)
    if manager is not None and manager.firmware_version:
        version = {"component": "bmc", "current_version": manager.firmware_version}
        versions.append(version | {"model": manager.model})
    return versions
