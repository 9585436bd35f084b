"""A copy of a node that hooks and rules change during an inspection.

Only a complete inspection is stored; a failure leaves the node as it was.
"""

from __future__ import annotations

import copy
import uuid as uuids
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bloomery.inspection.base import Changes
from bloomery.model import capabilities
from bloomery.model.node import Node
from bloomery.model.port import Port

Json = dict[str, Any]
_PORT_FIELDS: Final = (
    "address", "extra", "internal_info", "pxe_enabled", "local_link_connection", "physical_network",
    "is_smartnic", "name", "description", "vendor", "category",
)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Draft:
    """The fields are copies, shared with no other object."""

    node: Node
    ports: list[Port]
    inventory: Json
    plugin_data: Json
    previous: Json | None = None  # the inventory of the inspection before, where a hook reads it
    new_ports: list[Port] = field(default_factory=list)
    removed_ports: list[Port] = field(default_factory=list)

    @classmethod
    def of(cls, node: Node, ports: Sequence[Port], inventory: Json, plugin_data: Json) -> Draft:
        """Return a draft of deep copies."""
        return cls(
            node=copy.deepcopy(node),
            ports=copy.deepcopy(list(ports)),
            inventory=copy.deepcopy(inventory),
            plugin_data=copy.deepcopy(plugin_data),
        )

    def unshare(self) -> None:
        """Copy the node and its ports, as hooks may have put parts of the data into them."""
        self.node = copy.deepcopy(self.node)
        self.ports, self.new_ports = copy.deepcopy((self.ports, self.new_ports))

    @property
    def all_ports(self) -> list[Port]:
        return [*self.ports, *self.new_ports]

    def apply(self, changes: Changes) -> None:
        """Apply the changes of a hook."""
        node = self.node
        node.properties = node.properties | dict(changes.properties)
        node.extra = node.extra | dict(changes.extra)
        data = self.plugin_data | dict(changes.plugin_data)
        removed = [name for name, value in changes.plugin_data.items() if value is None]
        self.plugin_data = {name: value for name, value in data.items() if name not in removed}
        for name, value in changes.capabilities.items():
            self.set_capability(name, value)
        addresses = {port.address for port in self.all_ports}
        for address, fields in changes.new_ports.items():
            if address not in addresses:
                ident = str(uuids.uuid4())
                self.new_ports.append(
                    Port(uuid=ident, address=address, node_uuid=node.uuid, **fields)
                )
        for port in self.all_ports:
            for name, value in changes.ports.get(port.address, {}).items():
                setattr(port, name, value)
        for port in [port for port in self.all_ports if port.address in changes.removed_ports]:
            if port in self.new_ports:
                self.new_ports.remove(port)
            else:
                self.ports.remove(port)
                self.removed_ports.append(port)

    def set_capability(self, name: str, value: str | None) -> None:
        """Set a capability of the node; None removes it."""
        properties = self.node.properties
        pairs = capabilities.of(properties)
        pairs.pop(name, None)
        if value is not None:
            pairs[name] = value
        if pairs or "capabilities" in properties:
            self.node.properties = properties | {"capabilities": capabilities.written(pairs)}


def changed_fields(before: Port, after: Port) -> Json:
    """Return the changed fields of a port with their new values."""
    return {
        name: getattr(after, name)
        for name in _PORT_FIELDS
        if getattr(after, name) != getattr(before, name)
    }
