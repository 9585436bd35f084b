"""Compare machines with the nodes of a service, and write what is missing.

The name makes a machine the node of before, so a second run creates nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID, uuid5

from bloomery import errors
from bloomery.cli import fleet
from bloomery.cli.client import Client
from bloomery.cli.enrol.machines import Entry, bmc_of
from bloomery.cli.enrol.records import Json

_COMPARED: Final = (
    "driver_info", "properties", "extra", "resource_class", "conductor_group", "description",
    "owner", "lessee", "shard",
)  # fmt: skip
_FIELDS: Final = ",".join(("uuid", "name", "driver", *_COMPARED))
_CHASSIS: Final = UUID("6b1f7c1e-5d8c-4a39-9f3e-2d0c7f4a9b60")  # namespace of new chassis
_MASK: Final = "******"
_ACTIONS: Final = {
    "created": "enrolled", "completed": "ports added", "present": "is there", "refused": "refused",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A machine to enrol: a new node, new ports of its present node, or its faults."""

    entry: Entry
    node: str | None = None  # UUID of the node that is there
    ports: Sequence[Json] = ()
    faults: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()

    @property
    def action(self) -> str:
        if self.faults:
            return "refused"
        if self.node is None:
            return "create"
        return "add ports" if self.ports else "is there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Nodes of a service by name and by BMC, nodes of MACs, and drivers that are served.

    ``labels``: names of nodes by UUID.  ``keys``: what each driver reads of driver_info.
    ``chassis``: the description of each chassis by UUID.
    """

    by_name: Json
    by_bmc: Json
    by_mac: Json
    labels: dict[str, str]
    keys: dict[str, list[str]]
    chassis: dict[str, str | None]

    @property
    def drivers(self) -> list[str]:
        return list(self.keys)

    @classmethod
    def load(cls, client: Client) -> Inventory:
        nodes = list(
            client.pages(f"/v1/nodes?fields={_FIELDS}&limit=1000&include_children=true", "nodes")
        )
        keys = {_label(node): bmc_of(node["driver"], node["driver_info"] or {}) for node in nodes}
        return cls(
            by_name={node["name"]: node for node in nodes if node["name"]},
            by_bmc={bmc: label for label, bmc in keys.items() if bmc},
            by_mac={
                port["address"]: port["node_uuid"]
                for port in client.pages(
                    "/v1/ports?fields=uuid,address,node_uuid&limit=1000", "ports"
                )
            },
            labels={node["uuid"]: _label(node) for node in nodes},
            keys={
                each["name"]: list(client.get(f"/v1/drivers/{each['name']}/properties"))
                for each in client.get("/v1/drivers")["drivers"]
            },
            chassis={
                each["uuid"]: each["description"]
                for each in client.pages(
                    "/v1/chassis?fields=uuid,description&limit=1000", "chassis"
                )
            },
        )


def plan(entry: Entry, inventory: Inventory) -> Order:
    """Return what the machine needs.  Another node with its BMC or MAC is a fault."""
    name = entry.machine.name
    node = inventory.by_name.get(name)
    faults = list(entry.faults)
    if entry.machine.driver not in inventory.drivers:
        faults.append(
            f"driver: no conductor serves {entry.machine.driver}; name it in [DEFAULT]"
            f"enabled_hardware_types, or use one of {', '.join(inventory.drivers)}"
        )
    other = inventory.by_bmc.get(entry.bmc) if entry.bmc else None
    if other not in (None, name):
        faults.append(f"bmc: {entry.bmc} is that of node {other}; leave the row out, or delete it")
    if node is not None and bmc_of(node["driver"], node["driver_info"] or {}) != entry.bmc:
        faults.append(f"name: node {name} is there with another BMC; write another name")
    uuid = None if node is None else node["uuid"]
    for mac in entry.macs:
        owner = inventory.by_mac.get(mac)
        if owner not in (None, uuid):
            label = inventory.labels.get(owner, owner)
            faults.append(f"macs: {mac} is that of node {label}; delete that port, or the row")
    if entry.chassis is not None and len(_chassis_of(entry.chassis, inventory)) > 1:
        faults.append(
            f"chassis: several have the description {entry.chassis}; write the chassis_uuid of one"
        )
    missing = [port for port in entry.machine.ports if port["address"] not in inventory.by_mac]
    if node is not None:
        hints = _hints_of_differences(entry, node)
    else:  # keys of driver_info that resemble a key of the driver, and are none
        kind, info = entry.machine.driver, entry.machine.driver_info
        keys = inventory.keys.get(kind, [])
        guesses = {
            key: errors.nearest(key, [each for each in keys if each not in info])
            for key in info if key not in keys
        }  # fmt: skip
        hints = [
            f"driver_info.{key}: no key of the driver {kind}.{guess}"
            for key, guess in guesses.items() if guess
        ]  # fmt: skip
    return Order(
        entry=entry, node=uuid, ports=missing, faults=tuple(faults), hints=(*entry.hints, *hints)
    )


def _hints_of_differences(entry: Entry, node: Json) -> list[str]:
    """Name the fields in which the row differs from the node, which keeps its own.

    The service masks passwords, so nobody here can compare them.
    """
    machine, differing, unknown = entry.machine, [], []
    row = {"driver_info": machine.driver_info, "properties": machine.properties, **machine.more}
    for field in _COMPARED:
        pairs = [(field, row.get(field), node[field])]
        if isinstance(row.get(field), dict):
            stored = node[field] or {}
            pairs = [
                (f"{field}.{key}", value, stored.get(key)) for key, value in row[field].items()
            ]
        for name, value, stored in pairs:
            if stored == _MASK and value is not None:
                unknown.append(name)
            elif value is not None and str(value) != str(stored):
                differing.append(name)
    way = f"change it with: baremetal node set {node['name']}"
    hints = [f"{', '.join(differing)}: differs from the node, which stays as it is; {way}"]
    masked = f"{', '.join(unknown)}: not compared and not changed; {way}"
    return (hints if differing else []) + ([masked] if unknown else [])


def _chassis_of(description: str, inventory: Inventory) -> list[str]:
    """Return the UUIDs of the chassis that a row means by this description."""
    own = _chassis_uuid(description)
    if own in inventory.chassis:  # whatever it is called by now
        return [own]
    return [uuid for uuid, text in inventory.chassis.items() if text == description]


def _chassis_uuid(description: str) -> str:
    """Return the UUID of a new chassis: each run gives it the same, and so none comes twice."""
    return str(uuid5(_CHASSIS, description))


def write(
    client: Client, orders: Sequence[Order], inventory: Inventory
) -> Iterator[tuple[Order, str, str | None]]:
    """Carry out the orders; yield each with its result and error.  A refused row stops none.

    First creates the chassis that new nodes name.  Raises ApiError when the service does not
    answer, or refuses a chassis.
    """
    machines = []
    for order in orders:
        machine, description = order.entry.machine, order.entry.chassis
        if description is not None and order.node is None:
            uuid = next(iter(_chassis_of(description, inventory)), _chassis_uuid(description))
            if uuid not in inventory.chassis:
                client.post("/v1/chassis", {"uuid": uuid, "description": description})
                inventory.chassis[uuid] = description
            machine = replace(machine, more=machine.more | {"chassis_uuid": uuid})
        machines.append(machine)
    results = fleet.enrol(client, machines)
    for order, result in zip(orders, results, strict=True):
        error = result["error"]
        yield order, _ACTIONS[result["result"]], None if error is None else error["message"]


def _label(node: Json) -> str:
    return str(node["name"] or node["uuid"])
