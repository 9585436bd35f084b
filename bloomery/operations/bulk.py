"""Many nodes in one request: enrol machines, or order one action of them.

Each machine has a result of its own, in the order of the request, and stops no other one.

    bulk.enrol(ctx, [Machine(fields={"name": "web-1", "driver": "redfish"}, ports=[...])])
    bulk.act(ctx, ["web-1", "web-2"], "provision", {"target": "manage"})
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.db import rows
from bloomery.model import nouns
from bloomery.model.request import PARKING, Parked, Parking
from bloomery.model.rules import nodes as rules
from bloomery.operations import firmware, management, nodes, policy, provision, records
from bloomery.operations.context import Context

Json = dict[str, Any]

MOST: Final = 200  # nodes in one request
ENROL_RULE: Final = "baremetal:node:create"
IMPORT_RULE: Final = "baremetal:node:import"
ACT_RULE: Final = "baremetal:node:list"
_COLUMNS: Final = ("uuid", "name", "driver", "driver_info", "macs")
_LOST_RACES: Final = (errors.NodeAlreadyExists, errors.DuplicateName)
_VERB_FACTS: Final = ("state", "possible", "first")  # of a verb that the state refuses


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node to create and its ports; both have passed their schemas, except for ``fault``.

    ``fields`` have a UUID or a name: the key by which a repetition finds the node again.
    ``imported``: the state in which another service has left the node; it begins in maintenance.
    """

    fields: Json
    imported: Json | None = None
    ports: Sequence[Json] = ()
    fault: errors.Failure | None = None


def enrol(ctx: Context, machines: Sequence[Machine]) -> list[Json]:
    """Create the nodes and ports that are missing; return a result for each machine.

    A node that is there keeps its fields: only its missing ports are created.
    """
    policy.authorize(ctx, ENROL_RULE)
    _check_count(machines)
    return [
        _attempted(lambda machine=machine: _enrol(ctx, machine))  # type: ignore[misc]
        | {"name": machine.fields.get("name")}
        for machine in machines
    ]


def act(ctx: Context, idents: Sequence[str], action: str, body: Json) -> list[Json]:
    """Order an action of each node, with the policy of a single request; return the results."""
    policy.authorize(ctx, ACT_RULE)
    _check_count(idents)
    send = ACTIONS[action]

    def order(ident: str) -> Json:
        send(ctx, ident, body)
        return {"result": "accepted"}

    parking, parked = PARKING.get() or Parking(), None
    results: list[Json] = []
    for number, ident in enumerate(idents):
        attempt = partial(_attempted, partial(order, ident))
        try:
            result = parking.once(f"{action} of item {number}", attempt)
        except Parked as exc:
            parked = exc
        else:
            results.append(result | {"node": ident})
    if parked is not None:
        raise parked
    return results


def _check_count(items: Sequence[Any]) -> None:
    if len(items) > MOST:
        raise errors.Invalid(
            reason=f"cannot take {len(items)} nodes in one request: {MOST} are allowed; send "
            "several requests",
        )


def _attempted(work: Callable[[], Json]) -> Json:
    """Return the result of ``work``, or its refusal."""
    try:
        return work() | {"error": None}
    except errors.Failure as exc:
        error = {"code": exc.code, "status": exc.status, "message": errors.brief(exc)}
        if isinstance(exc, errors.InvalidStateRequested):
            error |= {key: exc.facts[key] for key in _VERB_FACTS if key in exc.facts}
        return {"result": "refused", "error": error}


# -------------------------------------------------------------------------------------- enrol


def _enrol(ctx: Context, machine: Machine) -> Json:
    if machine.fault is not None:
        raise machine.fault
    key = machine.fields.get("uuid") or machine.fields.get("name")
    if not key:
        raise errors.Invalid(
            reason="cannot enrol a machine without a key: give it a name or a uuid, by which a "
            "repeated request finds it again",
        )
    node = _find(ctx, key)
    if node is None:
        fields = {"uuid": str(uuids.uuid4())} | machine.fields
        try:
            if machine.imported is None:
                uuid = nodes.create(ctx, fields)
            else:
                policy.authorize(ctx, IMPORT_RULE)
                imported = dict(machine.imported)
                state = State(imported.pop("provision_state"))
                reason = imported.get("maintenance_reason")
                imported |= rules.maintenance_of_operator(True, reason)
                uuid = nodes.create(ctx, fields, state, imported)
            result, macs = "created", frozenset[str]()
        except _LOST_RACES:
            node = _find(ctx, key)  # an equal request may have been faster
            if node is None:
                raise
    if node is not None:
        # another driver, or address of the BMC: it is another machine
        requested = {"driver": machine.fields["driver"]}
        requested |= _addresses(machine.fields.get("driver_info") or {})
        stored = {"driver": node.driver, **_addresses(rows.load(node.driver_info))}
        if other := sorted(name for name, value in requested.items() if stored.get(name) != value):
            raise errors.Conflict(
                reason=f"cannot enrol it as node {errors.name_of(node)}, which is there with "
                f"another {' and '.join(other)}: choose another name, or PATCH that node",
            )
        uuid, result, macs = node.uuid, "present", _macs(node)
    for port in machine.ports:
        if str(port["address"]).lower() not in macs and _add_port(ctx, uuid, port):
            result = "completed" if result == "present" else result
    return {"result": result, "uuid": uuid}


def _add_port(ctx: Context, uuid: str, port: Json) -> bool:
    """Create a port; False where an equal request has just created it."""
    try:
        records.create(ctx, nouns.PORT, {**port, "node_uuid": uuid})
    except errors.MACAlreadyExists:
        node = _find(ctx, uuid)
        if node is None or str(port["address"]).lower() not in _macs(node):
            raise
        return False
    return True


def _macs(node: Any) -> frozenset[str]:
    return frozenset((node.macs or "").split(","))


def _find(ctx: Context, key: str) -> Any:
    """Return the row of the node with this key, or None."""
    try:
        return policy.get_node(ctx, key, columns=_COLUMNS)
    except errors.NodeNotFound:
        return None


def _addresses(driver_info: Json) -> Json:
    return {name: value for name, value in driver_info.items() if name.endswith("_address")}


# ---------------------------------------------------------------------------------------- act


def _provision(ctx: Context, ident: str, body: Json) -> None:
    provision.set_provision_state(ctx, ident, body)


def _power(ctx: Context, ident: str, body: Json) -> None:
    management.set_power_state(ctx, ident, body["target"], body.get("timeout"))


def _maintenance(ctx: Context, ident: str, body: Json) -> None:
    nodes.set_maintenance(ctx, ident, body["on"], body.get("reason"))


ACTIONS: Final[Mapping[str, Callable[[Context, str, Json], None]]] = {
    "firmware": firmware.order, "maintenance": _maintenance, "power": _power,
    "provision": _provision,
}  # fmt: skip
