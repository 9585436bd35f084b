"""Checks of records that need other rows, the node's state or the secrets: a ``Rules`` per noun.

- ports and port groups: their node, and each other;
- volume connectors and targets: they change only while the machine is off;
- a runbook is public, or belongs to a project;
- a sensitive inspection rule stays sensitive, its conditions and actions sealed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor.row_updates import CrudEvent
from bloomery.conductor.runtime import Context
from bloomery.conductor.states import DELETE_ALLOWED_STATES, Power, State
from bloomery.db import nodes, records
from bloomery.inspection import rule_check
from bloomery.model import inspection_rule
from bloomery.model.inspection_rule import InspectionRule
from bloomery.model.node import Node
from bloomery.model.nouns import INSPECTION_RULE, PORT, PORTGROUP
from bloomery.model.port import Port
from bloomery.model.portgroup import Portgroup
from bloomery.model.rules import nodes as node_rules
from bloomery.model.runbook import Runbook
from bloomery.model.volume import VolumeTarget
from bloomery.secrets import Sealer

Json = dict[str, Any]

_WIRED: Final = frozenset(
    {"portgroup_uuid", "pxe_enabled", "local_link_connection", "physical_network"},
)
_WIRING_STATES: Final = (State.ENROLL, State.INSPECTING, State.INSPECTWAIT, State.MANAGEABLE)
_SECRETS: Final = ("conditions", "actions")  # of an inspection rule


def _accept(*_args: object) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Further checks inside the transaction; each raises a Failure.

    ``check(context, values)`` sees the new values alone; for a creation it runs before the
    transaction. ``create(context, conn, record)`` may set server-chosen fields. ``update(context,
    conn, node, record, changed)`` gets the record and its changes; changes to other records need
    their own events.  ``destroy(node, record)``: ``node`` is None for nouns without nodes.
    """

    check: Callable[[Context, Json], None] = _accept
    create: Callable[[Context, sa.Connection, Any], None] = _accept
    update: Callable[[Context, sa.Connection, Any, Any, Json], None] = _accept
    destroy: Callable[[Any, Any], None] = _accept


# ----------------------------------------------------------------------- ports and port groups


def _create_port(_context: Context, conn: sa.Connection, port: Port) -> None:
    _require_group(conn, port)


def _change_port(
    _context: Context, conn: sa.Connection, node: Node, port: Port, changed: Json
) -> None:
    if not node.maintenance:
        if "address" in changed and (node.provision_state == State.ACTIVE or node.instance_uuid):
            raise errors.Conflict(
                reason=f"cannot change the address of port {port.uuid}: node "
                f"{errors.name_of(node)} is in use; set it to maintenance first",
            )
        fixed = changed.keys() & _WIRED
        if fixed and node.provision_state not in _WIRING_STATES:
            raise errors.Conflict(
                reason=f"cannot change {', '.join(sorted(fixed))} of port {port.uuid} while node "
                f'{errors.name_of(node)} is in state "{node.provision_state}": only in '
                f"{', '.join(_WIRING_STATES)}, or in maintenance",
            )
        _keep_network(node, port, changed.get("extra", port.extra))
    for name, value in changed.items():
        setattr(port, name, value)
    if changed.keys() & {"portgroup_uuid", "physical_network", "pxe_enabled"}:
        _require_group(conn, port)


def _require_group(conn: sa.Connection, port: Port) -> None:
    """Check a port against the port group that it names, and the physical network of both."""
    if port.portgroup_uuid is None:
        return
    groups: list[Portgroup] = records.list_where(conn, PORTGROUP, uuid=port.portgroup_uuid)
    group = groups[0] if groups else None
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
    network = group.physical_network
    if not network:
        others: list[Port] = records.list_where(conn, PORT, portgroup_uuid=port.portgroup_uuid)
        networks = (other.physical_network for other in others if other.uuid != port.uuid)
        network = next((network for network in networks if network is not None), None)
    if network not in (None, port.physical_network):
        raise errors.Conflict(
            reason=f"cannot put port {port.uuid} on physical network {port.physical_network}: "
            f"port group {group.uuid} is on {network}",
        )


