"""Boots by URL, which only UEFI firmware has."""

from __future__ import annotations

from typing import Final

from bloomery import errors
from bloomery.drivers.base import Boot, DriverTask
from bloomery.model import capabilities

DEVICE: Final = "uefihttp"


def check(interface: Boot, task: DriverTask) -> None:
    """Raise InvalidParameterValue for a node of another boot mode; an unknown one passes."""
    if capabilities.mode_of(task.node) == "bios":
        raise errors.InvalidParameterValue(
            reason=f"boot interface {interface.name} needs boot mode uefi, and the node has bios: "
            "set boot_mode:uefi in properties/capabilities, or take boot interface ipxe",
        )
