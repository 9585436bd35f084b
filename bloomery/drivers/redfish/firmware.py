"""Which firmware a machine runs: its BIOS and its BMC."""

from __future__ import annotations

from typing import Any, TypeAlias

from bloomery.drivers import base
from bloomery.drivers.redfish import reading
from bloomery.drivers.redfish.interface import Redfish
from bloomery.outcome import Done

Json: TypeAlias = dict[str, Any]


class RedfishFirmware(Redfish, base.Firmware):
    def cache_firmware_components(self, task: base.DriverTask) -> Done | None:
        found = self.access.read(task, components)
        return Done(result={"firmware": found}) if found else None


def components(system: Any) -> list[Json]:
    """Return what the BMC tells of ``bios`` and ``bmc``."""
    found: list[Json] = []
    if system.bios_version:
        found.append({"component": "bios", "current_version": system.bios_version})
    manager = next(reading.managers(system), None)
    if manager is not None and manager.firmware_version:
        version = {"component": "bmc", "current_version": manager.firmware_version}
        found.append(version | {"model": manager.model})
    return found
