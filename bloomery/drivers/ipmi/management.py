"""Boot devices, sensors, NMI and vendor through ipmitool.

These are plain calls: they keep their caller waiting while the gap between two commands passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.drivers import base
from bloomery.drivers.ipmi import boot_device, sensors, tool
from bloomery.drivers.ipmi.bmc import Ipmitool
from bloomery.model import capabilities
from bloomery.model.node import Node

_DEFAULT_BOOT_MODE: Final = "uefi"
_VENDORS: Final = {  # by IANA enterprise number: ipmitool has no list of names everywhere
    "2": "ibm", "11": "hp", "343": "intel", "674": "dell", "2011": "huawei", "10368": "fujitsu",
    "10876": "supermicro", "19046": "lenovo", "47196": "hpe",
}  # fmt: skip


class IpmitoolManagement(Ipmitool, base.Management):
    def get_supported_boot_devices(self, task: base.DriverTask) -> Sequence[str]:
        return boot_device.DEVICES

    def set_boot_device(self, task: base.DriverTask, device: str, persistent: bool = False) -> None:
        """Set the device of the next boot, or of all.

        Where ipmi_force_boot_device is set the BMC is never told that it is for good: it is
        told anew before each power on.
        """
        boot_device.check(device)
        task.assert_exclusive()
        bmc = self.bmc(task)
        if bmc.info.force_boot_device:
            persistent = _note_for_later(task.node, device, persistent)
        if bmc.keeps_boot_device:
            bmc.ask(*boot_device.KEEP_FOR_LONGER, write=True)
        bmc.ask(
            *boot_device.command(
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
        return boot_device.parse(bmc.ask(*boot_device.READ))

    def get_sensors_data(self, task: base.DriverTask) -> dict[str, Any]:
        bmc = self.bmc(task)
        said = bmc.ask(*sensors.COMMAND)
        found = sensors.parse(said)
        if said.strip() and not found:
            raise errors.BmcRefused(
                node=task.node.uuid, address=bmc.info.key,
                reason=f"its sensors cannot be read from: "
                f"{tool.masked(bmc.info, said.strip())[:200]}",
            )  # fmt: skip
        return dict(found)

    def inject_nmi(self, task: base.DriverTask) -> None:
        self.bmc(task).tell("power", "diag", write=True)

    def detect_vendor(self, task: base.DriverTask) -> str | None:
        """Return the maker's name in lower case, a short one for those that matter; or None."""
        return parse_vendor(self.bmc(task).ask("mc", "info"))


def parse_vendor(said: str) -> str | None:
    pairs = (line.partition(":") for line in said.splitlines())
    facts = {name.strip(): value.strip() for name, _, value in pairs}
    name = facts.get("Manufacturer Name", "").lower()
    known = _VENDORS.get(facts.get("Manufacturer ID", ""))
    return known or (None if not name or name.startswith("unknown") else name)


def is_uefi(node: Node) -> bool:
    """Does the node boot by UEFI?  As its instance, else as the node, says; UEFI if neither."""
    for said in (node.instance_info, node.properties):
        mode = capabilities.of(said).get("boot_mode")
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
