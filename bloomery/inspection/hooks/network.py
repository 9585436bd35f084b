"""Hooks for the switch port and the physical network of interfaces."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, ClassVar

from bloomery import errors
from bloomery.inspection import base, lldp
from bloomery.inspection.base import Changes, Hook, Inspection
from bloomery.inspection.hooks.ports import VALIDATE, ips_of
from bloomery.model.rules import idents

Json = dict[str, Any]


class ParseLldp(Hook):
    """plugin_data.parsed_lldp: LLDP data by interface name."""

    def process(self, inspection: Inspection) -> Changes | None:
        parsed = dict(_parsed_lldp(inspection))
        return Changes(plugin_data={"parsed_lldp": parsed}) if parsed else None


def _parsed_lldp(inspection: Inspection) -> Iterator[tuple[str, Json]]:
    """Yield interface and parsed LLDP; agents send it in the inventory or beside it."""
    raw = base.part(inspection.plugin_data, "lldp_raw")
    for nic in base.objects(inspection.inventory, "interfaces"):
        name = base.text(nic, "name")
        if name is not None:
            parsed = lldp.parse(raw.get(name) or nic.get("lldp"))
            if parsed:
                yield name, parsed


class LocalLinkConnection(Hook):
    """local_link_connection of ports: what LLDP has and the port has not."""

    requires: ClassVar[tuple[str, ...]] = (VALIDATE,)

    def process(self, inspection: Inspection) -> Changes:
        data = inspection.plugin_data
        before = {port.address: port.local_link_connection for port in inspection.ports}
        # Parsed LLDP by interface, from an agent, a BMC or a hook.
        neighbours = dict(_parsed_lldp(inspection)) | {
            name: parsed
            for name, parsed in base.part(data, "parsed_lldp").items()
            if isinstance(parsed, dict)
        }
        links: dict[str, Json] = {}
        for name, parsed in neighbours.items():
            if name not in data["all_interfaces"]:
                continue
            switch = parsed.get("switch_chassis_id")
            fields = {
                "switch_id": switch if idents.folded_mac(switch) else None,  # as the API has it
                "port_id": parsed.get("switch_port_id"),
                "switch_info": parsed.get("switch_system_name"),
            }
            links[data["all_interfaces"][name]["mac_address"]] = {
                key: text for key, text in fields.items() if isinstance(text, str) and text
            }
        return Changes(
            ports={
                address: {"local_link_connection": link | before[address]}
                for address, link in links.items()
                if address in before and link.keys() - before[address].keys()
            },
        )


class PhysicalNetwork(Hook):
    """physical_network of ports that have none, by the CIDR of an address of their interface."""

    requires: ClassVar[tuple[str, ...]] = (VALIDATE,)

    def process(self, inspection: Inspection) -> Changes:
        entries = inspection.conf.physical_network_cidr_map  # such as 10.0.0.0/24:net-a
        pairs = [entry.rpartition(":") for entry in entries]
        try:
            networks = [(ipaddress.ip_network(cidr.strip()), name) for cidr, _, name in pairs]
        except ValueError as exc:
            raise errors.HardwareInspectionFailure(
                reason=f"[inspector]physical_network_cidr_map takes entries CIDR:network: {exc}",
            ) from exc
        unset = {port.address for port in inspection.ports if not port.physical_network}
        changes: dict[str, Json] = {}
        for nic in inspection.plugin_data["all_interfaces"].values():
            address, ips = nic["mac_address"], ips_of(nic)
            network = next((name for cidr, name in networks for ip in ips if ip in cidr), None)
            if network is not None and address in unset:
                changes[address] = {"physical_network": network}
        return Changes(ports=changes)
