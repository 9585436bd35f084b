"""The hardware type ``ipmi``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from bloomery.drivers import base
from bloomery.drivers.ipmi import tool


class IpmiHardware(base.HardwareType):
    """Machines whose BMC speaks IPMI 1.5 or 2.0.  Raises CannotStart without ipmitool.

    IPMI mounts no images, so that deploying waits for a boot interface of the network.
    """

    supported: ClassVar[Mapping[str, Sequence[str]]] = {
        "bios": ("no-bios",),
        "boot": ("no-boot",),
        "console": ("no-console",),
        "deploy": ("no-deploy",),
        "firmware": ("no-firmware",),
        "inspect": ("no-inspect",),
        "management": ("ipmitool",),
        "network": ("noop",),
        "power": ("ipmitool",),
        "raid": ("no-raid",),
        "rescue": ("no-rescue",),
        "storage": ("noop",),
        "vendor": ("ipmitool", "no-vendor"),
    }

    def __init__(self) -> None:
        tool.require()
