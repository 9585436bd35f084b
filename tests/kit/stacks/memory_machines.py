"""Machines and software in memory (``machines.Machines``), for stacks without a service.

With ``invents`` an unknown node is invented when it is read, and an allocation that finds no node
gets a new one.  A verb has ended by the next read of its node, or after its seconds in
``takes_s``::

    machines = MemoryMachines(utc=clock.now, takes_s={"active": 600})
    machines.orders  # [("6f2b...", "active")]: what was ordered of which node
    machines.fail_next("active", "no disk")
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import jsonpatch
from oslo_utils import uuidutils

from bloomery import errors
from bloomery.conductor import states
from bloomery.conductor.states import Power, State
from bloomery.orchestration.resources import software
from bloomery.orchestration.resources.machines import (
    ALLOCATION,
    PORT,
    PORTGROUP,
    RUNBOOK,
    VOLUME_CONNECTOR,
    VOLUME_TARGET,
    Json,
    Patch,
)
from bloomery.outcome import FlowOutcome

_INVENTED: Final = "simulated-"  # prefix of the names of invented nodes
_SPACE: Final = uuids.UUID("3a0c3f5e-6d0c-4f0a-9d0b-5f2b7c1d9e10")  # of invented nodes

_VOLUMES: Final = frozenset({VOLUME_CONNECTOR, VOLUME_TARGET})
_NEXT: Final = {(edge.source, edge.event): edge.target for edge in states.EDGES}
_NODE: Final[Json] = {
    "driver": "fake-hardware", "properties": {}, "instance_info": {}, "instance_uuid": None,
    "instance_name": None, "extra": {}, "allocation_uuid": None, "resource_class": None,
    "power_state": Power.OFF, "target_power_state": None, "target_provision_state": None,
    "provision_updated_at": None, "maintenance": False, "maintenance_reason": None,
    "fault": None, "last_error": None, "reservation": None, "protected": False,
    "retired": False, "health": None, "boot_mode": None, "secure_boot": None, "traits": [],
    "owner": None, "lessee": None, "conductor_group": "", "name": None, "parent_node": None,
    "driver_info": {}, "raid_config": {}, "console_enabled": False, "protected_reason": None,
    "retired_reason": None, "shard": None, "chassis_uuid": None,
}  # fmt: skip


class MemoryFlow(NamedTuple):
    """A flow that an order has begun on a node."""

    order_id: str | None
    verb: str
    outcome: FlowOutcome


class MemoryMachines:
    def __init__(
        self,
        *,
        utc: Callable[[], float] = lambda: 0.0,
        takes_s: Mapping[str, float] | None = None,
        invents: bool = False,
    ) -> None:
        self.nodes: dict[str, Json] = {}
        self.records: dict[str, dict[str, Json]] = {}
        self.vifs: dict[str, list[str]] = {}
        self.bios: dict[str, dict[str, str | None]] = {}
        self.firmware: dict[str, list[Json]] = {}
        self.catalogue: tuple[str | None, dict[str, str]] = None, {}  # digest, version by component
        self.ignores_firmware = False  # updates end well, and change nothing
        self.orders: list[tuple[str, str]] = []
        self.dead_stacks: set[str] = set()
        self._utc, self._takes_s, self._invents = utc, takes_s or {}, invents
        self._moves: dict[str, tuple[float, State, str]] = {}
        self._failures: list[tuple[str, str]] = []
        self.flows: dict[str, list[MemoryFlow]] = {}

    def of_stack(self, _stack: object) -> MemoryMachines:
        """Return all machines, whatever the stack."""
        return self

    def fail_next(self, verb: str, reason: str) -> None:
        """Let the next node that gets ``verb`` end in the failed state."""
        self._failures.append((verb, reason))

    def add_node(self, state: State = State.AVAILABLE, **fields: Any) -> str:
        """Add a node; return its UUID."""
        uuid = str(fields.pop("uuid", None) or uuids.uuid4())
        values = {"uuid": uuid, "provision_state": state} | fields
        self.nodes[uuid] = {key: _copy(value) for key, value in _NODE.items()} | values
        return uuid

    def get_node(self, ident: str) -> Json:
        return dict(self._node(ident))

    def _node(self, ident: str) -> Json:
        named = (each for each in self.nodes.values() if ident in (each["uuid"], each["name"]))
        node = next(named, None)
        if node is None:
            if not self._invents:
                raise errors.NodeNotFound(node=ident)
            uuid = ident if uuidutils.is_uuid_like(ident) else str(uuids.uuid5(_SPACE, ident))
            node = self.nodes[self.add_node(uuid=uuid, name=None if uuid == ident else ident)]
        self._settle(node)
        return node

    def _settle(self, node: Json) -> None:
        """End the verb of a node if its time is over."""
        if node["uuid"] not in self._moves or self._moves[node["uuid"]][0] > self._utc():
            return
        _, state, reason = self._moves.pop(node["uuid"])
        self._end_flow(node["uuid"], reason)
        was_deleting = node["provision_state"] == State.DELETING
        node |= {"provision_state": state, "last_error": reason or None}
        node["provision_updated_at"] = f"{len(self.orders):04}.1"
        if state == State.ACTIVE:
            node["power_state"] = Power.ON
        elif was_deleting and not reason:
            self._forget_instance(node)

    def _forget_instance(self, node: Json) -> None:
        if node["allocation_uuid"]:
            self.records[ALLOCATION].pop(node["allocation_uuid"], None)
        node |= {"instance_info": {}, "instance_uuid": None, "instance_name": None}
        node |= {"allocation_uuid": None, "power_state": Power.OFF}

    def list_available(self, resource_class: str) -> list[Json]:
        for node in self.nodes.values():
            self._settle(node)
        record = {"resource_class": resource_class}
        invented = [n for n in self.nodes.values() if str(n["name"]).startswith(_INVENTED)]
        if self._invents and not any(_fits(node, record) for node in invented):
            self._invent(record)
        return [dict(node) for node in self.nodes.values() if _fits(node, record)]

    def list_class(self, resource_class: str) -> list[Json]:
        nodes = self.nodes.values()
        return [dict(node) for node in nodes if node["resource_class"] == resource_class]

    def list_nodes(self, filters: Json) -> list[Json]:
        nodes = [{**each} for each in self.nodes.values()]
        return [
            node | {"is_free": node["provision_state"] == State.AVAILABLE} for node in nodes
            if all(node.get(name) == value for name, value in filters.items())
        ]  # fmt: skip

    def create_node(self, fields: Json) -> None:
        if fields["uuid"] in self.nodes:
            raise errors.NodeAlreadyExists(node=fields["uuid"])
        if fields.get("name") in {each["name"] for each in self.nodes.values()} - {None}:
            raise errors.DuplicateName(name=fields["name"])
        self.add_node(State.ENROLL, **fields)

    def update_node(self, uuid: str, patch: Patch) -> None:
        node = self._node(uuid)
        instance = node["instance_uuid"]
        changed = jsonpatch.apply_patch(node, [dict(each) for each in patch])
        if instance is not None and changed.get("instance_uuid") not in (None, instance):
            raise errors.NodeAssociated(node=uuid, instance=instance)
        node |= changed
        for name in set(node) - set(changed):
            node[name] = _copy(_NODE.get(name))
        if instance is not None and node["instance_uuid"] is None and node["allocation_uuid"]:
            self.records[ALLOCATION].pop(node["allocation_uuid"], None)
            node["allocation_uuid"] = None

    def delete_node(self, uuid: str) -> None:
        node = self._node(uuid)
        if node["provision_state"] not in {State.ENROLL, State.MANAGEABLE, State.AVAILABLE}:
            raise errors.InvalidState(reason=f"cannot delete node {uuid}: it is in use")
        del self.nodes[uuid]
        for noun in (PORT, PORTGROUP):
            kept = self.records.get(noun, {})
            self.records[noun] = {u: each for u, each in kept.items() if each["node_uuid"] != uuid}

    def set_traits(self, uuid: str, traits: Sequence[str]) -> None:
        self._node(uuid)["traits"] = sorted(traits)

    def set_maintenance(self, uuid: str, on: bool, reason: str | None = None) -> None:
        self._node(uuid).update(maintenance=on, maintenance_reason=reason)

    def set_provision_state(
        self, uuid: str, verb: str, *, order_id: str | None = None, **arguments: Any
    ) -> None:
        node = self._node(uuid)
        state = State(node["provision_state"])
        meanwhile = _NEXT.get((state, states.VERBS[verb]))
        if meanwhile is None:
            raise errors.InvalidStateRequested(action=verb, node=uuid, state=state)
        target = State.MANAGEABLE if verb == "clean" else states.TARGETS.get(meanwhile, meanwhile)
        if meanwhile not in states.UNSTABLE_STATES:  # an abort ends at once
            target = meanwhile
        self.orders.append((uuid, verb))
        for step in arguments.get("deploy_steps") or arguments.get(f"{verb}_steps") or ():
            self._configure(node, step)
        reason = next((why for word, why in self._failures if word == verb), "")
        if reason:
            self._failures.remove((verb, reason))
        node["provision_state"] = meanwhile
        node["provision_updated_at"] = f"{len(self.orders):04}.0"
        ends_at = self._utc() + self._takes_s.get(verb, 0)
        self._end_flow(uuid, "aborted on request", is_aborted=True)
        end = _NEXT.get((meanwhile, "fail"), target) if reason else target
        self._moves[uuid] = (ends_at, end, reason)
        begun = FlowOutcome(request_id=order_id, is_open=True, error=None, is_aborted=False)
        self.flows.setdefault(uuid, []).append(MemoryFlow(order_id, verb, begun))

    def _end_flow(self, uuid: str, error: str, *, is_aborted: bool = False) -> None:
        """End the open flow of a node, if there is one."""
        flows = self.flows.get(uuid)
        if flows and flows[-1].outcome.is_open:
            begun = flows[-1].outcome
            ended = replace(begun, is_open=False, error=error or None, is_aborted=is_aborted)
            flows[-1] = flows[-1]._replace(outcome=ended)

    def find_flow(self, uuid: str, order_id: str) -> FlowOutcome | None:
        self._node(uuid)
        flows = self.flows.get(uuid, ())
        return next((each.outcome for each in flows if each.order_id == order_id), None)

    def has_aborted_cleaning(self, uuid: str) -> bool:
        cleanings = [each for each in self.flows.get(uuid, ()) if each.verb == "clean"]
        return bool(cleanings) and cleanings[-1].outcome.is_aborted

    def _configure(self, node: Json, step: Mapping[str, Any]) -> None:
        """Store the settings of a step for later checks."""
        args = step.get("args") or {}
        if (step["interface"], step["step"]) == ("bios", "apply_configuration"):
            settings = {each["name"]: str(each["value"]) for each in args["settings"]}
            self.bios.setdefault(node["uuid"], {}).update(settings)
        elif (step["interface"], step["step"]) == ("raid", "apply_configuration"):
            node["raid_config"] = args["raid_config"]
        elif (step["interface"], step["step"]) == ("bios", "factory_reset"):
            self.bios.pop(node["uuid"], None)
        elif (step["interface"], step["step"]) == ("raid", "delete_configuration"):
            node["raid_config"] = {}
        elif (step["interface"], step["step"]) == ("firmware", "update"):
            versions = {each["component"]: each.get("version") for each in args["settings"]}
            for each in () if self.ignores_firmware else self.firmware.get(node["uuid"], ()):
                each["current_version"] = versions.get(each["component"]) or each["current_version"]

    def set_power_state(self, uuid: str, target: str) -> None:
        off = {Power.OFF, Power.SOFT_OFF}
        self._node(uuid)["power_state"] = Power.OFF if target in off else Power.ON

    def set_boot(self, uuid: str, field: str, value: Any) -> None:
        self._node(uuid)[field] = value

    def list_ports(self, uuid: str) -> tuple[list[Json], list[Json]]:
        kept = (self.records.get(noun, {}).values() for noun in (PORT, PORTGROUP))
        ports, groups = ([dict(r) for r in each if r["node_uuid"] == uuid] for each in kept)
        return ports, groups

    def list_addresses(self, uuids: Sequence[str]) -> dict[str, list[str]]:
        ports = {uuid: self.list_ports(uuid)[0] for uuid in uuids}
        return {uuid: sorted(port["address"] for port in ports[uuid]) for uuid in uuids}

    def list_vifs(self, uuid: str) -> list[str]:
        return list(self.vifs.get(uuid, ()))

    def attach_vif(self, uuid: str, vif: Json) -> None:
        self.vifs.setdefault(uuid, []).append(str(vif["id"]))

    def detach_vif(self, uuid: str, vif_id: str) -> None:
        self.vifs[uuid].remove(vif_id)

    def list_bios_settings(self, uuid: str) -> dict[str, str | None]:
        return dict(self.bios.get(uuid, {}))

    def list_firmware(self, uuid: str) -> list[Json]:
        return [dict(each) for each in self.firmware.get(uuid, ())]

    def list_firmware_updates(self, uuid: str) -> tuple[str | None, list[Json], bool]:
        """Return the updates of the versions in ``catalogue``, whose URLs are the versions."""
        digest, versions = self.catalogue
        updates = [
            {
                "component": each["component"], "current_version": each["current_version"],
                "catalogue_version": version,
                "setting": {"component": each["component"], "url": version, "version": version},
            }
            for each in self.firmware.get(uuid, ())
            if (version := versions.get(each["component"])) not in (None, each["current_version"])
        ]  # fmt: skip
        is_listed = any(each["component"] in versions for each in self.firmware.get(uuid, ()))
        return digest, updates, is_listed

    def get_inventory(self, uuid: str) -> Json:
        """Return an empty inventory.  Raises InventoryNotFound before an inspection."""
        if not any(order == (uuid, "inspect") for order in self.orders):
            raise errors.InventoryNotFound(node=uuid)
        return {"inventory": {}, "plugin_data": {}}

    def find_console(self, uuid: str) -> str | None:
        return f"tcp://{uuid}:0" if self._node(uuid)["console_enabled"] else None

    def list_steps(self, uuid: str, phase: str) -> list[Json]:
        """Return none: a simulated verb has no steps."""
        return []

    def find(self, noun: str, ident: str) -> Json | None:
        kept = self.records.get(noun, {}).values()
        match = (each for each in kept if ident in (each["uuid"], each.get("name")))
        record = next(match, None)
        if record is None and noun == RUNBOOK and self._invents:
            return {"uuid": str(uuids.uuid5(_SPACE, ident)), "name": ident, "extra": {}}
        return None if record is None else dict(record)

    def create(self, noun: str, fields: Json) -> None:
        kept = self.records.setdefault(noun, {})
        if fields["uuid"] in kept:
            raise errors.Conflict(reason=f"{noun} {fields['uuid']} exists")
        record: Json = {"extra": {}, "name": None} | fields
        kept[fields["uuid"]] = self._allocated(record) if noun == ALLOCATION else record

    def _allocated(self, record: Json) -> Json:
        node = self._free_node(record)
        if node is None:
            return record | {
                "state": "error",
                "last_error": "no available nodes",
                "node_uuid": None,
            }
        node |= {"instance_uuid": record["uuid"], "allocation_uuid": record["uuid"]}
        node["instance_info"] = node["instance_info"] | {"traits": record.get("traits") or []}
        return record | {"state": "active", "last_error": None, "node_uuid": node["uuid"]}

    def _free_node(self, record: Json) -> Json | None:
        for node in self.nodes.values():
            self._settle(node)
            if _fits(node, record):
                return node
        return self._invent(record) if self._invents else None

    def _invent(self, record: Json) -> Json:
        uuid = self.add_node(
            name=f"{_INVENTED}{len(self.nodes) + 1}",
            traits=sorted(record.get("traits") or ()),
            resource_class=record.get("resource_class"),
        )
        return self.nodes[uuid]

    def update(self, noun: str, uuid: str, patch: Patch) -> None:
        record = self.records[noun][uuid]
        self._check_power(noun, record)
        self.records[noun][uuid] = jsonpatch.apply_patch(record, [dict(each) for each in patch])

    def delete(self, noun: str, uuid: str) -> None:
        record = self.records.get(noun, {}).get(uuid)
        if record is None:
            raise errors.NotFound(reason=f"{noun} {uuid} could not be found")
        node = self.nodes.get(record.get("node_uuid") or "")
        if node is not None and node["provision_state"] not in states.DELETE_ALLOWED_STATES:
            self._check_power(noun, record)
        if noun == ALLOCATION and node is not None:
            self._settle(node)
            if node["provision_state"] != State.AVAILABLE:
                raise errors.InvalidState(reason=f"allocation {uuid}: its node is in use")
            node |= {"instance_uuid": None, "allocation_uuid": None}
        del self.records[noun][uuid]

    def _check_power(self, noun: str, record: Json) -> None:
        """Raise InvalidStateRequested for a volume of a machine that is on."""
        node = self.nodes.get(record.get("node_uuid") or "")
        if noun in _VOLUMES and node is not None and node["power_state"] != Power.OFF:
            raise errors.InvalidStateRequested(
                action=f"{noun} update", node=node["uuid"], state=node["power_state"],
                advice=" Power it off first.",
            )  # fmt: skip

    def set_runbook_traits(self, uuid: str, traits: Sequence[str]) -> None:
        self.records[RUNBOOK][uuid]["traits"] = sorted(traits)

    def is_live_stack(self, stack_id: str) -> bool:
        return stack_id not in self.dead_stacks


def _fits(node: Json, record: Json) -> bool:
    """Tell whether an allocation may take a node."""
    candidates = record.get("candidate_nodes")
    return (
        node["provision_state"] == State.AVAILABLE
        and not node["instance_uuid"]
        and not node["maintenance"]
        and node["resource_class"] in (None, record.get("resource_class"))
        and (not candidates or node["uuid"] in candidates or node["name"] in candidates)
        and {*(record.get("traits") or ())} <= {*node["traits"]}
    )


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, dict | list) else value


class MemorySoftware:
    """Software configs and deployments (``software.SoftwareStore``)."""

    def __init__(self) -> None:
        self.configs: dict[str, dict[str, Any]] = {}
        self.deployments: dict[str, dict[str, Any]] = {}

    def create_config(self, uuid: str, **values: Any) -> None:
        self.configs.setdefault(uuid, {"id": uuid, **values})

    def show_config(self, uuid: str) -> Mapping[str, Any] | None:
        return self.configs.get(uuid)

    def delete_config(self, uuid: str) -> None:
        if any(each["config_id"] == uuid for each in self.deployments.values()):
            raise errors.Conflict(reason=f"cannot delete software config {uuid}: it is deployed")
        self.configs.pop(uuid, None)

    def create_deployment(self, uuid: str, **values: Any) -> None:
        self.deployments.setdefault(uuid, {"id": uuid, "output_values": {}, **values})

    def show_deployment(self, uuid: str) -> Mapping[str, Any] | None:
        return self.deployments.get(uuid)

    def update_deployment(self, uuid: str, **changes: Any) -> None:
        self.deployments[uuid] |= changes

    def delete_deployment(self, uuid: str) -> None:
        self.deployments.pop(uuid, None)

    def signal_deployment(self, uuid: str, details: Mapping[str, Any]) -> str | None:
        deployment = self.deployments[uuid]
        outputs = (self.configs.get(deployment["config_id"]) or {}).get("outputs") or ()
        changes = software.outcome(deployment, outputs, details)
        if changes is None:
            return None
        deployment |= changes
        return software.outcome_text(changes)
