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
        "address": text("The MAC address of the port.", required=True, constraints=_MAC),
        "portgroup": text("UUID or name of the port group.", drift=Drift.FIELD),
        "local_link_connection": field(Type.MAP, "The switch and switch port of the cable."),
        "pxe_enabled": field(Type.BOOLEAN, "Whether PXE is enabled on the port."),
        "physical_network": text("The physical network of the port."),
        "extra": field(Type.MAP, "Arbitrary metadata of the port.", drift=Drift.FIELD),
        "is_smartnic": field(Type.BOOLEAN, "Whether the port is a smart NIC."),
        "name": text("The name of the port."),
        "description": text("A description of the port."),
        "category": text("An arbitrary category of the port."),
        "vendor": text("The vendor of the port."),
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "address": Attribute("The MAC address of the port.", Type.STRING),
        "node_uuid": Attribute("The UUID of the node.", Type.STRING),
        "portgroup_uuid": Attribute("The UUID of the port group.", Type.STRING),
        "local_link_connection": Attribute("The switch and switch port of the cable.", Type.MAP),
        "pxe_enabled": Attribute("Whether PXE is enabled on the port.", Type.BOOLEAN),
        "physical_network": Attribute("The physical network of the port.", Type.STRING),
        "internal_info": Attribute("Internal data of the service about the port.", Type.MAP),
        "extra": Attribute("Arbitrary metadata, with the mark of the stack.", Type.MAP),
        "is_smartnic": Attribute("Whether the port is a smart NIC.", Type.BOOLEAN),
    }


class PortGroup(machine_records.MachineRecord):
    """A port group of a node; ports refer to it in ``portgroup``."""

    noun = machines.PORTGROUP
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "node": machine_records.NODE_OF,
        "name": text("The name of the port group."),
        "address": text("The MAC address of the port group.", constraints=_MAC),
        "mode": text("The mode of the bond, such as 802.3ad."),
        "properties": field(Type.MAP, "The options of the bond."),
        "standalone_ports_supported": field(
            Type.BOOLEAN, "Whether ports of the group may also be used alone."
        ),
        "physical_network": text("The physical network of the port group."),
        "category": text("An arbitrary category of the port group."),
        "extra": field(Type.MAP, "Arbitrary metadata of the port group.", drift=Drift.FIELD),
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "uuid": Attribute("The UUID of the port group.", Type.STRING),
        "address": Attribute("The MAC address of the port group.", Type.STRING),
        "node_uuid": Attribute("The UUID of the node.", Type.STRING),
        "ports": Attribute("The MAC addresses of the ports.", Type.LIST),
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
