"""The boot device of a system, in Redfish's names and those of particular BMCs.

Where a BMC refuses a persistent device, the device is set for one boot and stored in
``driver_internal_info``; each power on sets it again.  What a flow has set is looked at again
before its power on: a BMC may have lost it.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conductor.states import UNSTABLE_STATES
from bloomery.drivers.base import DriverTask
from bloomery.drivers.redfish import reading
from bloomery.drivers.redfish.access import Access
from bloomery.drivers.redfish.bmc_write import BmcWrite, NotYet

MEMORY: Final = "redfish_boot_device"
_NEXT: Final = "redfish_next_boot"  # what a flow has set, until its power on
# Names of the devices at BMCs, normalised; the first offered one is used.
TARGETS: Final[Mapping[str, tuple[str, ...]]] = {
    "pxe": ("pxe",),
    "disk": ("hdd",),
    "cdrom": ("cd", "cddvd", "dvd", "usbcd", "ueficd", "uefiusbcd", "usb"),
    "bios": ("biossetup",),
    "uefihttp": ("uefihttp",),
}
_STANDARD: Final = {
    "pxe": "Pxe", "disk": "Hdd", "cdrom": "Cd", "bios": "BiosSetup", "uefihttp": "UefiHttp",
}  # fmt: skip
MODES: Final = {"uefi": "UEFI", "bios": "Legacy"}
_MODES: Final = {wire.lower(): mode for mode, wire in MODES.items()}  # some BMCs show Uefi
_ALLOWED: Final = "@Redfish.AllowableValues"
_PATHS: Final = {  # parts of UEFI's device paths: our names
    "Uri(": "uefihttp", "MAC(": "pxe", "CDROM(": "cdrom", "USB(": "cdrom", "HD(": "disk",
    "NVMe(": "disk", "Sata(": "disk", "Scsi(": "disk",
}  # fmt: skip
_NO_OVERRIDE: Final = (
    "its BMC offers neither an override of the boot device nor boot options to choose: set the "
    "order in the machine's firmware, and take management interface noop"
)
_NO_URI: Final = "the machine cannot boot from a URL: its BMC has no HttpBootUri"


def choose(
    access: Access,
    task: DriverTask,
    device: str,
    *,
    persistent: bool,
    address: str | None = None,
    mode: str | None = None,
) -> BmcWrite:
    """Return the write that boots from ``device``, persistently if the BMC allows it.

    ``address``: URL of the image for uefihttp; None: firmware asks DHCP.  ``mode``: None: the mode
    that the BMC shows.  Raises InvalidParameterValue for a device that redfish does not know.
    """
    if device not in TARGETS:
        raise errors.InvalidParameterValue(
            reason=f"redfish cannot boot from {device!r}: it knows {', '.join(TARGETS)}",
        )
    memory = task.node.driver_internal_info

    def change(system: Any) -> None:
        import sushy

        memory.pop(MEMORY, None)
        memory.pop(_NEXT, None)
        following = {
            "device": device, "mode": mode or mode_of(system), "persistent": persistent,
            "by_url": address is not None, "state": task.node.provision_state,
        }  # fmt: skip
        try:
            _set(system, device, persistent=persistent, address=address, mode=mode)
        except sushy.exceptions.AccessError:
            raise
        except sushy.exceptions.HTTPError as no:
            if not persistent or not 400 <= no.status_code < 500:
                raise
            _set(system, device, persistent=False, address=address, mode=mode)
            memory[MEMORY] = device
        memory[_NEXT] = following

    def is_so(system: Any) -> bool:
        mode_then = memory.get(_NEXT, {}).get("mode")
        is_set = is_hidden(system) or _shows(system, device, mode_then, address)
        if is_set and persistent and chosen(system)["persistent"] is False:
            memory[MEMORY] = device  # stored for one boot: each power on sets it again
        if is_set and task.node.provision_state not in UNSTABLE_STATES:
            memory.pop(_NEXT, None)  # by a request: no power on of ours belongs to it
        return is_set

    return BmcWrite(
        access=access, task=task, what=f"boot from {device}", change=change, is_so=is_so,
        limit_s=access.conf.redfish.boot_device_timeout,
        hidden=secrets.in_address(address) if address else (),
    )  # fmt: skip


def address_of(system: Any) -> str | None:
    """Return the URL that the BMC has for a boot from uefihttp, if any."""
    return (system.boot.http_boot_uri if system.boot else None) or None


@dataclass(slots=True, kw_only=True)
class Renewal:
    """The boot device of a power on: whether it was set again, and its persistent override."""

    is_renewed: bool = False
    override: dict[str, Any] | None = None


def renew(system: Any, node: Any, order: Renewal) -> None:
    """Set, before a power on, the device that the BMC does not keep, or has lost meanwhile.

    The URL of the image is that which the BMC has.  ``order`` is the power on, which compares its
    ``override`` afterwards.  Raises NotYet until the BMC shows the device.
    """
    memory = node.driver_internal_info
    once, following = memory.get(MEMORY), memory.get(_NEXT) or {}
    if following.get("state") != node.provision_state:
        following = {}  # of a flow that is over
    device, mode = once or following.get("device"), following.get("mode")
    hides = is_hidden(system)
    if device is not None and not (once is None if hides else _shows(system, device, mode)):
        if following.get("by_url") and address_of(system) is None:
            raise NotYet("the BMC has lost the URL to boot from")
        if not order.is_renewed:
            order.is_renewed = True
            persistent = not once and following["persistent"]
            _set(system, device, persistent=persistent, address=address_of(system), mode=mode)
            system.refresh(force=True)
        if not is_hidden(system) and not _shows(system, device, mode):
            raise NotYet(f"the BMC accepted the order to boot from {device}, and does not show it")
    memory.pop(_NEXT, None)
    now = override(system.json)
    if following and once is None and now.get("BootSourceOverrideEnabled") == "Continuous":
        order.override = now


def override(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the target and the duration that a system's document shows."""
    boot = document.get("Boot") or {}
    names = ("BootSourceOverrideTarget", "BootSourceOverrideEnabled")
    return {name: boot[name] for name in names if name in boot}


