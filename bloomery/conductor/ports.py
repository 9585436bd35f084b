"""Rules between a port, its node and its port group."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor.records import Rules
from bloomery.conductor.runtime import Context
from bloomery.conductor.states import State
from bloomery.db import records
from bloomery.model.node import Node
from bloomery.model.nouns import PORT, PORTGROUP
from bloomery.model.port import Port
from bloomery.model.portgroup import Portgroup

Json = dict[str, Any]

_WIRED: Final = frozenset(
    {"portgroup_uuid", "pxe_enabled", "local_link_connection", "physical_network"},
)
WIRING_STATES: Final = (State.ENROLL, State.INSPECTING, State.INSPECTWAIT, State.MANAGEABLE)


def check_new(_context: Context, conn: sa.Connection, port: Port) -> None:
    _require_group(conn, port)


def check_change(
    _context: Context, conn: sa.Connection, node: Node, port: Port, changed: Json
) -> None:
    _refuse_in_state(node, port, changed)
    for name, value in changed.items():
        setattr(port, name, value)
    if changed.keys() & {"portgroup_uuid", "physical_network", "pxe_enabled"}:
        _require_group(conn, port)


def check_deletion(node: Node, port: Port) -> None:
    """Refuse to delete a port with a VIF outside of maintenance."""
    if port.internal_info.get("tenant_vif_port_id") and not node.maintenance:
        raise errors.Conflict(
            reason=f"cannot delete port {port.uuid}: a VIF is attached to it; detach it first, "
            "or set the node to maintenance",
        )


RULES: Final = Rules(create=check_new, update=check_change, destroy=check_deletion)


def _refuse_in_state(node: Node, port: Port, changed: Json) -> None:
    if node.maintenance:
        return
    if "address" in changed and (node.provision_state == State.ACTIVE or node.instance_uuid):
        raise errors.Conflict(
            reason=f"cannot change the address of port {port.uuid}: node {errors.name_of(node)} "
            "is in use; set it to maintenance first",
        )
    fixed = changed.keys() & _WIRED
    if fixed and node.provision_state not in WIRING_STATES:
        raise errors.Conflict(
            reason=f"cannot change {', '.join(sorted(fixed))} of port {port.uuid} while node "
            f'{errors.name_of(node)} is in state "{node.provision_state}": only in '
            f"{', '.join(WIRING_STATES)}, or in maintenance",
        )


def _require_group(conn: sa.Connection, port: Port) -> None:
    """Check a port against the port group that it names."""
    if port.portgroup_uuid is None:
        return
    group = _find_group(conn, port.portgroup_uuid)
    if group is None or group.node_uuid != port.node_uuid:
        raise errors.InvalidParameterValue(
            reason=f"cannot put port {port.uuid} into port group {port.portgroup_uuid}: its node "
            f"{port.node_uuid} has no such group",
        )
    if port.pxe_enabled and not group.standalone_ports_supported:
        raise errors.Conflict(
            reason=f"cannot enable PXE on port {port.uuid}: port group {group.uuid} does not "
            "support standalone ports",
        )
    network = group.physical_network or _network_of_others(conn, port)
    if network not in (None, port.physical_network):
        raise errors.Conflict(
            reason=f"cannot put port {port.uuid} on physical network {port.physical_network}: "
            f"port group {group.uuid} is on {network}",
        )


def _find_group(conn: sa.Connection, uuid: str) -> Portgroup | None:
    groups: list[Portgroup] = records.list_where(conn, PORTGROUP, uuid=uuid)
    return groups[0] if groups else None


def _network_of_others(conn: sa.Connection, port: Port) -> str | None:
    others: list[Port] = records.list_where(conn, PORT, portgroup_uuid=port.portgroup_uuid)
    networks = (other.physical_network for other in others if other.uuid != port.uuid)
    return next((network for network in networks if network is not None), None)
