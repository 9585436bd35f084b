"""Boot devices: the commands that set one, and what a BMC says about the one that is set.

With legacy BIOS ipmitool knows the words; its options for UEFI are not honoured by enough BMCs,
so that the five bytes of the boot flags are sent as they are (IPMI 2.0, table 28-14).
"""

from __future__ import annotations

import re
from typing import Any, Final

from bloomery import errors

_FLAGS: Final = {"pxe": "0x04", "disk": "0x08", "safe": "0x0c", "cdrom": "0x14", "bios": "0x18"}
_SUPERMICRO_DISK: Final = "0x24"
_SELECTORS: Final = {  # of the second byte, bits 5 to 2
    1: "pxe", 2: "disk", 3: "safe", 5: "cdrom", 6: "bios", 8: "cdrom", 9: "disk", 11: "disk",
}  # fmt: skip
_DATA: Final = re.compile(r"^Boot parameter data:\s*([0-9a-fA-F]{4,})\s*$", re.MULTILINE)

DEVICES: Final = tuple(_FLAGS)
KEEP_FOR_LONGER: Final = ("raw", "0x00", "0x08", "0x03", "0x08")  # not only for a minute
READ: Final = ("chassis", "bootparam", "get", "5")


def command(device: str, *, persistent: bool, uefi: bool, vendor: str | None) -> tuple[str, ...]:
    """Return the words that set ``device``.  Raises InvalidParameterValue for an unknown one."""
    check(device)
    if not uefi:
        options = ("options=persistent",) if persistent else ()
        return ("chassis", "bootdev", device, *options)
    odd = device == "disk" and vendor == "supermicro"
    flags = _SUPERMICRO_DISK if odd else _FLAGS[device]
    valid = "0xe0" if persistent else "0xa0"
    return ("raw", "0x00", "0x08", "0x05", valid, flags, "0x00", "0x00", "0x00")


def check(device: str) -> None:
    if device not in _FLAGS:
        raise errors.InvalidParameterValue(
            reason=f"Invalid boot device {device} specified: IPMI takes {', '.join(DEVICES)}",
        )


def parse(said: str) -> dict[str, Any]:
    """Read the answer to ``READ``; None for what it leaves open."""
    data = _DATA.search(said)
    if data is None:
        return {"boot_device": None, "persistent": None}
    flags = bytes.fromhex(data[1][:4])
    device = _SELECTORS.get(flags[1] >> 2 & 0xF)
    return {"boot_device": device, "persistent": bool(flags[0] & 0x40)}
