"""Compare the nodes and records of two services: what is created, changed, left or refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bloomery.cli.imports.site import (
    AWAITING_TAKE_OVER,
    HIDDEN,
    LET_GO,
    NOUNS,
    WAS_IN_MAINTENANCE,
    OldSite,
    Site,
)

Json = dict[str, Any]

CREATE, CHANGE, THERE, TAKE_OVER, LEFT, REFUSED = (
    "create", "change", "is there", "was taken over", "left out", "refused",
)  # fmt: skip
INTERFACES: Final = (
    "bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network", "power",
    "raid", "rescue", "storage", "vendor",
)  # fmt: skip
NODE_FIELDS: Final = (
    "uuid", "name", "driver", "driver_info", "properties", "instance_info", "instance_uuid",
    "instance_name", "extra", "chassis_uuid", "parent_node", "resource_class", "conductor_group",
    "automated_clean", "retired", "retired_reason", "owner", "lessee", "description",
    "network_data", "shard", "disable_power_off", *(f"{kind}_interface" for kind in INTERFACES),
)  # fmt: skip
POWER: Final = ("power on", "power off")
_LEFT_FIELDS: Final = ("power_state", "last_error", "raid_config", "target_raid_config")
_STATES: Final = frozenset({  # in which nothing works on a node
    "enroll", "manageable", "available", "active", "error", "rescue", "deploy failed",
    "clean failed", "inspect failed", "rescue failed", "unrescue failed", "adopt failed",
    "service failed",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The action on a node or record.  ``body``: of the POST request, with secrets."""

    kind: str
    uuid: str
    name: str
    action: str
    body: Json = field(default_factory=dict, repr=False)
    changes: Json = field(default_factory=dict, repr=False)  # of a record that is there
    traits: Sequence[str] = ()
    faults: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """``secrets``: parts of driver_info by UUID or name of the node, "*" for all.

    ``instead``: values of a node's fields in place of others, by field and value.
    """

    secrets: Mapping[str, Json] = field(default_factory=dict, repr=False)
    instead: Mapping[tuple[str, str], str] = field(default_factory=dict)


def make(old: OldSite, new: Site, terms: Terms) -> list[Row]:
    """Return a row for each node and record of ``old``, in the order in which they are written."""
    nodes = [_node_row(node, old, new, terms) for node in parents_first(old.nodes)]
    begun_anew = {row.uuid for row in nodes if row.action in (CREATE, CHANGE)}
    closed = {row.uuid for row in nodes if row.action in (LEFT, REFUSED, TAKE_OVER)}
    rows = [record_row("chassis", each, new, set()) for each in old.records["chassis"].values()]
    rows += nodes
    for kind in list(NOUNS)[1:]:
        for record in old.records[kind].values():
            if record.get("node_uuid") not in closed:
                rows.append(record_row(kind, record, new, begun_anew))
    return rows


def parents_first(nodes: Mapping[str, Json]) -> list[Json]:
    return sorted(nodes.values(), key=lambda node: node.get("parent_node") is not None)


# --------------------------------------------------------------------------------------- nodes


def _node_row(node: Json, old: OldSite, new: Site, terms: Terms) -> Row:
    present = new.nodes.get(node["uuid"])
    body, faults = translated(node, terms)
    faults += list(not_served(body, new))
    hidden = [f"instance_info/{key}" for key, value in (node["instance_info"] or {}).items()
              if value == HIDDEN]  # fmt: skip
    allocation = old.records["allocation"].get(node.get("allocation_uuid") or "")
    if allocation and node["provision_state"] != "active":
        hidden.append(f"allocation {allocation['name'] or allocation['uuid']}: the node is not "
                      "active")  # fmt: skip
    reason = "" if present is None else str(present["maintenance_reason"])
    if reason.startswith(LET_GO):  # to write it anew would lose its history and erasures here
        action = LEFT
        delete = f"baremetal node delete {node['uuid']}"
        faults = [f"bloomery has handed it over: delete it here ({delete}) and run it again"]
    elif present is not None and not reason.startswith(AWAITING_TAKE_OVER):
        action, faults = TAKE_OVER, []
    elif node["provision_state"] not in _STATES or node["reservation"]:
        action, faults = LEFT, [f"it is {node['provision_state']}; run the import again later"]
    elif faults:
        action = REFUSED
    elif present is None:
        action = CREATE
    else:
        names = {*NODE_FIELDS, *_LEFT_FIELDS, "provision_state", "maintenance_reason"}
        if "resource_class" not in body:  # the new service may have a default
            names.remove("resource_class")
        if node["maintenance_reason"] == LET_GO:  # its own reason is gone in the old service
            names.remove("maintenance_reason")
        flat = {**body, **body["imported"]}
        has_changed = set(present["traits"]) != set(node.get("traits") or ()) or any(
            is_other(flat.get(name), present.get(name)) for name in names
        )
        action = CHANGE if has_changed else THERE
    return Row(
        kind="node", uuid=node["uuid"], name=node["name"] or node["uuid"], action=action,
        body=body, traits=node.get("traits") or (), faults=tuple(faults), left_out=tuple(hidden),
    )  # fmt: skip


