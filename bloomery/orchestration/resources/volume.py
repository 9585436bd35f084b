"""OS::Ironic::VolumeConnector and OS::Ironic::VolumeTarget: what a machine boots from over a wire.

The service takes changes of them only while the node is switched off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import machine_records, machines

_TYPES = [
    constraints.AllowedValues(["iqn", "ip", "mac", "wwnn", "wwpn", "port", "portgroup"]),
]
_ATTRIBUTES: Mapping[str, Attribute] = {
    "uuid": Attribute("Its UUID.", Type.STRING, cached=False),
    "node_uuid": Attribute("The node.", Type.STRING, cached=False),
}
_NODE = Schema(Type.STRING, "UUID or name of the node.", required=True)
_EXTRA = Schema(Type.MAP, "Notes of yours.", update_allowed=True)


class VolumeConnector(machine_records.MachineRecord):
    """How the storage knows the machine."""

    noun = machines.VOLUME_CONNECTOR
    fields: ClassVar[Mapping[str, str]] = {
        "node": "node_uuid",
        "type": "type",
        "connector_id": "connector_id",
        "extra": "extra",
    }
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "node": _NODE,
        "type": Schema(Type.STRING, "What connector_id is.", required=True, constraints=_TYPES),
        "connector_id": Schema(Type.STRING, "The name, address or port.", required=True),
        "extra": _EXTRA,
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = _ATTRIBUTES


class VolumeTarget(machine_records.MachineRecord):
    """A volume, and how it is reached."""

    noun = machines.VOLUME_TARGET
    fields: ClassVar[Mapping[str, str]] = {
        "node": "node_uuid",
        "volume_type": "volume_type",
        "volume_id": "volume_id",
        "boot_index": "boot_index",
        "properties": "properties",
        "extra": "extra",
    }
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "node": _NODE,
        "volume_type": Schema(Type.STRING, "iscsi or fibre_channel.", required=True),
        "volume_id": Schema(
            Type.STRING, "What the storage calls it.", required=True, update_allowed=True
        ),
        "boot_index": Schema(
            Type.INTEGER, "0: the machine boots from it.", required=True, update_allowed=True
        ),
        "properties": Schema(
            Type.MAP, "How it is reached; it is kept as a secret.", update_allowed=True
        ),
        "extra": _EXTRA,
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = _ATTRIBUTES
    secret_properties: ClassVar[frozenset[str]] = frozenset({"properties"})
