"""OS::Ironic::Port and OS::Ironic::PortGroup: network ports of a machine, and groups of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bloomery import errors
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import machine_records, machines

_MAC = [constraints.Custom("mac_addr")]


def text(description: str, **more: Any) -> Schema:
    return Schema(Type.STRING, description, update_allowed=True, **more)


class Port(machine_records.MachineRecord):
    """Compatible with Heat's; ``name``, ``description``, ``category`` and ``vendor`` are more."""

    noun = machines.PORT
    fields: ClassVar[Mapping[str, str]] = {
        "node": "node_uuid",
        "address": "address",
        "portgroup": "portgroup_uuid",
        "local_link_connection": "local_link_connection",
        "pxe_enabled": "pxe_enabled",
        "physical_network": "physical_network",
        "extra": "extra",
        "is_smartnic": "is_smartnic",
        "name": "name",
        "description": "description",
        "category": "category",
        "vendor": "vendor",
    }
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "node": text("UUID or name of the node.", required=True),
        "address": text("MAC address.", required=True, constraints=_MAC),
        "portgroup": text("UUID or name of the port group."),
        "local_link_connection": Schema(
            Type.MAP, "Where the other end of the cable is.", update_allowed=True
        ),
        "pxe_enabled": Schema(Type.BOOLEAN, "Boots from the network.", update_allowed=True),
        "physical_network": text("The physical network that it is in."),
        "extra": Schema(Type.MAP, "Notes of yours.", update_allowed=True),
        "is_smartnic": Schema(Type.BOOLEAN, "Is a smart NIC.", update_allowed=True),
        "name": text("A name for it."),
        "description": text("What it is for."),
        "category": text("A category of yours."),
        "vendor": text("Who made it."),
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "address": Attribute("MAC address.", Type.STRING, cached=False),
        "node_uuid": Attribute("The node.", Type.STRING, cached=False),
        "portgroup_uuid": Attribute("The port group.", Type.STRING, cached=False),
        "local_link_connection": Attribute("The other end of the cable.", Type.MAP, cached=False),
        "pxe_enabled": Attribute("Boots from the network.", Type.BOOLEAN, cached=False),
        "physical_network": Attribute("The physical network.", Type.STRING, cached=False),
        "internal_info": Attribute("What the service notes of it.", Type.MAP, cached=False),
        "extra": Attribute("Notes, with the mark of the stack.", Type.MAP, cached=False),
        "is_smartnic": Attribute("Is a smart NIC.", Type.BOOLEAN, cached=False),
    }


class PortGroup(machine_records.MachineRecord):
    """Ports refer to it in ``portgroup``."""

    noun = machines.PORTGROUP
    node_properties: ClassVar[tuple[str, ...]] = ("node",)
    fields: ClassVar[Mapping[str, str]] = {
        "node": "node_uuid",
        "name": "name",
        "address": "address",
        "mode": "mode",
        "properties": "properties",
        "standalone_ports_supported": "standalone_ports_supported",
        "physical_network": "physical_network",
        "category": "category",
        "extra": "extra",
    }
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "node": Schema(Type.STRING, "UUID or name of the node.", required=True),
        "name": text("A name for it."),
        "address": text("MAC address of the group.", constraints=_MAC),
        "mode": text("Mode of the bond, such as 802.3ad."),
        "properties": Schema(Type.MAP, "Options of the bond.", update_allowed=True),
        "standalone_ports_supported": Schema(
            Type.BOOLEAN, "Its ports may also be used alone.", update_allowed=True
        ),
        "physical_network": text("The physical network that it is in."),
        "category": text("A category of yours."),
        "extra": Schema(Type.MAP, "Notes of yours.", update_allowed=True),
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "uuid": Attribute("Its UUID.", Type.STRING, cached=False),
        "address": Attribute("MAC address.", Type.STRING, cached=False),
        "node_uuid": Attribute("The node.", Type.STRING, cached=False),
        "ports": Attribute("The addresses of its ports.", Type.LIST, cached=False),
    }

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name != "ports":
            return super().resolve_attribute(name, path)
        try:
            group = self.real()
            ports, _ = self.machines.list_ports(group["node_uuid"])
        except errors.NotFound:
            return None
        return [port["address"] for port in ports if port.get("portgroup_uuid") == group["uuid"]]