def _shows(system: Any, device: str, mode: str | None, address: str | None = None) -> bool:
    """Return whether the BMC shows a device, and no other mode or URL than these."""
    is_other_mode = mode is not None and mode_of(system) not in (None, mode)
    is_here = chosen(system)["boot_device"] == device and not is_other_mode
    is_url_shown = "HttpBootUri" in (system.json.get("Boot") or {})
    if address is None or not is_url_shown or "@Redfish.Settings" in system.json:
        return is_here
    urls = (urllib.parse.urlsplit(url) for url in (address_of(system) or "", address))
    return is_here and len({(url.hostname, url.path) for url in urls}) == 1


def is_hidden(system: Any) -> bool:
    """Return whether the BMC has an override that it does not show."""
    return has_override(system) and not _shows_override(system)


def forget_address(system: Any) -> None:
    """Take a URL away from the BMC: the next boot is that of the disk."""
    if address_of(system) is not None:
        _set(system, "disk", persistent=False, address=None, mode=None)


def _set(
    system: Any, device: str, *, persistent: bool, address: str | None, mode: str | None
) -> None:
    """Set target, duration and mode together; a BMC that refuses this gets the target alone.

    Supermicro falls back to Legacy without the mode, and to Once without the duration.  HPE
    refuses the mode, and others a duration that is set already.
    """
    import sushy

    target = offered_target(system, device)
    if not has_override(system):
        _set_option(system, device, persistent=persistent)
        return
    duration = "Continuous" if persistent else "Once"
    wire_mode = MODES[mode] if mode else _value(system, "mode")
    uri = address if device == "uefihttp" else None
    try:
        _write(system, target, duration, wire_mode, uri)
    except sushy.exceptions.BadRequestError:
        if wire_mode is None and _value(system, "enabled") != duration:
            raise
        is_so = _value(system, "enabled") == duration and not _is_supermicro(system)
        _write(system, target, None if is_so else duration, None, uri)
    except sushy.exceptions.MissingAttributeError:
        if uri is None:
            raise
        raise errors.InvalidParameterValue(reason=_NO_URI) from None


