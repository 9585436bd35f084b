"""OS::Ironic::Port and OS::Ironic::PortGroup: network ports of a machine, and groups of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bloomery import errors
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Drift, Schema, Type
from bloomery.orchestration.resources import machine_records, machines
from bloomery.orchestration.resources.machine_records import field

_MAC = [constraints.Custom("mac_addr")]


def text(description: str, **more: Any) -> Schema:
    return field(Type.STRING, description, **more)


class Port(machine_records.MachineRecord):
    """As Heat's OS::Ironic::Port, plus ``name``, ``description``, ``category`` and ``vendor``."""

    noun = machines.PORT
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "node": text("UUID or name of the node.", required=True, drift=Drift.FIELD),
        "address": text("MAC address.", required=True, constraints=_MAC),
        "portgroup": text("UUID or name of the port group.", drift=Drift.FIELD),
        "local_link_connection": field(Type.MAP, "Where the other end of the cable is."),
        "pxe_enabled": field(Type.BOOLEAN, "Boots from the network."),
        "physical_network": text("The physical network that it is in."),
        "extra": field(Type.MAP, "Notes of yours.", drift=Drift.FIELD),
        "is_smartnic": field(Type.BOOLEAN, "Is a smart NIC."),
        "name": text("A name for it."),
        "description": text("What it is for."),
        "category": text("A category of yours."),
        "vendor": text("Who made it."),
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "address": Attribute("MAC address.", Type.STRING),
        "node_uuid": Attribute("The node.", Type.STRING),
        "portgroup_uuid": Attribute("The port group.", Type.STRING),
        "local_link_connection": Attribute("The other end of the cable.", Type.MAP),
        "pxe_enabled": Attribute("Boots from the network.", Type.BOOLEAN),
        "physical_network": Attribute("The physical network.", Type.STRING),
        "internal_info": Attribute("What the service notes of it.", Type.MAP),
        "extra": Attribute("Notes, with the mark of the stack.", Type.MAP),
        "is_smartnic": Attribute("Is a smart NIC.", Type.BOOLEAN),
    }


class PortGroup(machine_records.MachineRecord):
    """A port group of a node; ports refer to it in ``portgroup``."""

    noun = machines.PORTGROUP
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "node": machine_records.NODE_OF,
        "name": text("A name for it."),
        "address": text("MAC address of the group.", constraints=_MAC),
        "mode": text("Mode of the bond, such as 802.3ad."),
        "properties": field(Type.MAP, "Options of the bond."),
        "standalone_ports_supported": field(Type.BOOLEAN, "Its ports may also be used alone."),
        "physical_network": text("The physical network that it is in."),
        "category": text("A category of yours."),
        "extra": field(Type.MAP, "Notes of yours.", drift=Drift.FIELD),
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "uuid": Attribute("Its UUID.", Type.STRING),
        "address": Attribute("MAC address.", Type.STRING),
        "node_uuid": Attribute("The node.", Type.STRING),
        "ports": Attribute("The addresses of its ports.", Type.LIST),
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
