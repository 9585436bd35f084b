"""Rules between a port group, its node and its ports."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor.ports import WIRING_STATES
from bloomery.conductor.records import Rules
from bloomery.conductor.row_updates import CrudEvent
from bloomery.conductor.runtime import Context
from bloomery.db import nodes, records
from bloomery.model.node import Node
from bloomery.model.nouns import PORT
from bloomery.model.port import Port
from bloomery.model.portgroup import Portgroup
from bloomery.model.rules import nodes as rules

Json = dict[str, Any]


def fill_in(context: Context, _conn: sa.Connection, group: Portgroup) -> None:
    if not group.mode:
        group.mode = context.runtime.conf.default.default_portgroup_mode


def check_change(
    context: Context, conn: sa.Connection, node: Node, group: Portgroup, changed: Json
) -> None:
    """Check a change of a port group, and move its ports to a new physical network."""
    members: list[Port] = records.list_where(conn, PORT, portgroup_uuid=group.uuid)
    if "node_uuid" in changed:
        _check_move(conn, node, group, changed["node_uuid"], members)
    if changed.get("standalone_ports_supported") is False:
        _refuse_pxe(group, members)
    if "physical_network" in changed:
        _take_along(context, conn, node, members, changed["physical_network"] or None)


RULES: Final = Rules(create=fill_in, update=check_change)


def _check_move(
    conn: sa.Connection, node: Node, group: Portgroup, target: str, members: list[Port]
) -> None:
    if nodes.find_uuid(conn, target) is None:
        raise rules.no_such_node("the node of a portgroup", target)
    if not node.maintenance and node.provision_state not in WIRING_STATES:
        raise errors.Conflict(
            reason=f"cannot move port group {group.uuid} to node {target} while node "
            f'{errors.name_of(node)} is in state "{node.provision_state}": only in '
            f"{', '.join(WIRING_STATES)}, or in maintenance",
        )
    if members:
        raise errors.PortgroupNotEmpty(portgroup=group.uuid)


def _take_along(
    context: Context,
    conn: sa.Connection,
    node: Node,
    members: list[Port],
    network: str | None,
) -> None:
    """Set the ports' physical network, with the events of each port's change."""
    facts, changed = {"patched": ["/physical_network"]}, {"physical_network": network}
    for port in (member for member in members if member.physical_network != network):
        event = CrudEvent(context, PORT.name, port.uuid, "update", facts)
        event.show_to_projects_of(node).snapshot_change(port, changed)(conn)
        records.update(conn, PORT, port.uuid, changed)


def _refuse_pxe(group: Portgroup, members: list[Port]) -> None:
    booting = [port.uuid for port in members if port.pxe_enabled]
    if booting:
        raise errors.Conflict(
            reason=f"cannot set standalone_ports_supported of port group {group.uuid} to false: "
            f"PXE is enabled on its ports {', '.join(booting)}",
        )
