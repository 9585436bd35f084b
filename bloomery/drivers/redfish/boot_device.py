"""Which device a system boots from: Redfish's words, and the ways of BMCs that know better.

A BMC that refuses to keep a device is asked for one boot only, and the device is remembered in
``driver_internal_info``: power sets it anew each time that the machine is switched on.
"""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors
from bloomery.drivers.base import HeldNode
from bloomery.drivers.redfish.access import Access

MEMORY: Final = "redfish_boot_device"
TARGETS: Final = {
    "pxe": "Pxe",
    "disk": "Hdd",
    "cdrom": "Cd",
    "bios": "BiosSetup",
    "uefihttp": "UefiHttp",
}
MODES: Final = {"uefi": "UEFI", "bios": "Legacy"}
_DEVICES: Final = {target: device for device, target in TARGETS.items()} | {"UsbCd": "cdrom"}
_MODES: Final = {wire: mode for mode, wire in MODES.items()}


def choose(access: Access, held: HeldNode, device: str, *, persistent: bool) -> None:
    """Boot from ``device``, for good if the BMC lets us.

    Raises InvalidParameterValue, BmcUnreachable, BmcRefused.
    """
    if device not in TARGETS:
        raise errors.InvalidParameterValue(
            reason=f"redfish cannot boot from {device!r}: it knows {', '.join(TARGETS)}",
        )
    memory = held.node.driver_internal_info
    try:
        access.change(
            held, lambda system: _set(system, device, persistent=persistent), repeatable=True
        )
    except errors.BmcRefused as no:
        if not persistent or not 400 <= (no.facts.get("http_status") or 0) < 500:
            raise
        access.change(held, lambda system: set_once(system, device), repeatable=True)
        memory[MEMORY] = device
    else:
        memory.pop(MEMORY, None)


def set_once(system: Any, device: str) -> None:
    _set(system, device, persistent=False)


def _set(system: Any, device: str, *, persistent: bool) -> None:
    """Set the target, and how long it counts unless that is so already.

    Supermicro wants to be told each time; some BMCs want mode, duration and target together.
    """
    import sushy

    target = sushy.BootSource(TARGETS[device])
    wanted = sushy.BootSourceOverrideEnabled("Continuous" if persistent else "Once")
    is_supermicro = (system.manufacturer or "").lower() == "supermicro"
    enabled = None if system.boot.enabled == wanted and not is_supermicro else wanted
    try:
        system.set_system_boot_options(target, enabled=enabled)
    except sushy.exceptions.BadRequestError:
        if system.boot.mode is None:
            raise
        system.set_system_boot_options(target, enabled=wanted, mode=system.boot.mode)


def chosen(system: Any) -> dict[str, Any]:
    """Return {"boot_device": name or None, "persistent": bool or None}."""
    boot = system.boot
    device = _DEVICES.get(getattr(boot.target, "value", ""))
    enabled = getattr(boot.enabled, "value", None)
    if device is None or enabled == "Disabled":
        return {"boot_device": None, "persistent": None}
    return {"boot_device": device, "persistent": enabled == "Continuous"}


def mode(system: Any) -> str | None:
    """Return uefi, bios, or None where the BMC does not tell."""
    return _MODES.get(getattr(system.boot.mode, "value", ""))


def set_mode(system: Any, wanted: str) -> None:
    """Ask for a boot mode unless it is set."""
    import sushy

    if mode(system) != wanted:
        system.set_system_boot_options(mode=sushy.BootSourceOverrideMode(MODES[wanted]))
