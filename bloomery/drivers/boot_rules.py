"""Rules of boot devices: whether one is set for one boot or for each, and boots by URL.

The flow asks for a boot or for each; ``driver_info/force_persistent_boot_device`` overrides it for
BMCs that lose a device for one boot, or that keep one for good.  Only UEFI firmware boots by URL.
"""

from __future__ import annotations

from typing import Final

from bloomery import errors, parsing
from bloomery.drivers.base import Boot, DriverTask
from bloomery.model import architectures, capabilities

BY_URL: Final = "uefihttp"  # the device
_KEY: Final = "force_persistent_boot_device"
_DEFAULT: Final = "Default"
_CHOICES: Final = {"Always": True, "Never": False, _DEFAULT: None}
PROPERTIES: Final = {
    _KEY: "Always: each boot device is set for every boot; Never: for one boot; Default: as a "
    "flow needs it. Optional.",
}


def is_persistent(task: DriverTask, persistent: bool) -> bool:
    """Return whether to set a device for every boot, where the flow asks for ``persistent``.

    True and false are Ironic's old names of Always and Default.  Raises InvalidParameterValue for
    an unknown choice.
    """
    value = task.driver_info.get(_KEY) or _DEFAULT
    if value in list(_CHOICES):
        choice = _CHOICES[value]
        return persistent if choice is None else choice
    try:
        return parsing.boolean(value, strict=True) or persistent
    except ValueError:
        raise errors.InvalidParameterValue(
            reason=f"driver_info/{_KEY} takes {', '.join(_CHOICES)}, not {value!r}",
        ) from None


def check_architecture(task: DriverTask) -> None:
    """Raise InvalidParameterValue for a node of ARM with boot mode bios, which ARM has not."""
    arch = architectures.of(task.node.properties)
    if arch == architectures.AARCH64 and capabilities.mode_of(task.node) == "bios":
        raise errors.InvalidParameterValue(
            reason=f"the node has boot mode bios, and its properties/cpu_arch is {arch}, whose "
            "machines boot in mode uefi alone: set boot_mode:uefi in properties/capabilities",
        )


def check_uefi(interface: Boot, task: DriverTask) -> None:
    """Raise InvalidParameterValue for a node of another boot mode; an unknown one passes."""
    if capabilities.mode_of(task.node) == "bios":
        raise errors.InvalidParameterValue(
            reason=f"boot interface {interface.name} needs boot mode uefi, and the node has bios: "
            "set boot_mode:uefi in properties/capabilities, or take boot interface ipxe",
        )
