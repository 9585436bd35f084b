"""Hooks for the switch port and the physical network of interfaces."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from bloomery import errors
from bloomery.inspection import lldp, reading
from bloomery.inspection.base import Changes, Hook, Inspection
from bloomery.inspection.hooks.ports import VALIDATE, ip_of

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
    """local_link_connection of ports: switch and port, where LLDP has both."""

    requires: ClassVar[tuple[str, ...]] = (VALIDATE,)

    def process(self, inspection: Inspection) -> Changes:
        interfaces = inspection.plugin_data["all_interfaces"]
        before = {port.address: port.local_link_connection for port in inspection.ports}
        links = {
            interfaces[name]["mac_address"]: _link(parsed)
            for name, parsed in _neighbours(inspection).items()
            if name in interfaces and _link(parsed)
        }
        return Changes(
            ports={
                address: {"local_link_connection": before[address] | link}
                for address, link in links.items()
                if address in before and "hostname" not in before[address]
            },
        )


def _link(parsed: Json) -> Json:
    switch, port = parsed.get("switch_chassis_id"), parsed.get("switch_port_id")
    is_complete = isinstance(switch, str) and isinstance(port, str) and switch and port
    return {"switch_id": switch, "port_id": port} if is_complete else {}


class PhysicalNetwork(Hook):
    """physical_network of ports that have none, by the CIDR of their interface's address."""

    requires: ClassVar[tuple[str, ...]] = (VALIDATE,)

    def process(self, inspection: Inspection) -> Changes:
        networks = _networks(inspection.conf.physical_network_cidr_map)
        unset = {port.address for port in inspection.ports if not port.physical_network}
        changes: dict[str, Json] = {}
        for nic in inspection.plugin_data["all_interfaces"].values():
            address, ip = nic["mac_address"], ip_of(nic)
            network = next((name for cidr, name in networks if ip is not None and ip in cidr), None)
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
