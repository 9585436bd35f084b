"""The hardware type ``redfish``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from bloomery.drivers import base


class RedfishHardware(base.HardwareType):
    """Any machine with a Redfish BMC."""

    supported: ClassVar[Mapping[str, Sequence[str]]] = {
        "bios": ("redfish", "no-bios"),
        "boot": ("redfish-virtual-media",),
        "console": ("no-console",),
        "deploy": ("ramdisk",),
        "firmware": ("redfish", "no-firmware"),
        "inspect": ("redfish", "no-inspect"),
        "management": ("redfish",),
        "network": ("noop",),
        "power": ("redfish",),
        "raid": ("no-raid",),
        "rescue": ("no-rescue",),
        "storage": ("noop",),
        "vendor": ("no-vendor",),
    }
