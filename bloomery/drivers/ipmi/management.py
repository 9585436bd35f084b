"""Boot devices, NMI, sensors, log and vendor through ipmitool.

These are plain calls, which block during the gap between two commands.  Legacy BIOS uses ipmitool's
``bootdev``.  Many BMCs ignore its options for UEFI, so that the five boot flag bytes are sent raw
(IPMI 2.0, table 28-14).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.drivers import base, passwords, steps
from bloomery.drivers.ipmi import bmc_log, tool
from bloomery.drivers.ipmi.hardware import IpmitoolInterface
from bloomery.drivers.ipmi.passwords import IpmiPasswordChange
from bloomery.model import capabilities
from bloomery.model.node import Node
from bloomery.outcome import Outcome

_DEFAULT_BOOT_MODE: Final = "uefi"
_VENDORS: Final = {  # by IANA enterprise number: ipmitool lacks the names on some systems
    "2": "ibm", "11": "hp", "343": "intel", "674": "dell", "2011": "huawei", "10368": "fujitsu",
    "10876": "supermicro", "19046": "lenovo", "47196": "hpe",
}  # fmt: skip
_FLAGS: Final = {"pxe": "0x04", "disk": "0x08", "safe": "0x0c", "cdrom": "0x14", "bios": "0x18"}
_SUPERMICRO_DISK: Final = "0x24"
_SELECTORS: Final = {  # of the second byte, bits 5 to 2
    1: "pxe", 2: "disk", 3: "safe", 5: "cdrom", 6: "bios", 8: "cdrom", 9: "disk", 11: "disk",
}  # fmt: skip
_VALID, _PERSISTENT, _EFI = 0x80, 0x40, 0x20  # bits of the first byte
_BLANK: Final = re.compile(r"\n\s*\n")
_SENSOR_TYPE: Final = "Sensor Type ("  # it ends with Analog, Threshold or Discrete)
_BOOT_DATA: Final = re.compile(r"^Boot parameter data:\s*([0-9a-fA-F]{4,})\s*$", re.MULTILINE)

_ADVICE: Final = {  # for what IPMI has no command
    "set_boot_mode": " alone: each boot device is sent with the boot mode; set capability "
    "boot_mode in properties to uefi or bios, then the boot device",
    "set_secure_boot_state": ": IPMI knows no secure boot; use the machine's setup, or driver "
    "redfish",
}

BOOT_MODES: Final = ("uefi", "bios")
BOOT_DEVICES: Final = tuple(_FLAGS)
KEEP_BOOT_DEVICE: Final = ("raw", "0x00", "0x08", "0x03", "0x08")  # not only for a minute
GET_BOOT_DEVICE: Final = ("chassis", "bootparam", "get", "5")


class IpmitoolManagement(IpmitoolInterface, base.Management):
    def get_supported_boot_devices(self, task: base.DriverTask) -> Sequence[str]:
        return BOOT_DEVICES

    def list_ineffective(self, task: base.DriverTask) -> list[str]:
        """Return the boot modes that IPMI does not know."""
        holders = (task.node.instance_info, task.node.properties)
        modes = [capabilities.of(holder).get("boot_mode") for holder in holders]
        return [f"capability boot_mode:{mode}" for mode in modes if mode not in (None, *BOOT_MODES)]

    def unsupported(self, task: base.DriverTask, what: str) -> errors.UnsupportedDriverExtension:
        return super().unsupported(task, f"{what}{_ADVICE.get(what, '')}")

    def set_boot_device(self, task: base.DriverTask, device: str, persistent: bool = False) -> None:
        """Set the device of the next boot, or of all boots.

        With ipmi_force_boot_device the setting is always for one boot, and repeated before each
        power on.
        """
        _check_boot_device(device)
        task.assert_exclusive()
        bmc = self.bmc(task)
        if bmc.info.force_boot_device:
            memory = task.node.driver_internal_info
            if persistent:
                memory["persistent_boot_device"] = device
                memory.pop("is_next_boot_persistent", None)
            else:
                memory["is_next_boot_persistent"] = False
            persistent = False  # the BMC must not keep it
        if bmc.keeps_boot_device:
            bmc.ask(*KEEP_BOOT_DEVICE, write=True)
        bmc.ask(
            *boot_device_command(
                device,
                persistent=persistent,
                uefi=is_uefi(task.node),
                vendor=task.node.properties.get("vendor"),
            ),
            write=True,
        )
        task.save()

    def get_boot_device(self, task: base.DriverTask) -> dict[str, Any]:
        bmc = self.bmc(task)
        noted = task.node.driver_internal_info.get("persistent_boot_device")
        if bmc.info.force_boot_device and noted is not None:
            return {"boot_device": noted, "persistent": True}
        return parse_boot_device(bmc.ask(*GET_BOOT_DEVICE))

    def inject_nmi(self, task: base.DriverTask) -> None:
        self.bmc(task).tell("power", "diag", write=True)

    def get_sensors_data(self, task: base.DriverTask) -> dict[str, dict[str, dict[str, Any]]]:
        return parse_sensors(self.bmc(task).ask("sdr"))

    def read_bmc_log(self, task: base.DriverTask) -> dict[str, Any]:
        return bmc_log.read(self.bmc(task))

    @steps.keeps_disks
    @steps.out_of_band_step()
    def clear_bmc_log(self, task: base.DriverTask) -> Outcome:
        """Clear the system event log, and read that it is empty."""
        return bmc_log.clear(self.bmc(task), task)

    @steps.keeps_disks
    @steps.clean_step(
        priority=0, argsinfo=passwords.STEP_ARGS, requires_ramdisk=False, resumable=True
    )
    @steps.service_step(argsinfo=passwords.STEP_ARGS, requires_ramdisk=False, resumable=True)
    def set_bmc_password(self, task: base.DriverTask, password: Any = None) -> Outcome | None:
        """Change the password of driver_info at the BMC, for all nodes with that user."""
        return IpmiPasswordChange(self.conf, task, password).run()

    def detect_vendor(self, task: base.DriverTask) -> str | None:
        """Return the vendor's name in lower case, shortened for well-known vendors; or None."""
        return parse_vendor(self.bmc(task).ask("mc", "info"))


