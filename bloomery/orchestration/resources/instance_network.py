"""Networks of an Instance: its virtual interfaces, and its network_data.json.

network_data.json has the format of OpenStack's config drive, which cloud-init reads.  The links
are the node's ports and port groups.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery.orchestration.resources import stepwise
from bloomery.orchestration.resources.machines import Json
from bloomery.orchestration.resources.stepwise import OnNode

AUTO: Final = "auto"


def network_data(
    ports: Sequence[Mapping[str, Any]],
    portgroups: Sequence[Mapping[str, Any]],
    networks: Sequence[Mapping[str, Any]],
) -> Json:
    """Return network_data.json: links for ports and groups, with static addresses or DHCP.

    A network of ``networks`` is on the link of its port, or on the next free link.  Without
    networks every link has DHCP.
    """
    link_of = {port["uuid"]: port.get("portgroup_uuid") or port["uuid"] for port in ports}
    bonds: list[Json] = []
    for group in portgroups:
        members = [port for port in ports if port.get("portgroup_uuid") == group["uuid"]]
        if not members:
            continue
        bond = {
            "id": group["uuid"],
            "type": "bond",
            "bond_mode": group.get("mode") or "active-backup",
            "bond_links": [port["uuid"] for port in members],
            "ethernet_mac_address": group.get("address") or members[0]["address"],
        }
        bonds.append(bond)
    free = [bond["id"] for bond in bonds]
    free += [port["uuid"] for port in ports if not port.get("portgroup_uuid")]
    placed = []
    for number, network in enumerate(networks or [{}] * len(free)):
        link = link_of.get(network.get("port") or "", free[0] if free else None)
        if link is None:
            break  # more networks than links
        if link in free:
            free.remove(link)
        entry = {"id": f"network{number}", "link": link, "network_id": network.get("vif") or link}
        if network.get("fixed_ip"):
            address = ipaddress.ip_interface(network["fixed_ip"])
            entry["type"] = f"ipv{address.version}"
            entry |= {"ip_address": str(address.ip), "netmask": str(address.netmask)}
        else:
            entry["type"] = "ipv4_dhcp"
        placed.append(entry)
    links = [
        {"id": port["uuid"], "type": "phy", "ethernet_mac_address": port["address"]}
        for port in ports
    ]
    return {"links": links + bonds, "networks": placed, "services": []}


def placed_networks(instance: OnNode, uuid: str) -> Sequence[Mapping[str, Any]]:
    """Return the networks; each one with a physical network gets a free port there.

    Raises MachineRefused if no port is left.
    """
    networks: Sequence[Mapping[str, Any]] = instance.properties["networks"] or []
    if not any(each.get("physical_network") for each in networks):
        return networks
    ports = instance.machines.list_ports(uuid)[0]
    used = {network.get("port") for network in networks}
    result = []
    for network in networks:
        if not (physical := network.get("physical_network")):
            result.append(network)
            continue
        candidates = (p["uuid"] for p in ports if p.get("physical_network") == physical)
        port = next((uuid for uuid in candidates if uuid not in used), None)
        if port is None:
            raise stepwise.MachineRefused(
                f"cannot attach {network['vif']}: no port is left in physical network {physical}"
            )
        used.add(port)
        result.append({**network, "port": port})
    return result


def attach(instance: OnNode, uuid: str) -> None:
    networks = placed_networks(instance, uuid)
    detach(instance, uuid, keep=[each["vif"] for each in networks])
    present = instance.machines.list_vifs(uuid) if networks else []
    for each in networks:
        if each["vif"] not in present:
            vif = {"id": each["vif"], "port_uuid": each.get("port")}
            instance.machines.attach_vif(uuid, {k: v for k, v in vif.items() if v})


def detach(instance: OnNode, uuid: str, keep: Sequence[str]) -> None:
    ours = [each["vif"] for each in instance.record.properties.get("networks") or []]
    unwanted = [vif for vif in ours if vif not in keep]
    present = instance.machines.list_vifs(uuid) if unwanted else []
    for vif in unwanted:
        if vif in present:
            instance.machines.detach_vif(uuid, vif)
