"""Ports as records: create, update, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import crud_events, row_updates
from bloomery.conductor.patches import Limits, Patcher
from bloomery.conductor.runtime import Context
from bloomery.conductor.states import State
from bloomery.db import nodes, ports, rows
from bloomery.model import port as model
from bloomery.model.node import Node
from bloomery.model.port import Port
from bloomery.model.rules import ports as rules

Json = dict[str, Any]

_PATCHER: Final = Patcher(rules.ATTRIBUTES, Port)
_WIRED: Final = frozenset(
    {"portgroup_uuid", "pxe_enabled", "local_link_connection", "physical_network"},
)
_WIRING_STATES: Final = (State.ENROLL, State.INSPECTING, State.INSPECTWAIT, State.MANAGEABLE)


def create(context: Context, values: Json) -> None:
    """Store a port.  Needs no lock on its node.  One commit."""
    port = Port(**values)
    port.created_at = rows.now()
    columns = rows.encode(
        {name: getattr(port, name) for name in model.COLUMNS if name != "id"}, model.OBJECTS,
    )  # fmt: skip
    event = crud_events.new(context, "port", port.uuid, "create", {"address": port.address})
    event.given(values).stored(port)

    def work(conn: sa.Connection) -> None:
        if nodes.find_uuid(conn, port.node_uuid) is None:
            raise errors.InvalidParameterValue(reason=f"Node {port.node_uuid} could not be found.")
        _require_group(conn, port)
        ports.insert(conn, columns)
        event(conn)

    with event.watching():
        context.runtime.db.transact(work)
    context.runtime.on_events_written()


def update(context: Context, uuid: str, patch: Sequence[Json]) -> None:
    """Apply a JSON patch to the row that is read in the same transaction.  One commit."""
    runtime = context.runtime
    prepared = _PATCHER.prepare(patch, runtime.sealer, Limits.of(runtime.conf))
    paths = [op["path"] for op in patch]
    event = crud_events.new(context, "port", uuid, "update", {"patched": paths})

    def work(conn: sa.Connection, node: Node) -> None:
        port = ports.get(conn, uuid)
        changed = _PATCHER.apply(port, prepared)
        if changed.get("node_uuid") is None:  # removing it is accepted and changes nothing
            changed.pop("node_uuid", None)
        event.changed(port, changed, touched=bool(changed))
        _refuse_in_state(node, port, changed)
        for name, value in changed.items():
            setattr(port, name, value)
        if changed.keys() & {"portgroup_uuid", "physical_network", "pxe_enabled"}:
            _require_group(conn, port)
        if changed:
            ports.update(conn, uuid, rows.encode(changed, model.OBJECTS))
        event(conn)

    with event.watching(lambda port: _PATCHER.apply(port, prepared)):
        row_updates.change(context, _node_of(context, uuid), work)
    context.runtime.on_events_written()


def destroy(context: Context, uuid: str) -> None:
    """Delete a port; one that carries a VIF only in maintenance.  One commit."""
    event = crud_events.new(context, "port", uuid, "delete")

    def work(conn: sa.Connection, node: Node) -> None:
        port = ports.get(conn, uuid)
        event.gone(port)
        if port.internal_info.get("tenant_vif_port_id") and not node.maintenance:
            raise errors.Conflict(
                reason=f"cannot delete port {uuid}: a VIF is attached to it; detach it first, or "
                "set the node to maintenance",
            )
        ports.delete(conn, uuid)
        event(conn)

    with event.watching():
        row_updates.change(context, _node_of(context, uuid), work)
    context.runtime.on_events_written()


def _node_of(context: Context, uuid: str) -> str:
    with context.runtime.db.read() as conn:
        return ports.get(conn, uuid).node_uuid


def _refuse_in_state(node: Node, port: Port, changed: Json) -> None:
    if node.maintenance:
        return
    moved = changed.get("node_uuid", port.node_uuid) != port.node_uuid
    if moved:
        raise errors.Conflict(reason=f"cannot move port {port.uuid} to another node: delete it")
    if "address" in changed and (node.provision_state == State.ACTIVE or node.instance_uuid):
        raise errors.Conflict(
            reason=f"cannot change the address of port {port.uuid}: node {node.uuid} is in use; "
            "set it to maintenance first",
        )
    fixed = changed.keys() & _WIRED
    if fixed and node.provision_state not in _WIRING_STATES:
        raise errors.Conflict(
            reason=f"cannot change {', '.join(sorted(fixed))} of port {port.uuid} while node "
            f'{node.uuid} is in state "{node.provision_state}": only in '
            f"{', '.join(_WIRING_STATES)}, or in maintenance",
        )


def _require_group(conn: sa.Connection, port: Port) -> None:
    """Check a port against the port group that it names."""
    if port.portgroup_uuid is None:
        return
    group = ports.find_group(conn, port.portgroup_uuid)
    if group is None or group.node_uuid != port.node_uuid:
        raise errors.InvalidParameterValue(
            reason=f"cannot put port {port.uuid} into port group {port.portgroup_uuid}: "
            + ("it does not exist" if group is None else "it belongs to another node"),
        )
    if port.pxe_enabled and not group.standalone_ports_supported:
        raise errors.Conflict(
            reason=f"cannot enable PXE on port {port.uuid}: port group {group.uuid} does not "
            "support standalone ports",
        )
    if group.physical_network not in (None, port.physical_network):
        raise errors.Conflict(
            reason=f"cannot put port {port.uuid} on physical network {port.physical_network}: "
            f"port group {group.uuid} is on {group.physical_network}",
        )
