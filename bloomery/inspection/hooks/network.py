"""Hooks for the switch port and the physical network of interfaces."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from bloomery import errors
from bloomery.inspection import lldp, reading
from bloomery.inspection.base import Changes, Hook, Inspection
from bloomery.inspection.hooks.ports import VALIDATE, ips_of
from bloomery.model.rules import idents

Json = dict[str, Any]


class ParseLldp(Hook):
    """plugin_data.parsed_lldp: LLDP data by interface name."""

    def process(self, inspection: Inspection) -> Changes | None:
        parsed = dict(_parsed_lldp(inspection))
        return Changes(plugin_data={"parsed_lldp": parsed}) if parsed else None


def _neighbours(inspection: Inspection) -> Mapping[str, Json]:
    """Return parsed LLDP by interface, from a BMC, a hook or an agent."""
    parsed = reading.part(inspection.plugin_data, "parsed_lldp")
    return dict(_parsed_lldp(inspection)) | {
        n: each for n, each in parsed.items() if isinstance(each, dict)
    }


def _parsed_lldp(inspection: Inspection) -> Iterator[tuple[str, Json]]:
    """Yield interface and parsed LLDP; agents send it in the inventory or beside it."""
    beside = reading.part(inspection.plugin_data, "lldp_raw")
    for nic in reading.objects(inspection.inventory, "interfaces"):
        name = reading.text(nic, "name")
        if name is not None:
            parsed = lldp.parse(beside.get(name) or nic.get("lldp"))
            if parsed:
                yield name, parsed


class LocalLinkConnection(Hook):
    """local_link_connection of ports: what LLDP has and the port has not."""

    requires: ClassVar[tuple[str, ...]] = (VALIDATE,)

    def process(self, inspection: Inspection) -> Changes:
        interfaces = inspection.plugin_data["all_interfaces"]
        before = {port.address: port.local_link_connection for port in inspection.ports}
        links = {
            interfaces[name]["mac_address"]: _link(parsed)
            for name, parsed in _neighbours(inspection).items()
            if name in interfaces
        }
        return Changes(
            ports={
                address: {"local_link_connection": link | before[address]}
                for address, link in links.items()
                if address in before and link.keys() - before[address].keys()
            },
        )


def _link(parsed: Json) -> Json:
    """Return the fields that LLDP has; switch_id is a MAC address, as the API has it."""
    switch = parsed.get("switch_chassis_id")
    fields = {
        "switch_id": switch if idents.folded_mac(switch) else None,
        "port_id": parsed.get("switch_port_id"),
        "switch_info": parsed.get("switch_system_name"),
    }
    return {name: value for name, value in fields.items() if isinstance(value, str) and value}


class PhysicalNetwork(Hook):
    """physical_network of ports that have none, by the CIDR of an address of their interface."""

    requires: ClassVar[tuple[str, ...]] = (VALIDATE,)

    def process(self, inspection: Inspection) -> Changes:
        networks = _networks(inspection.conf.physical_network_cidr_map)
        unset = {port.address for port in inspection.ports if not port.physical_network}
        changes: dict[str, Json] = {}
        for nic in inspection.plugin_data["all_interfaces"].values():
            address, ips = nic["mac_address"], ips_of(nic)
            network = next((name for cidr, name in networks for ip in ips if ip in cidr), None)
            if network is not None and address in unset:
                changes[address] = {"physical_network": network}
        return Changes(ports=changes)


def _networks(entries: Sequence[str]) -> list[tuple[Any, str]]:
    """Return networks and names of "10.0.0.0/24:net-a".  Raises HardwareInspectionFailure."""
    pairs = [entry.rpartition(":") for entry in entries]
    try:
        return [(ipaddress.ip_network(cidr.strip()), name) for cidr, _, name in pairs]
    except ValueError as exc:
        raise errors.HardwareInspectionFailure(
            reason=f"[inspector]physical_network_cidr_map takes entries CIDR:network: {exc}",
        ) from exc