def check_uri(system: Any) -> None:
    """Raise InvalidParameterValue where the firmware cannot boot from a URL of our choice."""
    offered_target(system, "uefihttp")
    is_told_elsewhere = "@Redfish.Settings" in system.json
    if "HttpBootUri" not in (system.json.get("Boot") or {}) and not is_told_elsewhere:
        raise errors.InvalidParameterValue(reason=_NO_URI)


def offered_target(system: Any, device: str) -> str:
    """Return the BMC's name for a device.

    Raises InvalidParameterValue where the BMC does not offer it.
    """
    target = target_for(system, device)
    if target is None and not has_override(system) and not _options(system):
        raise errors.InvalidParameterValue(reason=_NO_OVERRIDE)
    if target is None:
        raise errors.InvalidParameterValue(
            reason=f"the machine cannot boot from {device}: its BMC offers "
            f"{', '.join(supported(system)) or 'no device that redfish knows'}",
        )
    return target


def _write(
    system: Any, target: str, enabled: str | None, mode: str | None, uri: str | None
) -> None:
    """Write the values that are not None; without sushy for targets that it does not know."""
    import sushy

    sushy_targets = {source.value for source in sushy.BootSource}
    duration = None if enabled is None else sushy.BootSourceOverrideEnabled(enabled)
    offered = system.boot and system.boot.allowed_values
    if target in sushy_targets and (offered or not _is_supermicro(system)):
        wire_mode = None if mode is None else sushy.BootSourceOverrideMode(mode)
        system.set_system_boot_options(
            sushy.BootSource(target), enabled=duration, mode=wire_mode, http_boot_uri=uri
        )
        return
    values = {"Target": target, "Enabled": enabled, "Mode": mode}
    boot = {f"BootSourceOverride{name}": value for name, value in values.items() if value}
    boot |= {"HttpBootUri": uri} if uri else {}
    tag = system._get_etag()  # noqa: SLF001  sushy offers no other way
    system._conn.patch(system.path, data={"Boot": boot}, etag=tag)  # noqa: SLF001


def _is_supermicro(system: Any) -> bool:
    return (system.manufacturer or "").lower() == "supermicro"


def target_for(system: Any, device: str) -> str | None:
    """Return the BMC's name for a device, or None where the BMC does not offer it.

    Supermicro's virtual CD boots only as UsbCd, although Cd is offered.
    """
    offered = system.boot.allowed_values if system.boot else None
    if not offered and not has_override(system):
        return _STANDARD[device] if device in _options(system).values() else None
    if not offered:
        return _STANDARD[device]
    targets = {_normalized(each): each for each in reversed(offered) if isinstance(each, str)}
    names = TARGETS[device]
    if device == "cdrom" and _is_supermicro(system):
        names = ("usbcd", *names)
    return next((targets[name] for name in names if name in targets), None)


def has_override(system: Any) -> bool:
    """Return whether Boot has an override; some BMCs have an order of boot options alone."""
    boot = system.json.get("Boot") or {}
    is_here = any(name.startswith("BootSourceOverride") for name in boot)
    return is_here or _shows_override(system) or bool(system.boot and system.boot.allowed_values)


def _options(system: Any) -> dict[Any, str | None]:
    """Return our names of the devices of boot options by reference, in the order of boots.

    Without BootOrder and BootNext no option can be chosen, and none is returned.  Source: DMTF
    DSP0268, ComputerSystem, BootOrder; BootOption, Alias and UefiDevicePath.
    """
    boot = system.json.get("Boot") or {}
    order = boot.get("BootOrder") or ()
    can_choose = order or "BootNext" in boot
    devices: dict[Any, str | None] = {}
    for option in reading.members(system, boot, "BootOptions") if can_choose else ():
        alias = _normalized(str(option.get("Alias") or ""))
        path = str(option.get("UefiDevicePath") or "")
        by_alias = [device for device, names in TARGETS.items() if alias in names]
        by_path = [device for part, device in _PATHS.items() if part in path]
        devices[option.get("BootOptionReference")] = next(iter(by_alias + by_path), None)
    return {reference: devices[reference] for reference in order or devices if reference in devices}


