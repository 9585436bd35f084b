"""PCI functions, and LLDP data of the network ports.

Each needs a request per device, so it is read only for hooks that use it. Source: DMTF DSP0268,
PCIeDevice, PCIeFunction, NetworkAdapter and Port.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from bloomery.drivers.redfish import reading
from bloomery.model.rules import idents

Json: TypeAlias = dict[str, Any]

_IDS: Final = {
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


def pci_devices(system: Any) -> list[Json]:
    """Return the PCI functions in ironic-python-agent's form, with hexadecimal IDs."""
    return [
        device
        for function in _functions(system)
        if (device := _plain(function)).keys() >= {"vendor_id", "product_id"}
    ]


def _functions(system: Any) -> Iterator[Json]:
    for device in _listed(system, system.json, "PCIeDevices"):
        yield from _listed(system, device, "PCIeFunctions") or _listed(
            system, device.get("Links") or {}, "PCIeFunctions"
        )


def _listed(system: Any, document: Json, name: str) -> list[Json]:
    """Return the documents that a property lists, or those of the collection that it links to."""
    value = document.get(name)
    if not isinstance(value, list):
        return list(reading.members(system, document, name))
    paths = [link["@odata.id"] for link in value if isinstance(link, dict) and "@odata.id" in link]
    documents = (reading.optional(reading.fetch, system, path) for path in paths)
    return [each for each in documents if each]


def _plain(function: Json) -> Json:
    return {
        name: value.lower().removeprefix("0x")
        for name, source in _IDS.items()
        if isinstance(value := function.get(source), str) and value
    }


def lldp(system: Any) -> dict[str, Json]:
    """Return the LLDP data of each network port by its MAC address."""
    parsed = ((port, _neighbour(port)) for port in _ports(system))
    return {mac: neighbour for port, neighbour in parsed if neighbour for mac in _macs(port)}


def interfaces(system: Any) -> Iterator[tuple[str, str]]:
    """Yield the names and MAC addresses of the network ports."""
    for port in _ports(system):
        yield from ((str(port.get("Id")), mac) for mac in _macs(port))


def _ports(system: Any) -> Iterator[Json]:
    for chassis in reading.chassis(system):
        for adapter in reading.members(system, chassis.json, "NetworkAdapters"):
            yield from reading.members(system, adapter, "Ports")


def _macs(port: Json) -> list[str]:
    ethernet = port.get("Ethernet")
    addresses = ethernet.get("AssociatedMACAddresses") if isinstance(ethernet, dict) else None
    return [*filter(None, map(idents.folded_mac, addresses or ()))]


def _neighbour(port: Json) -> Json:
    ethernet = port.get("Ethernet")
    if not isinstance(ethernet, dict) or not isinstance(ethernet.get("LLDPReceive"), dict):
        return {}
    received = ethernet["LLDPReceive"]
    parsed: Json = {
        name: received[source]
        for name, source in _LLDP.items()
        if isinstance(received.get(source), str) and received[source]
    }
    if "switch_mgmt_addresses" in parsed:
        parsed["switch_mgmt_addresses"] = [parsed["switch_mgmt_addresses"]]
    return parsed