def translated(node: Json, terms: Terms) -> tuple[Json, list[str]]:
    """Return the body for the new service, and what hides in it."""
    body = {name: node[name] for name in NODE_FIELDS if node.get(name) not in (None, {})}
    for name, value in list(body.items()):
        if isinstance(value, str):
            body[name] = terms.instead.get((name, value), value)
    own = terms.secrets.get(node["uuid"]) or terms.secrets.get(node["name"] or "") or {}
    secrets = {**terms.secrets.get("*", {}), **own}
    info = {key: secrets.get(key, value) for key, value in (node["driver_info"] or {}).items()}
    faults = [f"driver_info/{key} is hidden: name it in --secrets"
              for key, value in info.items() if value == HIDDEN]  # fmt: skip
    instance = node["instance_info"] or {}
    instance = {key: value for key, value in instance.items() if value != HIDDEN}
    reason = AWAITING_TAKE_OVER
    if node["maintenance"]:
        former = node["maintenance_reason"] or "no reason given"
        reason = f"{AWAITING_TAKE_OVER}{WAS_IN_MAINTENANCE}{former}"
    imported = {"provision_state": node["provision_state"], "maintenance_reason": reason}
    imported |= {name: node[name] for name in _LEFT_FIELDS if node.get(name)}
    if imported.get("power_state") not in POWER:
        imported.pop("power_state", None)
    return body | {"driver_info": info, "instance_info": instance, "imported": imported}, faults


def not_served(body: Json, new: Site) -> Iterator[str]:
    """Yield what the new service does not serve."""
    driver = new.drivers.get(body["driver"])
    if driver is None:
        yield (f"driver: no conductor serves {body['driver']}; enable it, or give --instead "
               f"driver:{body['driver']}=NAME")  # fmt: skip
        return
    for kind in INTERFACES:
        name, enabled = f"{kind}_interface", driver.get(f"enabled_{kind}_interfaces")
        if name in body and enabled is not None and body[name] not in enabled:
            yield (f"{name}: {body[name]} is not enabled; enable it, or give --instead "
                   f"{name}:{body[name]}=NAME, one of {', '.join(enabled)}")  # fmt: skip


def is_other(value: Any, other: Any) -> bool:
    """Compare two values of a field; a service may show none as null, false or empty."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() != other.keys() or any(
            other[key] not in (each, HIDDEN) for key, each in value.items()
        )
    return (value or None) != (other or None)


# -------------------------------------------------------------------------------------- records


def record_row(kind: str, record: Json, new: Site, begun_anew: set[str]) -> Row:
    """Return the row of a record; records of the nodes ``begun_anew`` are written with them."""
    body = {name: record[name] for name in NOUNS[kind].fields if record.get(name) is not None}
    name = record.get("name") or record.get("address") or record["uuid"]
    node = record.get("node_uuid")
    if kind == "allocation":
        body["node"] = node
    present = None if node in begun_anew else new.records[kind].get(record["uuid"])
    changes: Json = {}
    faults: tuple[str, ...] = ()
    if kind == "allocation" and (node is None or record["state"] != "active"):
        action, faults = LEFT, (f"its state is {record['state']}; order it anew",)
    elif record.get("sensitive") and record.get("actions") is None:
        action, faults = LEFT, ("it is sensitive, so that its actions are hidden; write it anew",)
    elif present is None:
        action = CREATE
    elif kind == "allocation":
        action = THERE
    else:
        changes = {
            field: value for field, value in body.items()
            if field in present and is_other(value, present[field])
        }  # fmt: skip
        action = CHANGE if changes else THERE
    return Row(
        kind=kind, uuid=record["uuid"], name=str(name), action=action, body=body, changes=changes,
        faults=faults,
    )  # fmt: skip
