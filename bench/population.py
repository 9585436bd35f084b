"""State dirs with many nodes in them, written straight through bloomery's own rooms.

The nodes are what a site has: sealed passwords, properties, instances on half of them, traits on
every third, and a power state that agrees with their fake hardware.
"""

from __future__ import annotations

import dataclasses
import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bloomery import conf, secrets
from bloomery.conductor.states import Power, State
from bloomery.db import nodes, rows, schema
from bloomery.db.engine import Database
from bloomery.db.tables import METADATA, NODES
from bloomery.drivers import registry
from bloomery.model import node as model
from bloomery.model import nouns
from bloomery.model.allocation import Allocation, AllocationState
from bloomery.model.node import Node
from bloomery.model.noun import Noun
from bloomery.model.port import Port
from bloomery.model.portgroup import Portgroup
from bloomery.state_dir import StateDir

MANY = 10_000
_PART = 10_000
TRAITS = ("CUSTOM_GPU", "CUSTOM_RACK_7", "HW_CPU_X86_VMX")


def make(path: Path, count: int = MANY) -> Path:
    """Make a state dir with ``count`` nodes; return it."""
    with StateDir(path) as home:
        db = home.open_database(conf.Conf().database)
        schema.prepare(db)
        fill(db, home.sealer(db), count)
        db.close()
    return path


def fill(db: Database, sealer: secrets.Sealer, count: int) -> None:
    """Store ``count`` nodes, some thousands in a transaction."""
    nodes = _nodes(count, sealer)
    while part := list(itertools.islice(nodes, _PART)):
        db.transact(lambda conn, part=part: insert(conn, part))


def add_records(path: Path) -> None:
    """Give each node of a state dir a port group, a port in it, and an allocation."""
    with StateDir(path) as home:
        db = home.open_database(conf.Conf().database)
        with db.read() as conn:
            owners = list(conn.execute(sa.select(NODES.c.uuid).order_by(NODES.c.id)).scalars())
        groups = [_group(number, node) for number, node in enumerate(owners)]
        ports = [_port(number, group) for number, group in enumerate(groups)]
        allocations = [_allocation(number, node) for number, node in enumerate(owners)]
        for noun, records in (
            (nouns.PORTGROUP, groups), (nouns.PORT, ports), (nouns.ALLOCATION, allocations),
        ):  # fmt: skip
            db.transact(lambda conn, noun=noun, records=records: _insert_all(conn, noun, records))
        db.close()


def _insert_all(conn: sa.Connection, noun: Noun, records: list[Any]) -> None:
    columns = [name for name in noun.columns if name != "id"]
    values = [{name: getattr(record, name) for name in columns} for record in records]
    encoded = [rows.encode(each | {"created_at": rows.now()}, noun.objects) for each in values]
    conn.execute(sa.insert(METADATA.tables[noun.table]), encoded)


def _group(number: int, node: str) -> Portgroup:
    return Portgroup(
        uuid=str(uuid.uuid4()), name=f"bond-{number}", node_uuid=node, mode="802.3ad",
        address=_mac(1, number), properties={"miimon": 100}, extra={"rack": number // 40},
    )  # fmt: skip


def _port(number: int, group: Portgroup) -> Port:
    switch = {"switch_id": _mac(2, number), "port_id": f"Ethernet1/{number % 48}"}
    return Port(
        uuid=str(uuid.uuid4()), name=f"eth-{number}", node_uuid=group.node_uuid,
        portgroup_uuid=group.uuid, address=_mac(0, number), extra={"rack": number // 40},
        local_link_connection=switch | {"switch_info": f"leaf-{number // 40}"},
        physical_network="physnet1",
    )  # fmt: skip


def _allocation(number: int, node: str) -> Allocation:
    return Allocation(
        uuid=str(uuid.uuid4()), name=f"web-{number}", resource_class="bm.large",
        traits=list(TRAITS), extra={"ticket": f"REQ-{number}"}, owner=f"project-{number // 40}",
        state=AllocationState.ACTIVE, node_uuid=node,
    )  # fmt: skip


def _mac(kind: int, number: int) -> str:
    return f"52:54:0{kind}:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"


def power_states(conn: sa.Connection) -> dict[str, int]:
    """Return how many nodes have each power state."""
    counted = sa.select(NODES.c.power_state, sa.func.count()).group_by(NODES.c.power_state)
    return {str(state): count for state, count in conn.execute(counted)}


def insert(conn: sa.Connection, made: list[Node]) -> None:
    """Store nodes as they are."""
    names = [name for name in model.COLUMNS if name != "id"]
    for node in made:
        values = {name: getattr(node, name) for name in names}
        nodes.insert(conn, rows.encode(values, model.OBJECTS))
        if node.traits:
            nodes.add_traits(conn, node.uuid, node.traits)


def _nodes(count: int, sealer: secrets.Sealer) -> Iterator[Node]:
    settings = conf.Conf()
    known = registry.load(settings)
    for number in range(count):
        node = _node(number, sealer)
        known.fill_and_check(node)
        yield node


def _node(number: int, sealer: secrets.Sealer) -> Node:
    node = Node(
        uuid=str(uuid.uuid4()),
        name=f"rack-{number // 40}-u{number % 40}",
        driver="fake-hardware",
        driver_info=sealer.seal(_driver_info(number)),
        properties={"cpu_arch": "x86_64", "cpus": 64, "memory_mb": 524288, "local_gb": 1920},
        extra={"rack": number // 40, "serial": f"SN{number:08}", "cost_center": "4711"},
        resource_class="bm.large",
        description=f"server {number % 40} of rack {number // 40}",
        power_state=Power.ON if number % 2 else Power.OFF,
        provision_state=State.ACTIVE if number % 2 else State.AVAILABLE,
        created_at=rows.now(),
        provision_updated_at=rows.now(),
        traits=TRAITS if number % 3 == 0 else (),
    )
    return dataclasses.replace(node, **_instance(number)) if number % 2 else node


def _driver_info(number: int) -> dict[str, Any]:
    return {
        "redfish_address": f"https://10.{number // 62500}.{number // 250 % 250}.{number % 250}",
        "redfish_username": "admin",
        "redfish_password": f"secret-{number}",
        "redfish_system_id": "/redfish/v1/Systems/1",
    }


def _instance(number: int) -> dict[str, Any]:
    return {
        "instance_uuid": str(uuid.uuid4()),
        "instance_info": {
            "image_source": "http://images.example.org/debian-12.qcow2",
            "image_checksum": "f" * 64,
            "root_gb": 100,
            "display_name": f"web-{number}",
        },
    }