def _set_option(system: Any, device: str, *, persistent: bool) -> None:
    """Boot from an option of a device next, or always, on machines without an override.

    A BMC without BootOrder has the next boot alone.
    """
    options, boot = _options(system), system.json["Boot"]
    order = sorted(options, key=lambda reference: options[reference] != device)
    boots_next = "BootNext" in boot and (not persistent or not boot.get("BootOrder"))
    values: dict[str, Any] = {"BootNext": order[0]} if boots_next else {"BootOrder": order}
    if boot.get("BootNext"):
        values["BootNext"] = order[0]  # it comes before the order
    tag = system._get_etag()  # noqa: SLF001  sushy offers no other way
    system._conn.patch(system.path, data={"Boot": values}, etag=tag)  # noqa: SLF001


def _shows_override(system: Any) -> bool:
    target = (system.json.get("Boot") or {}).get("BootSourceOverrideTarget")
    return bool(target or _value(system, "target"))


def _normalized(target: str) -> str:
    return "".join(c for c in target.lower() if c.isalnum())


def supported(system: Any) -> list[str]:
    """Return the boot devices that the BMC offers; all where it does not tell."""
    return [device for device in TARGETS if target_for(system, device) is not None]


def chosen(system: Any) -> dict[str, Any]:
    """Return {"boot_device": name or None, "persistent": bool or None}."""
    if not has_override(system):
        options, boot = _options(system), system.json.get("Boot") or {}
        first = next(iter(options.values()), None) if boot.get("BootOrder") else None
        following = options.get(boot.get("BootNext"), first)
        persistent = None if following is None else following == first
        return {"boot_device": following, "persistent": persistent}
    enabled = _value(system, "enabled")
    boot = system.json.get("Boot") or {}
    target = _value(system, "target") or boot.get("BootSourceOverrideTarget") or ""
    for device in TARGETS if enabled != "Disabled" else ():
        # Usb is a CD only where the BMC offers no other one.
        is_alias = _normalized(target) in TARGETS[device] and target != "Usb"
        if is_alias or target == target_for(system, device):
            return {"boot_device": device, "persistent": enabled == "Continuous"}
    return {"boot_device": None, "persistent": None}


def mode_of(system: Any) -> str | None:
    """Return uefi, bios, or None where the BMC does not tell."""
    mode = (system.json.get("Boot") or {}).get("BootSourceOverrideMode")
    return _MODES.get(str(_value(system, "mode") or mode).lower())


def _value(system: Any, name: str) -> str | None:
    value: str | None = getattr(getattr(system.boot, name, None), "value", None)
    return value


def modes(system: Any) -> list[str]:
    """Return the boot modes that the BMC offers, or [] where it has none."""
    boot = system.json.get("Boot") or {}
    offered = boot.get(f"BootSourceOverrideMode{_ALLOWED}")
    if offered is None:
        return list(MODES) if mode_of(system) else []
    names = {_MODES.get(str(wire).lower()) for wire in offered}
    return [name for name in MODES if name in names]


def set_mode(system: Any, new_mode: str) -> None:
    """Set a boot mode unless it is set.

    Raises InvalidParameterValue for a mode that the BMC does not offer.
    """
    import sushy

    if mode_of(system) == new_mode:
        return
    offered = modes(system)
    if new_mode not in offered:
        raise errors.InvalidParameterValue(
            reason=f"the BMC cannot set boot mode {new_mode}: "
            + (f"it offers {', '.join(offered)}" if offered else "it tells of no boot mode"),
        )
    system.set_system_boot_options(mode=sushy.BootSourceOverrideMode(MODES[new_mode]))
