"""Interfaces that do nothing: ``no-bios`` and others refuse, ``noop`` ones succeed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bloomery.drivers import base, steps


class _Absent(base.Interface):
    """An optional interface that the node does not have; validation fails."""

    def validate(self, task: base.DriverTask) -> None:
        raise self.unsupported(task, self.kind)


class NoBios(_Absent, base.Bios):
    pass


class NoBoot(_Absent, base.Boot):
    """For machines that the conductor cannot boot."""


class NoConsole(_Absent, base.Console):
    pass


class NoDeploy(_Absent, base.Deploy):
    """For machines that are never deployed, only powered and cleaned out of band."""


class NoopDeploy(base.Deploy):
    """Machines installed elsewhere: deployment succeeds at once."""

    @steps.deploy_step(priority=100, resumable=True)
    def deploy(self, task: base.DriverTask) -> None:
        """Do nothing: the system is installed already."""

    def take_over(self, task: base.DriverTask) -> None: ...


class NoFirmware(_Absent, base.Firmware):
    pass


class NoInspect(_Absent, base.Inspect):
    def inspect_hardware(self, task: base.DriverTask) -> None:
        raise self.unsupported(task, "inspect_hardware")


class NoopManagement(base.Management):
    """The boot order is set elsewhere: the network first, then the disk."""

    def get_supported_boot_devices(self, task: base.DriverTask) -> Sequence[str]:
        return ("pxe", "disk")

    def set_boot_device(self, task: base.DriverTask, device: str, persistent: bool = False) -> None:
        """Accept any device without an effect."""

    def get_boot_device(self, task: base.DriverTask) -> dict[str, Any]:
        return {"boot_device": None, "persistent": None}


class NoRaid(_Absent, base.Raid):
    def validate_raid_config(self, task: base.DriverTask, config: Mapping[str, Any]) -> None:
        raise self.unsupported(task, "validate_raid_config")

    def get_logical_disk_properties(self) -> None:
        return None


class NoRescue(_Absent, base.Rescue):
    pass


class NoVendor(_Absent, base.Vendor):
    pass


class NoopStorage(base.Storage):
    """No volumes; the image is always written."""


class NoopNetwork(base.Network):
    """Networks are managed elsewhere: any VIF is accepted and none is kept."""

    def vif_attach(self, task: base.DriverTask, vif_info: Mapping[str, Any]) -> None: ...

    def vif_detach(self, task: base.DriverTask, vif_id: str) -> None: ...

    def vif_list(self, task: base.DriverTask) -> list[dict[str, Any]]:
        return []
