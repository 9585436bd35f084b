"""Out-of-band inspection by the BMC.

The result has the inventory in ironic-python-agent's form, from which hooks create ports, and the
node's properties with the values read:

    {"inventory": {"inventory": {...}, "plugin_data": {}}, "node": {"properties": {...}}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.drivers import base
from bloomery.drivers.redfish import boot_device, neighbours, reading
from bloomery.drivers.redfish.hardware import RedfishInterface
from bloomery.model.rules import idents
from bloomery.outcome import Done

Json: TypeAlias = dict[str, Any]

_ARCHITECTURES: Final = {  # of ProcessorArchitecture and of InstructionSet
    "x86": "x86_64", "x86-64": "x86_64", "ARM": "aarch64", "ARM-A64": "aarch64",
}  # fmt: skip
_LEAST_DISK: Final = 4 << 30  # smaller disks are boot sticks
_PCI_HOOKS: Final = frozenset({"pci-devices", "accelerators"})
_LLDP_HOOKS: Final = frozenset({"parse-lldp", "local-link-connection"})
_TO_BMC: Final = "ToManager"  # the Id of the host interface (DSP0270) at several makers
_GUID: Final = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){7,19}")
_REQUIRED: Final = ("memory_mb", "cpu_arch")
_DISKLESS: Final[Json] = {"local_gb": 0}


class RedfishInspect(RedfishInterface, base.Inspect):
    @property
    def hooks(self) -> tuple[str, ...]:
        return self.conf.redfish.inspection_hooks

    def inspect_hardware(self, task: base.DriverTask) -> Done:
        """Read the system in one call.

        The operator's properties count where the BMC has no value; without either the machine has
        no disk. Raises HardwareInspectionFailure where a required property is missing in both.
        """
        inventory = self.access.read(task, look)
        facts = _properties(inventory)
        properties = task.node.properties | facts
        missing = [name for name in _REQUIRED if properties.get(name) in (None, "")]
        if missing:
            raise errors.HardwareInspectionFailure(
                reason=f"the BMC of node {errors.name_of(task.node)} does not tell "
                f"{', '.join(missing)}: "
                f"set {' and '.join(f'properties/{name}' for name in missing)}, and inspect again",
            )
        return Done(
            result={
                "inventory": {
                    "inventory": inventory,
                    "plugin_data": self._neighbours(task, inventory),
                },
                "node": {"properties": _merged(task.node.properties, facts, inventory)},
            },
        )

    def _neighbours(self, task: base.DriverTask, inventory: Json) -> Json:
        """Read PCI devices and LLDP data, each only for the hooks that use it."""
        plugin_data: Json = {}
        if not _PCI_HOOKS.isdisjoint(self.hooks):
            plugin_data["pci_devices"] = self.access.read(task, neighbours.pci_devices)
        if not _LLDP_HOOKS.isdisjoint(self.hooks):
            parsed = self.access.read(task, neighbours.lldp)
            names = {nic["mac_address"]: nic["name"] for nic in inventory["interfaces"]}
            plugin_data["parsed_lldp"] = {
                names[mac]: neighbour for mac, neighbour in parsed.items() if mac in names
            }
        return plugin_data


def look(system: Any) -> Json:
    """Return the inventory of a system, without parts that the BMC lacks."""
    return {
        "system_vendor": {
            "manufacturer": system.manufacturer,
            "product_name": system.model,
            "serial_number": system.serial_number,
            "system_uuid": system.uuid,
        },
        "memory": {"physical_mb": _memory_mb(system)},
        "cpu": reading.optional(_cpu, system) or {"count": None, "architecture": None},
        "disks": _disks(system),
        "interfaces": reading.optional(_interfaces, system) or _adapter_ports(system),
        "boot": {"current_boot_mode": boot_device.mode_of(system)},
    }


def _memory_mb(system: Any) -> int | None:
    size_gib = (system.json.get("MemorySummary") or {}).get("TotalSystemMemoryGiB")
    return int(size_gib * 1024) if size_gib else None


def _cpu(system: Any) -> Json:
    processors = [p for p in reading.each(system.processors) if _kind(p) in ("CPU", None)]
    first = processors[0] if processors else None
    kinds = [getattr(first, name, None) for name in ("processor_architecture", "instruction_set")]
    words = [kind.value for kind in kinds if kind is not None]
    architecture = next((word for word in words if word in _ARCHITECTURES), next(iter(words), None))
    return {
        "count": sum(p.total_threads or p.total_cores or 0 for p in processors) or None,
        "architecture": _ARCHITECTURES.get(str(architecture), architecture),
        "model_name": getattr(first, "model", None),
        "frequency": getattr(first, "max_speed_mhz", None),
    }


def _kind(processor: Any) -> str | None:
    return getattr(processor.processor_type, "value", None)


def _disks(system: Any) -> list[Json]:
    """Return the disks of Storage, or those of SimpleStorage where Storage has no sizes."""
    disks = reading.optional(_storage, system) or []
    if any(disk["size"] for disk in disks):
        return disks
    return reading.optional(_simple_storage, system) or disks


def _storage(system: Any) -> list[Json]:
    """Return the volumes where there are any, else the drives: what an operating system sees."""
    controllers = list(reading.each(system.storage))
    volumes = [volume for c in controllers for volume in reading.optional(_volumes, c) or ()]
    return [_disk(disk) for disk in volumes or reading.drives(controllers)]


def _volumes(controller: Any) -> list[Any]:
    return list(reading.each(controller.volumes))


def _disk(disk: Any) -> Json:
    return {
        "name": disk.name,
        "size": disk.capacity_bytes,
        "vendor": getattr(disk, "manufacturer", None),
        "model": getattr(disk, "model", None),
        "serial": getattr(disk, "serial_number", None),
        "rotational": getattr(disk, "media_type", None) == "HDD",
    }


def _simple_storage(system: Any) -> list[Json]:
    """Return the devices with a size; older BMCs list empty bays."""
    devices = [device for c in reading.each(system.simple_storage) for device in c.devices]
    return [_disk(device) for device in devices if device.capacity_bytes]


def _interfaces(system: Any) -> list[Json]:
    """Return the interfaces of the machine's networks, each address once.

    The interface that leads to the BMC, and one without an address, are left out.  InfiniBand's
    GUIDs stay as they are: no port has one.
    """
    interfaces: dict[str, Json] = {}
    for nic in reading.each(system.ethernet_interfaces):
        texts = [nic.permanent_mac_address, nic.mac_address]
        folded = [*filter(None, map(idents.folded_mac, texts))]
        address = next(iter([*folded, *filter(_GUID.fullmatch, filter(None, texts))]), None)
        if address and nic.identity != _TO_BMC:
            speed = nic.speed_mbps if isinstance(nic.speed_mbps, int) else None
            interfaces.setdefault(
                address, {"name": nic.identity, "mac_address": address, "speed_mbps": speed}
            )
    return list(interfaces.values())


def _adapter_ports(system: Any) -> list[Json]:
    """Return the ports of network adapters, for BMCs that show no interfaces of the system."""
    return [
        {"name": name, "mac_address": mac, "speed_mbps": None}
        for name, mac in neighbours.interfaces(system)
    ]


def _properties(inventory: Json) -> Json:
    """Return the properties that schedulers use."""
    sizes = [disk["size"] for disk in inventory["disks"] if (disk["size"] or 0) >= _LEAST_DISK]
    facts = {
        "memory_mb": inventory["memory"]["physical_mb"],
        "cpus": inventory["cpu"]["count"],
        "cpu_arch": inventory["cpu"]["architecture"],
        "local_gb": (min(sizes) >> 30) - 1 if sizes else None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _merged(properties: Mapping[str, Any], facts: Json, inventory: Json) -> Json:
    merged = _DISKLESS | dict(properties) | facts
    mode = inventory["boot"]["current_boot_mode"]
    if mode is not None:
        merged["capabilities"] = with_boot_mode(properties.get("capabilities"), mode)
    return merged


def with_boot_mode(capabilities: Any, mode: str) -> str:
    """Return capabilities with ``boot_mode`` set."""
    kept = [c for c in str(capabilities or "").split(",") if c and not c.startswith("boot_mode:")]
    return ",".join([*kept, f"boot_mode:{mode}"])
