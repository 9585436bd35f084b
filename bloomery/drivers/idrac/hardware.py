"""The hardware type ``idrac``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from bloomery.drivers.redfish.hardware import RedfishHardware


class IdracHardware(RedfishHardware):
    """A Dell machine whose iDRAC speaks Redfish."""

    supported: ClassVar[Mapping[str, Sequence[str]]] = {
        **RedfishHardware.supported,
        "bios": ("idrac-redfish", "redfish", "no-bios"),
        "boot": ("idrac-redfish-virtual-media", *RedfishHardware.supported["boot"][1:]),
        "inspect": ("idrac-redfish", "agent", "no-inspect"),
        "management": ("idrac-redfish",),
        "power": ("idrac-redfish", "redfish"),
        "raid": ("idrac-redfish", "no-raid", "agent"),
        "vendor": ("idrac-redfish", "redfish", "no-vendor"),
    }
