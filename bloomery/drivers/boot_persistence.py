"""Whether a boot device is set for one boot or for each one.

The flow asks; ``driver_info/force_persistent_boot_device`` overrides it for BMCs that lose a device
for one boot, or that keep one for good.
"""

from __future__ import annotations

from typing import Final

from oslo_utils import strutils

from bloomery import errors
from bloomery.drivers.base import DriverTask

_KEY: Final = "force_persistent_boot_device"
_DEFAULT: Final = "Default"
_CHOICES: Final = {"Always": True, "Never": False, _DEFAULT: None}
PROPERTIES: Final = {
    _KEY: "Always: each boot device is set for every boot; Never: for one boot; Default: as a "
    "flow needs it. Optional.",
}


def check(task: DriverTask) -> None:
    """Raise InvalidParameterValue for an unknown choice."""
    _forced(task)


def of(task: DriverTask, persistent: bool) -> bool:
    """Return whether to set a device for every boot, where the flow asks for ``persistent``."""
    forced = _forced(task)
    return persistent if forced is None else forced


def _forced(task: DriverTask) -> bool | None:
    """Return the node's choice; true and false are Ironic's old names of Always and Default."""
    value = task.driver_info.get(_KEY) or _DEFAULT
    if value in list(_CHOICES):
        return _CHOICES[value]
    try:
        return strutils.bool_from_string(value, strict=True) or None
    except ValueError:
        raise errors.InvalidParameterValue(
            reason=f"driver_info/{_KEY} takes {', '.join(_CHOICES)}, not {value!r}",
        ) from None