def parse_vendor(output: str) -> str | None:
    facts = tool.fields(output)
    name = facts.get("Manufacturer Name", "").lower()
    vendor = _VENDORS.get(facts.get("Manufacturer ID", ""))
    return vendor or (None if not name or name.startswith("unknown") else name)


def parse_sensors(output: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return the sensors of ``sdr`` with a reading, as Ironic: {type: {Sensor ID: {name: value}}}.

    Raises FailedToParseSensorData where there is none.
    """
    data: dict[str, dict[str, dict[str, str]]] = {}
    for block in _BLANK.split(output):
        fields = {name: value for name, value in tool.fields(block).items() if value}
        kind = next((fields[name] for name in fields if name.startswith(_SENSOR_TYPE)), None)
        if kind is not None and "Sensor ID" in fields and "Sensor Reading" in fields:
            data.setdefault(kind.split()[0], {})[fields["Sensor ID"]] = fields
    if output.strip() and not data:
        raise errors.FailedToParseSensorData(reason="its output names no sensor with a reading")
    return data


def is_uefi(node: Node) -> bool:
    """Return whether the node boots by UEFI: as its instance says, else the node.

    UEFI by default.
    """
    return (capabilities.mode_of(node) or _DEFAULT_BOOT_MODE) == "uefi"


def boot_device_command(
    device: str, *, persistent: bool, uefi: bool, vendor: str | None
) -> tuple[str, ...]:
    """Return the command that sets ``device``.  Raises InvalidParameterValue for an unknown one."""
    _check_boot_device(device)
    if not uefi:
        options = ("options=persistent",) if persistent else ()
        return ("chassis", "bootdev", device, *options)
    odd = device == "disk" and vendor == "supermicro"
    flags = _SUPERMICRO_DISK if odd else _FLAGS[device]
    valid = "0xe0" if persistent else "0xa0"
    return ("raw", "0x00", "0x08", "0x05", valid, flags, "0x00", "0x00", "0x00")


def _check_boot_device(device: str) -> None:
    if device not in _FLAGS:
        raise errors.InvalidParameterValue(
            reason=f"Invalid boot device {device} specified: IPMI takes {', '.join(BOOT_DEVICES)}",
        )


def parse_boot_device(output: str) -> dict[str, Any]:
    """Parse the output of ``chassis bootparam get 5``; None for missing values."""
    flags = _boot_flags(output)
    if flags is None:
        return {"boot_device": None, "persistent": None}
    device = _SELECTORS.get(flags[1] >> 2 & 0xF)
    return {"boot_device": device, "persistent": bool(flags[0] & _PERSISTENT)}


def parse_boot_mode(output: str) -> str | None:
    """Return the boot mode that was set with the boot device, or None where none was.

    It is no fact about the machine: ipmitool asks for bios unless it is told otherwise.
    """
    flags = _boot_flags(output)
    if flags is None or not flags[0] & _VALID:
        return None
    return "uefi" if flags[0] & _EFI else "bios"


def _boot_flags(output: str) -> bytes | None:
    data = _BOOT_DATA.search(output)
    return None if data is None else bytes.fromhex(data[1][:4])