def _destroy_port(node: Node, port: Port) -> None:
    """Refuse to delete a port with a VIF outside of maintenance."""
    if node.maintenance:
        return
    if port.internal_info.get("tenant_vif_port_id"):
        raise errors.Conflict(
            reason=f"cannot delete port {port.uuid}: a VIF is attached to it; detach it first, "
            "or set the node to maintenance",
        )
    _keep_network(node, port, {})


def _keep_network(node: Node, record: Port | Portgroup, extra: Json) -> None:
    """Refuse an ``extra`` with another network than the switches of a node in use have."""
    noun, key = ("port", "switchport") if isinstance(record, Port) else ("port group", "lag")
    is_in_use = node.provision_state not in (*_WIRING_STATES, State.AVAILABLE)
    is_kept = record.extra.get(key) == extra.get(key)
    if is_kept or not is_in_use or node.network_interface != "ironic-networking":
        return
    raise errors.Conflict(
        reason=f"cannot change extra.{key} of {noun} {record.uuid} while node "
        f'{errors.name_of(node)} is in state "{node.provision_state}": set the node to '
        "maintenance first; the new network comes with the next deployment, or with a VIF that is "
        f"attached to the {noun} (baremetal node vif attach --{noun.replace(' ', '')}-uuid)",
    )


def _create_portgroup(context: Context, _conn: sa.Connection, group: Portgroup) -> None:
    if not group.mode:
        group.mode = context.runtime.conf.default.default_portgroup_mode


def _change_portgroup(
    context: Context, conn: sa.Connection, node: Node, group: Portgroup, changed: Json
) -> None:
    """Check a change of a port group, and move its ports to a new physical network."""
    if not node.maintenance:
        is_renamed = changed.get("name", group.name) != group.name  # its LAG has the group's name
        _keep_network(node, group, {} if is_renamed else changed.get("extra", group.extra))
    members: list[Port] = records.list_where(conn, PORT, portgroup_uuid=group.uuid)
    if "node_uuid" in changed:
        target = changed["node_uuid"]
        if nodes.find_uuid(conn, target) is None:
            raise node_rules.no_such_node("the node of a portgroup", target)
        if not node.maintenance and node.provision_state not in _WIRING_STATES:
            raise errors.Conflict(
                reason=f"cannot move port group {group.uuid} to node {target} while node "
                f'{errors.name_of(node)} is in state "{node.provision_state}": only in '
                f"{', '.join(_WIRING_STATES)}, or in maintenance",
            )
        if members:
            raise errors.PortgroupNotEmpty(portgroup=group.uuid)
    booting = [port.uuid for port in members if port.pxe_enabled]
    if changed.get("standalone_ports_supported") is False and booting:
        raise errors.Conflict(
            reason=f"cannot set standalone_ports_supported of port group {group.uuid} to false: "
            f"PXE is enabled on its ports {', '.join(booting)}",
        )
    if "physical_network" in changed:
        network = {"physical_network": changed["physical_network"] or None}
        for port in members:
            if port.physical_network != network["physical_network"]:
                facts = {"patched": ["/physical_network"]}
                event = CrudEvent(context, PORT.name, port.uuid, "update", facts)
                event.show_to_projects_of(node).snapshot_change(port, network)(conn)
                records.update(conn, PORT, port.uuid, network)


# ------------------------------------------------------------------------------------- volumes


def _change_volume(
    _context: Context, _conn: sa.Connection, node: Node, record: Any, _changed: Json
) -> None:
    """Refuse a patch, even an empty one, unless the machine is known to be off."""
    if node.power_state != Power.OFF:
        raise _machine_is_on(record, "update", node)


