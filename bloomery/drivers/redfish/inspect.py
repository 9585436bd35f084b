"""Out-of-band inspection by the BMC.

The result has the inventory in ironic-python-agent's form, from which hooks create ports, and the
node's properties with the values read:

    {"inventory": {"inventory": {...}, "plugin_data": {}}, "node": {"properties": {...}}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.drivers import base
from bloomery.drivers.redfish import boot_device, reading
from bloomery.drivers.redfish.hardware import RedfishInterface
from bloomery.model import architectures
from bloomery.model.rules import idents
from bloomery.outcome import Done

Json: TypeAlias = dict[str, Any]

_ARCHITECTURES: Final = ("x86-64", "ARM-A64", "x86", "ARM")  # of a processor, exact ones first
_MODELS: Final = (  # what the name of a processor says where the BMC does not
    (re.compile(r"\b(Xeon|EPYC|Opteron|Ryzen|Pentium)\b|\bCore\(TM\)"), "x86_64"),
    (re.compile(r"\b(Altra|AmpereOne|Neoverse|Grace|Kunpeng|ThunderX|Graviton\d?)\b"), "aarch64"),
)
_LEAST_DISK: Final = 4 << 30  # smaller disks are boot sticks
_PCI_HOOKS: Final = frozenset({"pci-devices", "accelerators"})
_LLDP_HOOKS: Final = frozenset({"parse-lldp", "local-link-connection"})
_TO_BMC: Final = "ToManager"  # the Id of the host interface (DSP0270) at several makers
_GUID: Final = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){7,19}")
_REQUIRED: Final = ("memory_mb", "cpu_arch")
_PCI_IDS: Final = {
    "vendor_id": "VendorId", "product_id": "DeviceId", "class": "ClassCode",
    "revision": "RevisionId", "subsystem_id": "SubsystemId",
    "subsystem_vendor_id": "SubsystemVendorId",
}  # fmt: skip
_LLDP: Final = {
    "switch_chassis_id": "ChassisId",
    "switch_port_id": "PortId",
    "switch_system_name": "SystemName",
    "switch_system_description": "SystemDescription",
    "switch_mgmt_addresses": "ManagementAddressIPv4",
}
_DISKLESS: Final[Json] = {"local_gb": 0}


class RedfishInspect(RedfishInterface, base.Inspect):
    @property
    def hooks(self) -> tuple[str, ...]:
        return self.conf.redfish.inspection_hooks

    def inspect_hardware(self, task: base.DriverTask) -> Done:
        """Read the system in one call; PCI devices and LLDP data only for the hooks that use them.

        The operator's properties count where the BMC has no value; without either the machine has
        no disk.  Raises HardwareInspectionFailure where a required property is missing in both.
        """
        inventory = self.access.read(task, look)
        sizes = [disk["size"] for disk in inventory["disks"] if (disk["size"] or 0) >= _LEAST_DISK]
        facts = {
            "memory_mb": inventory["memory"]["physical_mb"],
            "cpus": inventory["cpu"]["count"],
            "cpu_arch": inventory["cpu"]["architecture"],
            "local_gb": (min(sizes) >> 30) - 1 if sizes else None,
        }
        known = {name: value for name, value in facts.items() if value is not None}
        properties = _DISKLESS | task.node.properties | known
        missing = [name for name in _REQUIRED if properties.get(name) in (None, "")]
        if missing:
            raise errors.HardwareInspectionFailure(
                reason=f"the BMC of node {errors.name_of(task.node)} does not tell "
                f"{', '.join(missing)}: "
                f"set {' and '.join(f'properties/{name}' for name in missing)}, and inspect again",
            )
        mode = inventory["boot"]["current_boot_mode"]
        if mode is not None:
            properties["capabilities"] = with_boot_mode(properties.get("capabilities"), mode)
        plugin_data: Json = {}
        if not _PCI_HOOKS.isdisjoint(self.hooks):
            plugin_data["pci_devices"] = self.access.read(task, _pci_devices)
        if not _LLDP_HOOKS.isdisjoint(self.hooks):
            neighbours = self.access.read(task, _lldp)
            names = {nic["mac_address"]: nic["name"] for nic in inventory["interfaces"]}
            plugin_data["parsed_lldp"] = {
                names[mac]: neighbour for mac, neighbour in neighbours.items() if mac in names
            }
        return Done(
            result={
                "inventory": {"inventory": inventory, "plugin_data": plugin_data},
                "node": {"properties": properties},
            },
        )


def look(system: Any) -> Json:
    """Return the inventory of a system, without parts that the BMC lacks.

    Disks are those of Storage; where that has no sizes, of HPE's SmartStorage or SimpleStorage.
    Interfaces are those of the system, or the ports of network adapters.
    """
    memory_gib = (system.json.get("MemorySummary") or {}).get("TotalSystemMemoryGiB")
    disks = reading.optional(_storage, system) or []
    for further in (_smart_storage, _simple_storage):
        if not any(disk["size"] for disk in disks):
            disks = reading.optional(further, system) or disks
    interfaces = reading.optional(_interfaces, system) or [
        {"name": str(port.get("Id")), "mac_address": mac, "speed_mbps": None}
        for port in _ports(system)
        for mac in _macs(port)
    ]
    return {
        "system_vendor": {
            "manufacturer": system.manufacturer,
            "product_name": system.model,
            "serial_number": system.serial_number,
            "system_uuid": system.uuid,
        },
        "memory": {"physical_mb": int(memory_gib * 1024) if memory_gib else None},
        "cpu": _with_architecture(system, reading.optional(_cpu, system) or {"count": None}),
        "disks": disks,
        "interfaces": interfaces,
        "boot": {"current_boot_mode": boot_device.mode_of(system)},
    }


def _cpu(system: Any) -> Json:
    processors = [
        each
        for each in reading.each(system.processors)
        if getattr(each.processor_type, "value", None) in ("CPU", None)
    ]
    first = processors[0] if processors else None
    kinds = [getattr(first, name, None) for name in ("processor_architecture", "instruction_set")]
    names = [kind.value for kind in kinds if kind is not None and kind.value != "OEM"]
    named = next((name for name in _ARCHITECTURES if name in names), next(iter(names), None))
    return {
        "count": sum(p.total_threads or p.total_cores or 0 for p in processors) or None,
        "architecture": architectures.canonical(named) if named in _ARCHITECTURES else named,
        "model_name": getattr(first, "model", None),
        "frequency": getattr(first, "max_speed_mhz", None),
    }


def _with_architecture(system: Any, cpu: Json) -> Json:
    """Return the processor with the architecture that its model has, where the BMC names none.

    BMCs without a list of processors have a ProcessorSummary.
    """
    summary = system.json.get("ProcessorSummary")
    models = [cpu.get("model_name"), summary.get("Model") if isinstance(summary, dict) else None]
    text = " ".join(model for model in models if isinstance(model, str))
    by_model = next((name for pattern, name in _MODELS if pattern.search(text)), None)
    return cpu | {"architecture": cpu.get("architecture") or by_model}


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


def _smart_storage(system: Any) -> list[Json]:
    """Return the logical drives of each array controller, or its drives where it has none.

    Source: HPE's iLO 4 (Oem.Hp) and iLO 5 (Oem.Hpe), SmartStorage; sizes are in MiB.
    """
    oem = system.json.get("Oem") or {}
    store = reading.follow(system, _hp_links(oem.get("Hpe") or oem.get("Hp") or {}), "SmartStorage")
    disks: list[Json] = []
    for controller in reading.members(system, _hp_links(store), "ArrayControllers"):
        links = _hp_links(controller)
        logical = list(reading.members(system, links, "LogicalDrives"))
        disks += logical or reading.members(system, links, "PhysicalDrives")
    return [
        {
            "name": disk.get("LogicalDriveName") or disk.get("Location") or disk.get("Id"),
            "size": size_mib << 20,
            "vendor": None,
            "model": disk.get("Model"),
            "serial": disk.get("SerialNumber"),
            "rotational": disk.get("MediaType") == "HDD",
        }
        for disk in disks
        if isinstance(size_mib := disk.get("CapacityMiB"), int) and size_mib > 0
    ]


def _hp_links(document: Json) -> Json:
    """Return the links of HPE's own documents; those of an iLO 4 may have an href."""
    links = document.get("Links") or document.get("links") or {}
    return {
        name: {"@odata.id": link.get("@odata.id") or link.get("href")}
        for name, link in links.items()
        if isinstance(link, dict)
    }


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


