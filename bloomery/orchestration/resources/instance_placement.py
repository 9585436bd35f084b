"""The node of an Instance: a named node, the node of an allocation, or a match of its selector.

reserve -> await_node
reserve -> await_former [-> withdraw_former -> reserve]     on the node of a replaced instance that
                                                            was deleted first, or with ``spread``
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.orchestration.resources import allocation, machine_records, machines, stepwise
from bloomery.orchestration.resources.machines import Json
from bloomery.orchestration.resources.stepwise import OnNode

FORMER: Final = "former_node"  # the node of the instance that is replaced
AVOIDED: Final = "avoided_node"  # the same, if another machine was ordered

DOMAINS: Final = {"conductor_group": "conductor_group", "shard": "shard", "chassis": "chassis_uuid"}


def reserve(instance: OnNode) -> str | None:
    data = instance.record.data
    if ident := instance.properties["node"]:
        node, siblings = instance.machines.get_node(ident), instance.context.siblings
        instance.resource_id_set(node["uuid"])
        data["instance"] = instance.derived_id("instance")
        if siblings and siblings.list(allocation.Allocation, str(node["instance_uuid"])):
            data["instance"] = node["instance_uuid"]  # an allocation of this stack holds the node
        return "prepare"
    if ident := instance.properties["allocation"]:
        present = instance.machines.find(machines.ALLOCATION, ident)
        if present is None:
            raise errors.EntityNotFound(entity="Allocation", name=ident)
        data["instance"] = present["uuid"]
        return "await_node"
    if data["attempt"] == 1 and not data.get("moved") and _ask_preferred(instance):
        return "await_former"
    data["instance"] = instance.derived_id(f"allocation-{data['attempt']}")
    if not is_reserved(instance):
        machine_records.create(instance, machines.ALLOCATION, data["instance"], _request(instance))
    return "await_node"


def is_reserved(instance: OnNode) -> bool:
    """Tell whether the allocation of another node exists already, from before a crash."""
    data = instance.record.data
    asks_anew = bool(data.get("failed_nodes") or data.get(AVOIDED))
    return asks_anew and instance.machines.find(machines.ALLOCATION, data["instance"]) is not None


def _request(instance: OnNode) -> Json:
    """Return the body of an allocation, without the avoided node, and those that have failed.

    Raises MachineFailed with the errors of these nodes if no other node is available.
    """
    selector, failed = instance.properties["selector"], [*_unwanted(instance)]
    request = allocation.request_of(instance.machines, selector)
    if not failed:
        return request
    others = allocation.candidates(instance.machines, selector)
    uuids = [node["uuid"] for node in others if node["uuid"] not in failed]
    if not uuids:
        reasons = [*instance.record.data.get("errors", ()), "no other node is available"]
        raise stepwise.MachineFailed("; ".join(reasons))
    return request | {"candidate_nodes": uuids}


def _unwanted(instance: OnNode) -> Iterator[str]:
    yield from instance.record.data.get("failed_nodes") or ()
    if avoided := instance.record.data.get(AVOIDED):
        yield str(avoided)


def _ask_preferred(instance: OnNode) -> bool:
    """Create an allocation of the preferred nodes, and return whether there are any.

    An allocation of an engine that crashed is kept, although other nodes may be preferred by now.
    """
    uuid, spread = instance.derived_id("allocation-former"), instance.properties["spread"]
    if not spread or instance.machines.find(machines.ALLOCATION, uuid) is None:
        former, selector = instance.record.data.get(FORMER), instance.properties["selector"]
        candidates = selector.get("candidate_nodes")
        if former is not None and candidates and former not in candidates:  # it may be its name
            try:
                is_candidate = instance.machines.get_node(former)["name"] in candidates
            except errors.NotFound:
                is_candidate = False
            former = former if is_candidate else None
        nodes = [str(former)] if former else []
        if spread and not nodes:
            machines_of_class = allocation.candidates(instance.machines, selector, in_use=True)
            domain = DOMAINS[spread["by"]]
            avoided = instance.record.data.get(AVOIDED)
            machines_of_class = [each for each in machines_of_class if each["uuid"] != avoided]
            nodes = spread_nodes(machines_of_class, domain, spread["number"])
        if not nodes:
            return False
        fields = _request(instance) | {"candidate_nodes": nodes}
        machine_records.create(instance, machines.ALLOCATION, uuid, fields)
    instance.record.data["instance"] = uuid
    return True


def await_former(instance: OnNode) -> stepwise.Following:
    present = instance.machines.find(machines.ALLOCATION, str(instance.record.data["instance"]))
    if present is None or present["state"] == "error":
        return "withdraw_former"
    return await_node(instance)


def withdraw_former(instance: OnNode) -> str | None:
    allocation.withdraw(instance, str(instance.record.data["instance"]))
    instance.record.data["moved"] = True
    return "reserve"


def await_node(instance: OnNode) -> stepwise.Following:
    uuid = str(instance.record.data["instance"])
    present = instance.machines.find(machines.ALLOCATION, uuid)
    if present is None:
        raise stepwise.MachineFailed(f"allocation {uuid} was deleted by somebody else")
    if present["state"] == "error":
        raise stepwise.MachineFailed(str(present["last_error"]))
    if present["state"] != "active":
        why = f"for a node: {present['last_error']}" if present["last_error"] else "for a node"
        return instance.wait_in("allocate", why, uuid)
    instance.resource_id_set(present["node_uuid"])
    return "prepare"


def spread_nodes(nodes: Sequence[Json], field: str, number: int) -> list[str]:
    """Return the free nodes with one value of ``field``; ``number`` selects the value.

    Values without a free node are skipped.  []: no node is free, or all have the same value.
    """
    values = sorted({str(node[field] or "") for node in nodes})
    free: dict[str, list[str]] = {value: [] for value in values}
    for node in nodes:
        is_unused = node["instance_uuid"] is None and not node["maintenance"]
        if is_unused and node["provision_state"] == State.AVAILABLE:
            free[str(node[field] or "")].append(node["uuid"])
    start = number % len(values) if values else 0
    chosen = next((v for v in values[start:] + values[:start] if free[v]), None)
    return free[chosen] if chosen is not None and len(values) > 1 else []