def _destroy_volume(node: Node, record: Any) -> None:
    if node.power_state != Power.OFF and (node.provision_state not in DELETE_ALLOWED_STATES):
        raise _machine_is_on(record, "deletion", node)


def _machine_is_on(record: Any, action: str, node: Node) -> errors.InvalidStateRequested:
    """Return the error with Ironic's name of the action."""
    noun = "volume target" if isinstance(record, VolumeTarget) else "volume connector"
    return errors.InvalidStateRequested(
        action=f"{noun} {action}", node=errors.name_of(node), state=node.power_state,
        advice=" Power it off first.",
    )  # fmt: skip


# ------------------------------------------------------------------------------------ runbooks


def _create_runbook(_context: Context, _conn: sa.Connection, runbook: Runbook) -> None:
    if runbook.public:
        runbook.owner = None


def _change_runbook(
    _context: Context, _conn: sa.Connection, _node: Any, runbook: Runbook, changed: Json
) -> None:
    """Remove the owner of a runbook that becomes public; refuse an owner for a public runbook.

    Duplicate traits are dropped.
    """
    if "traits" in changed:
        changed["traits"] = list(dict.fromkeys(changed["traits"]))
    if changed.get("public", runbook.public):
        if "public" not in changed and changed.get("owner"):
            raise errors.Invalid(
                reason=f"cannot give runbook {runbook.uuid} an owner while it is public",
            )
        if runbook.owner is not None or changed.get("owner"):
            changed["owner"] = None


# ----------------------------------------------------------------------------- inspection rules


def list_inspection_rules(conn: sa.Connection, sealer: Sealer) -> list[InspectionRule]:
    """Return all inspection rules unsealed, in no order.  Raises KeyMissing."""
    rules: list[InspectionRule] = records.list_where(conn, INSPECTION_RULE)
    for rule in rules:
        for name in _SECRETS:
            setattr(rule, name, sealer.open(getattr(rule, name)))
    return rules


def _check_inspection_rule(context: Context, values: Json) -> None:
    """Raise InvalidParameterValue for conditions or actions that no inspection could run."""
    rule_check.check(values.get("conditions") or [], values.get("actions") or [])


def _create_inspection_rule(context: Context, _conn: sa.Connection, rule: InspectionRule) -> None:
    if rule.sensitive:
        for name, value in _seal(context, rule, _SECRETS).items():
            setattr(rule, name, value)


def _change_inspection_rule(
    context: Context, _conn: sa.Connection, _node: Any, rule: InspectionRule, changed: Json
) -> None:
    sensitive = changed.get("sensitive", rule.sensitive)
    inspection_rule.check_sensitive(rule, sensitive)
    if sensitive:
        for name in _SECRETS:
            setattr(rule, name, changed.get(name, getattr(rule, name)))
        names = [name for name in _SECRETS if name in changed or not rule.sensitive]
        changed |= _seal(context, rule, names)


def _seal(context: Context, rule: InspectionRule, names: Iterable[str]) -> Json:
    sealer = context.runtime.sealer
    return {name: sealer.seal_under("secret", getattr(rule, name)) for name in names}


# ------------------------------------------------------------------------------------- the table

_NONE: Final = Rules()
_VOLUME: Final = Rules(update=_change_volume, destroy=_destroy_volume)
_RULES: Final[Mapping[str, Rules]] = {
    "inspectionrule": Rules(
        check=_check_inspection_rule,
        create=_create_inspection_rule,
        update=_change_inspection_rule,
    ),
    "port": Rules(create=_create_port, update=_change_port, destroy=_destroy_port),
    "portgroup": Rules(create=_create_portgroup, update=_change_portgroup),
    "runbook": Rules(create=_create_runbook, update=_change_runbook),
    "volumeconnector": _VOLUME,
    "volumetarget": _VOLUME,
}


def of(noun: str) -> Rules:
    return _RULES.get(noun, _NONE)