def with_boot_mode(capabilities: Any, mode: str) -> str:
    """Return capabilities with ``boot_mode`` set."""
    kept = [c for c in str(capabilities or "").split(",") if c and not c.startswith("boot_mode:")]
    return ",".join([*kept, f"boot_mode:{mode}"])


# ------------------------------------------------- PCI functions and ports, a request per device
# Source: DMTF DSP0268, PCIeDevice, PCIeFunction, NetworkAdapter and Port.


def _pci_devices(system: Any) -> list[Json]:
    """Return the PCI functions in ironic-python-agent's form, with hexadecimal IDs."""
    devices = []
    for device in _listed(system, system.json, "PCIeDevices"):
        links = device.get("Links") or {}
        for function in _listed(system, device, "PCIeFunctions") or _listed(
            system, links, "PCIeFunctions"
        ):
            ids = {
                name: value.lower().removeprefix("0x")
                for name, source in _PCI_IDS.items()
                if isinstance(value := function.get(source), str) and value
            }
            if ids.keys() >= {"vendor_id", "product_id"}:
                devices.append(ids)
    return devices


def _listed(system: Any, document: Json, name: str) -> list[Json]:
    """Return the documents that a property lists, or those of the collection that it links to."""
    value = document.get(name)
    if not isinstance(value, list):
        return list(reading.members(system, document, name))
    paths = [link["@odata.id"] for link in value if isinstance(link, dict) and "@odata.id" in link]
    documents = (reading.optional(reading.fetch, system, path) for path in paths)
    return [each for each in documents if each]


def _lldp(system: Any) -> dict[str, Json]:
    """Return the LLDP data of each network port by its MAC address."""
    neighbours: dict[str, Json] = {}
    for port in _ports(system):
        ethernet = port.get("Ethernet")
        received = ethernet.get("LLDPReceive") if isinstance(ethernet, dict) else None
        facts = received if isinstance(received, dict) else {}
        neighbour: Json = {
            name: facts[source]
            for name, source in _LLDP.items()
            if isinstance(facts.get(source), str) and facts[source]
        }
        if "switch_mgmt_addresses" in neighbour:
            neighbour["switch_mgmt_addresses"] = [neighbour["switch_mgmt_addresses"]]
        if neighbour:
            neighbours |= dict.fromkeys(_macs(port), neighbour)
    return neighbours


def _ports(system: Any) -> Iterator[Json]:
    for chassis in reading.chassis(system):
        for adapter in reading.members(system, chassis.json, "NetworkAdapters"):
            yield from reading.members(system, adapter, "Ports")


def _macs(port: Json) -> list[str]:
    ethernet = port.get("Ethernet")
    addresses = ethernet.get("AssociatedMACAddresses") if isinstance(ethernet, dict) else None
    return [*filter(None, map(idents.folded_mac, addresses or ()))]
