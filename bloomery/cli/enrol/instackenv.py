"""Translate entries of ``instackenv.json``, TripleO's file of machines, to rows."""

from __future__ import annotations

from typing import Any, Final

from bloomery.cli.enrol.records import Json, Row

_DRIVERS: Final = {
    "ipmi": "ipmi", "pxe_ipmitool": "ipmi", "agent_ipmitool": "ipmi", "redfish": "redfish",
    "idrac": "idrac", "pxe_drac": "idrac", "fake-hardware": "fake-hardware",
    "manual-management": "manual-management", "fake_pxe": "manual-management",
}  # fmt: skip
_SHORT: Final = {"pm_addr": "bmc", "pm_user": "username", "pm_password": "password"}
_PROPERTIES: Final = {
    "cpu": "cpus", "memory": "memory_mb", "disk": "local_gb", "arch": "cpu_arch",
    "capabilities": "capabilities", "root_device": "root_device",
}  # fmt: skip
_AGENT: Final = {"kernel_id": "deploy_kernel", "ramdisk_id": "deploy_ramdisk"}
_SAME: Final = ("name", "ports", "resource_class", "conductor_group", "owner", "description")


def is_entry(values: Json) -> bool:
    return "pm_type" in values


def translate(row: Row) -> Row:
    """Return the row with fields of nodes; what has no place in a node is in ``left_out``."""
    source = dict(row.values)
    kind = str(source.pop("pm_type"))
    faults = [] if kind in _DRIVERS else [f"pm_type: no driver for {kind}; use ipmi or redfish"]
    values: Json = {"driver": _DRIVERS.get(kind, "redfish"), "driver_info": {}, "properties": {}}
    left_out = []
    for key, value in source.items():
        if not _place(values, key, value) and not key.startswith("_"):
            left_out.append(key)
    return Row(
        place=row.place, values=values, faults=(*row.faults, *faults), left_out=tuple(left_out)
    )


def _place(values: Json, key: str, value: Any) -> bool:
    """Write one field into ``values``; False if a node has no place for it."""
    if key in _SAME or key.endswith("_interface"):
        values[key] = value
    elif key == "mac":
        values["macs"] = value
    elif key in _SHORT:
        values[_SHORT[key]] = value
    elif key in _PROPERTIES:
        values["properties"][_PROPERTIES[key]] = value
    elif key in _AGENT:
        values["driver_info"][_AGENT[key]] = value
    elif key.startswith("pm_"):
        prefix = "ipmi" if values["driver"] == "ipmi" else "redfish"
        values["driver_info"][f"{prefix}_{key.removeprefix('pm_')}"] = value
    else:
        return False
    return True
