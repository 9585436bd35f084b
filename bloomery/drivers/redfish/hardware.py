"""The hardware type ``redfish``, and the base of its interfaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from bloomery.conf import Conf
from bloomery.drivers import base
from bloomery.drivers.redfish import access, driver_info

T = TypeVar("T")


class RedfishHardware(base.HardwareType):
    """Any machine with a Redfish BMC."""

    supported: ClassVar[Mapping[str, Sequence[str]]] = {
        "bios": ("redfish", "no-bios"),
        "boot": ("redfish-virtual-media", "ipxe", "redfish-https", "http-ipxe", "pxe", "http"),
        "console": ("no-console", "ipmitool-socat", "console-server", "redfish-ssh"),
        "deploy": ("ramdisk", "direct", "custom-agent", "bootc", "autodetect"),
        "firmware": ("redfish", "no-firmware"),
        "inspect": ("redfish", "agent", "no-inspect"),
        "management": ("redfish", "noop"),
        "network": ("noop", "ironic-networking"),
        "power": ("redfish",),
        "raid": ("redfish", "no-raid", "agent"),
        "rescue": ("no-rescue", "agent"),
        "storage": ("noop",),
        "vendor": ("redfish", "no-vendor"),
    }

    def bmc_system(self, info: Mapping[str, Any]) -> base.BmcSystem | None:
        return driver_info.bmc_system(info)


class RedfishInterface(base.Interface):
    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        self.access = access.of(conf)

    def get_properties(self) -> dict[str, str]:
        return dict(driver_info.PROPERTIES)

    def validate(self, task: base.DriverTask) -> None:
        self.access.account(task)

    def unblocked(self, change: Callable[[Any], T]) -> Callable[[Any], T]:
        """Return a change that also succeeds where settings of an earlier one are pending."""
        return change

    def close(self) -> None:
        self.access.close()
