"""Ironic's names of hardware types and interfaces that Bloomery does not have.

A configuration of Ironic that enables them starts: they are left out, and warned of by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TYPES: Final = "types"
NAMES: Final[Mapping[str, tuple[str, ...]]] = {  # of Ironic 39, and older ones
    TYPES: ("ilo", "ilo5", "intel-ipmi", "irmc"),
    "bios": ("ilo", "irmc"),
    "boot": (
        "ilo-ipxe", "ilo-pxe", "ilo-uefi-https", "ilo-virtual-media", "irmc-pxe",
        "irmc-virtual-media",
    ),
    "console": ("fake-graphical", "ilo", "ipmitool-shellinabox", "redfish-graphical"),
    "deploy": ("anaconda", "ansible", "bootc"),
    "firmware": (),
    "inspect": ("ilo", "inspector", "irmc"),
    "management": ("ilo", "ilo5", "intel-ipmitool", "irmc"),
    "network": ("flat", "ironic-networking", "neutron"),
    "power": ("ilo", "irmc"),
    "raid": ("ilo5", "irmc"),
    "rescue": (),
    "storage": ("cinder", "external"),
    "vendor": ("ilo", "irmc"),
}  # fmt: skip
_CONSOLES: Final = ("fake-graphical", "ipmitool-shellinabox", "redfish-graphical")
_INSTEAD: Final = dict.fromkeys(_CONSOLES, "ipmitool-socat") | dict.fromkeys(
    ("anaconda", "bootc"), "direct"
)


def advised(name: str) -> str:
    """Return the name with what to use instead, if there is something."""
    return f"{name} (use {_INSTEAD[name]})" if name in _INSTEAD else name
