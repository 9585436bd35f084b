"""The hardware type ``ipmi``, and the base of its interfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers import base
from bloomery.drivers.bmc import gateway
from bloomery.drivers.ipmi import info, tool
from bloomery.drivers.ipmi.bmc import IpmiBmc
from bloomery.drivers.ipmi.info import bmc_system


class IpmiHardware(base.HardwareType):
    """Machines with an IPMI 1.5 or 2.0 BMC.  Raises CannotStart without ipmitool.

    IPMI has no virtual media: agents boot from the network, where nodes choose ipxe or pxe.
    """

    supported: ClassVar[Mapping[str, Sequence[str]]] = {
        "bios": ("no-bios",),
        "boot": ("no-boot", "ipxe", "pxe"),
        "console": ("no-console", "ipmitool-socat", "console-server"),
        "deploy": ("no-deploy", "direct", "custom-agent", "bootc", "autodetect"),
        "firmware": ("no-firmware",),
        "inspect": ("agent", "no-inspect"),
        "management": ("ipmitool", "noop"),
        "network": ("noop", "ironic-networking"),
        "power": ("ipmitool",),
        "raid": ("no-raid", "agent"),
        "rescue": ("no-rescue", "agent"),
        "storage": ("noop",),
        "vendor": ("ipmitool", "no-vendor"),
    }

    def __init__(self) -> None:
        tool.require()

    def bmc_system(self, info: Mapping[str, Any]) -> base.BmcSystem | None:
        return bmc_system(info)


class IpmitoolInterface(base.Interface):
    """The base of the ``ipmitool`` interfaces.  Raises CannotStart for wrong options."""

    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        self.gateway = gateway.of(conf)  # keeps the shared gateway alive
        for suite in conf.ipmi.cipher_suite_versions:
            if not suite.isdecimal():
                raise errors.CannotStart(
                    reason=f"cannot use the configuration, group [ipmi]: option "
                    f"cipher_suite_versions takes numbers such as 3,17, not {suite!r}",
                )

    def get_properties(self) -> dict[str, str]:
        return dict(info.PROPERTIES)

    def validate(self, task: base.DriverTask) -> None:
        info.parse(task.driver_info)

    def bmc(self, task: base.DriverTask) -> IpmiBmc:
        return IpmiBmc(self.conf, task)
