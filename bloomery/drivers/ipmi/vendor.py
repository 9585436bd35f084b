"""IPMI vendor methods and steps: raw commands, and a reset of the BMC.

Neither is repeated after a crash: the effect of a second raw command is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.drivers import base, steps, vendor_methods
from bloomery.drivers.ipmi.hardware import IpmitoolInterface
from bloomery.model.rules import attributes
from bloomery.outcome import Again

_BYTE: Final = re.compile(r"0[xX][0-9a-fA-F]{1,2}|[0-9]{1,3}")
_RAW: Final[dict[str, Any]] = {
    "raw_bytes": {
        "description": "Bytes to send, the network function and the command first, each such as "
        "0x06 or 6, with spaces between.",
        "required": True,
    },
}
_RESET: Final[dict[str, Any]] = {
    "warm": {
        "description": "True: a warm reset (as when left out); false: a cold one.",
        "required": False,
    },
}


def _check_raw(info: Mapping[str, Any]) -> None:
    parse_bytes(info["raw_bytes"])


def _check_reset(info: Mapping[str, Any]) -> None:
    attributes.boolean("warm", info.get("warm", True))


class IpmitoolVendor(IpmitoolInterface, base.Vendor):
    @steps.clean_step(priority=0, argsinfo=_RAW, requires_ramdisk=False)
    @steps.deploy_step(priority=0, argsinfo=_RAW)
    @steps.service_step(argsinfo=_RAW, requires_ramdisk=False)
    @vendor_methods.passthru(
        ("POST",), description="Send raw_bytes, such as 0x06 0x01, to the BMC.", check=_check_raw
    )
    def send_raw(self, task: base.DriverTask, raw_bytes: str) -> Again | None:
        """Send the bytes; the answer is not kept."""
        return self._send(task, "raw", *parse_bytes(raw_bytes))

    @steps.keeps_disks
    @steps.clean_step(priority=0, argsinfo=_RESET, requires_ramdisk=False)
    @steps.deploy_step(priority=0, argsinfo=_RESET)
    @steps.service_step(argsinfo=_RESET, requires_ramdisk=False)
    @vendor_methods.passthru(
        ("POST",), description="Start the BMC anew; warm (true) or cold.", check=_check_reset
    )
    def bmc_reset(self, task: base.DriverTask, warm: bool = True) -> Again | None:
        """Restart the BMC; the machine keeps running."""
        is_warm = attributes.boolean("warm", warm)
        return self._send(task, "mc", "reset", "warm" if is_warm else "cold")

    def _send(self, task: base.DriverTask, *arguments: str) -> Again | None:
        bmc = self.bmc(task)
        if (rest_s := bmc.rest_s()) > 0:
            return Again(after_s=rest_s, reason="waiting until the BMC may get a command")
        bmc.tell(*arguments, write=True)
        return None


def parse_bytes(text: Any) -> list[str]:
    """Parse ``0x06 0x01``.  Raises InvalidParameterValue."""
    numbers = text.split() if isinstance(text, str) else []
    wrong = [each for each in numbers if not _BYTE.fullmatch(each) or int(each, 0) > 0xFF]
    if len(numbers) < 2 or wrong:
        raise errors.InvalidParameterValue(
            reason="argument raw_bytes must be two bytes or more, such as 0x06 0x01",
        )
    return numbers
