"""The hardware type ``manual-management``: machines without a BMC.

An operator switches them and sets their boot order; Bloomery records the power state that it asks
for, or has an agent restart the machine.  Agents boot from the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from bloomery.drivers import base


class ManualHardware(base.HardwareType):
    supported: ClassVar[Mapping[str, Sequence[str]]] = {
        "bios": ("no-bios",),
        "boot": ("ipxe", "pxe"),
        "console": ("no-console", "console-server"),
        "deploy": ("direct", "ramdisk", "custom-agent", "bootc", "autodetect", "noop"),
        "firmware": ("no-firmware",),
        "inspect": ("agent", "no-inspect"),
        "management": ("noop", "fake"),
        "network": ("noop", "ironic-networking"),
        "power": ("fake", "agent"),
        "raid": ("no-raid", "agent"),
        "rescue": ("no-rescue", "agent"),
        "storage": ("noop",),
        "vendor": ("no-vendor",),
    }
