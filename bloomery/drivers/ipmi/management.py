"""Boot devices, sensors, NMI and vendor through ipmitool.

These are plain calls: they keep their caller waiting while the gap between two commands passes.

With legacy BIOS ipmitool knows the words that set a boot device; its options for UEFI are not
honoured by enough BMCs, so that the five bytes of the boot flags are sent as they are (IPMI 2.0,
table 28-14).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.drivers import base
from bloomery.drivers.ipmi import tool
from bloomery.drivers.ipmi.hardware import IpmitoolInterface
from bloomery.model import capabilities
from bloomery.model.node import Node

_DEFAULT_BOOT_MODE: Final = "uefi"
_VENDORS: Final = {  # by IANA enterprise number: ipmitool has no list of names everywhere
    "2": "ibm", "11": "hp", "343": "intel", "674": "dell", "2011": "huawei", "10368": "fujitsu",
    "10876": "supermicro", "19046": "lenovo", "47196": "hpe",
}  # fmt: skip
_FLAGS: Final = {"pxe": "0x04", "disk": "0x08", "safe": "0x0c", "cdrom": "0x14", "bios": "0x18"}
_SUPERMICRO_DISK: Final = "0x24"
_SELECTORS: Final = {  # of the second byte, bits 5 to 2
    1: "pxe", 2: "disk", 3: "safe", 5: "cdrom", 6: "bios", 8: "cdrom", 9: "disk", 11: "disk",
}  # fmt: skip
_BOOT_DATA: Final = re.compile(r"^Boot parameter data:\s*([0-9a-fA-F]{4,})\s*$", re.MULTILINE)

BOOT_DEVICES: Final = tuple(_FLAGS)
KEEP_BOOT_DEVICE: Final = ("raw", "0x00", "0x08", "0x03", "0x08")  # not only for a minute
_GET_BOOT_DEVICE: Final = ("chassis", "bootparam", "get", "5")
_SENSORS: Final = ("sdr", "-v")
_SENSOR_ID: Final = "Sensor ID"
_SENSOR_TYPE: Final = "Sensor Type"


class IpmitoolManagement(IpmitoolInterface, base.Management):
    def get_supported_boot_devices(self, task: base.DriverTask) -> Sequence[str]:
        return BOOT_DEVICES

    def set_boot_device(self, task: base.DriverTask, device: str, persistent: bool = False) -> None:
        """Set the device of the next boot, or of all.

        Where ipmi_force_boot_device is set the BMC is never told that it is for good: it is
        told anew before each power on.
        """
        _check_boot_device(device)
        task.assert_exclusive()
        bmc = self.bmc(task)
        if bmc.info.force_boot_device:
            persistent = _note_for_later(task.node, device, persistent)
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
        return parse_boot_device(bmc.ask(*_GET_BOOT_DEVICE))

    def get_sensors_data(self, task: base.DriverTask) -> dict[str, Any]:
        bmc = self.bmc(task)
        output = bmc.ask(*_SENSORS)
        readings = parse_sensors(output)
        if output.strip() and not readings:
            raise errors.BmcRefused(
                node=task.node.uuid, address=bmc.info.key,
                reason=f"its sensors cannot be read from: "
                f"{tool.masked(bmc.info, output.strip())[:200]}",
            )  # fmt: skip
        return dict(readings)

    def inject_nmi(self, task: base.DriverTask) -> None:
        self.bmc(task).tell("power", "diag", write=True)

    def detect_vendor(self, task: base.DriverTask) -> str | None:
        """Return the maker's name in lower case, a short one for those that matter; or None."""
        return parse_vendor(self.bmc(task).ask("mc", "info"))


def parse_vendor(output: str) -> str | None:
    pairs = (line.partition(":") for line in output.splitlines())
    facts = {name.strip(): value.strip() for name, _, value in pairs}
    name = facts.get("Manufacturer Name", "").lower()
    vendor = _VENDORS.get(facts.get("Manufacturer ID", ""))
    return vendor or (None if not name or name.startswith("unknown") else name)


def is_uefi(node: Node) -> bool:
    """Does the node boot by UEFI?  As its instance, else as the node, says; UEFI if neither."""
    for where in (node.instance_info, node.properties):
        mode = capabilities.of(where).get("boot_mode")
        if mode:
            return mode == "uefi"
    return (node.boot_mode or _DEFAULT_BOOT_MODE) == "uefi"


def _note_for_later(node: Node, device: str, persistent: bool) -> bool:
    """Keep a persistent choice for each power on; return what the BMC is told: not for good."""
    if persistent:
        node.driver_internal_info["persistent_boot_device"] = device
        node.driver_internal_info.pop("is_next_boot_persistent", None)
    else:
        node.driver_internal_info["is_next_boot_persistent"] = False
    return False


def boot_device_command(
    device: str, *, persistent: bool, uefi: bool, vendor: str | None
) -> tuple[str, ...]:
    """Return the words that set ``device``.  Raises InvalidParameterValue for an unknown one."""
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
    """Read the answer to ``chassis bootparam get 5``; None for what it leaves open."""
    data = _BOOT_DATA.search(output)
    if data is None:
        return {"boot_device": None, "persistent": None}
    flags = bytes.fromhex(data[1][:4])
    device = _SELECTORS.get(flags[1] >> 2 & 0xF)
    return {"boot_device": device, "persistent": bool(flags[0] & 0x40)}


def parse_sensors(output: str) -> dict[str, dict[str, dict[str, str]]]:
    """Read records of ``name : value`` lines, as ``ipmitool sdr -v`` prints them.

    Returns {first word of the type: {sensor id: {name: value}}}.  Records of other kinds (FRU
    locators, event-only ones without a type) are left out.
    """
    readings: dict[str, dict[str, dict[str, str]]] = {}
    for record in _records(output):
        kind = next((v for name, v in record.items() if name.startswith(_SENSOR_TYPE)), "").split()
        if _SENSOR_ID in record and kind:
            readings.setdefault(kind[0], {})[record[_SENSOR_ID]] = record
    return readings


def _records(output: str) -> Iterator[dict[str, str]]:
    for block in output.replace("\r\n", "\n").split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
        yield {name.strip(): value.strip() for name, _, value in pairs}
