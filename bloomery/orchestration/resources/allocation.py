"""OS::Ironic::Allocation: a node that is reserved for an instance."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, NoReturn

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.presence import AtLeastOne, Excludes, Rule
from bloomery.orchestration.properties.schema import (
    Attribute,
    Drift,
    OnChange,
    Plans,
    Schema,
    Type,
    updatable,
)
from bloomery.orchestration.resources import drift, machine_records, machines, stepwise
from bloomery.orchestration.resources.effects import Effect, Need
from bloomery.orchestration.resources.machine_records import field
from bloomery.orchestration.resources.machines import Json
from bloomery.orchestration.resources.stepwise import MARKS, Step
from bloomery.outcome import Again

UNSEEN: Final = Drift.NONE
TRIES: Final = "tries"
REASON: Final = "reason"  # why the last try found no node
LEAST_S: Final = 5.0  # until the next try, twice as long each time
MOST_S: Final = 60.0
STEPS: Final = MARKS | {
    "post": Step("ask for a node", "await_node"),
    "await_node": Step("wait for the node of the allocation", "end", "for a node", orders=True),
    "renew": Step("delete the allocation that found no node", "post"),
    "update": Step("write name and extra"),
    "delete": Step("withdraw the allocation"),
}


class Allocation(machine_records.MachineRecord):
    """A reservation of a node; with ``wait_for_capacity`` it is tried until ``timeout``."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "name": updatable(
            Type.STRING, OnChange.PATCH, Drift.FIELD,
            "The name of the allocation; a node of this name is preferred.",
        ),
        "resource_class": Schema(
            Type.STRING, "The resource class of the node; required unless node is given.",
            drift=UNSEEN, plans=Plans.MACHINE,
        ),
        "traits": Schema(
            Type.LIST, "The required traits of the node.", schema=Schema(Type.STRING), drift=UNSEEN,
            plans=Plans.MACHINE,
        ),
        "candidate_nodes": Schema(
            Type.LIST, "The nodes to choose from, by UUID or name.", schema=Schema(Type.STRING),
            drift=UNSEEN, plans=Plans.MACHINE,
        ),
        "exclude_nodes": updatable(
            Type.LIST, OnChange.LATER, UNSEEN, "The nodes to exclude, by UUID or name.",
            schema=Schema(Type.STRING), plans=Plans.MACHINE,
        ),
        "node": Schema(
            Type.STRING, "The node to reserve, by UUID or name.", drift=UNSEEN, plans=Plans.MACHINE
        ),
        "owner": Schema(Type.STRING, "The project that owns the allocation.", drift=UNSEEN),
        "extra": field(Type.MAP, "Arbitrary metadata of the allocation.", Drift.FIELD),
        "timeout": updatable(
            Type.NUMBER, OnChange.LATER, UNSEEN, "Seconds to wait for a node.", default=300,
            constraints=[constraints.Range(min=1)],
        ),
        "wait_for_capacity": updatable(
            Type.BOOLEAN, OnChange.LATER, UNSEEN, "Wait until a node is free.", default=False,
            plans=Plans.MACHINE,
        ),
    }  # fmt: skip
    presence_rules: ClassVar[Sequence[Rule]] = (
        AtLeastOne("resource_class", "node", reason="cannot look for a node"),
        Excludes("node", "candidate_nodes", "exclude_nodes", place="node",
                 reason="cannot be limited to one node and to others"),
    )  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "node_uuid": Attribute("The UUID of the node.", Type.STRING),
        "node_name": Attribute("The name of the node.", Type.STRING),
        "state": Attribute("The state: allocating, active or error.", Type.STRING),
        "candidate_nodes": Attribute("The UUIDs of the candidate nodes.", Type.LIST),
    }
    steps: ClassVar[Mapping[str, Step]] = STEPS
    noun = machines.ALLOCATION

    @classmethod
    def effect_of_create(cls, properties: Mapping[str, Any]) -> Effect:
        """Return an effect without verbs, with the resource class for a plan."""
        name = properties["resource_class"]
        needs = None if properties["node"] else Need.of(properties)
        return Effect(resource_class=name if isinstance(name, str) else None, needs=needs)

    def handle_create(self) -> Any:
        self.resource_id_set(self.derived_id(machines.ALLOCATION))
        self.record.data["give_up_at"] = self.context.utc() + float(self.properties["timeout"])
        self.begin("post")

    def step_post(self) -> stepwise.Following:
        try:
            fields = request_of(self.machines, self.properties)
        except NoCandidates as exc:
            return self.fail_or_ask_later(str(exc))
        machine_records.create(self, machines.ALLOCATION, str(self.record.physical_id), fields)
        return "await_node"

    def step_await_node(self) -> stepwise.Following:
        uuid = str(self.record.physical_id)
        allocation = self.machines.find(machines.ALLOCATION, uuid)
        if allocation is None:
            raise stepwise.MachineFailed(f"allocation {uuid} was deleted by somebody else")
        if allocation["state"] == "active":
            return None
        if allocation["state"] == "error":
            return self.fail_or_ask_later(str(allocation["last_error"]))
        if self._left_s() <= 0:
            reason = allocation["last_error"] or self.record.data.get(REASON)
            self._give_up(reason or "it is allocating still")
        return self.wait_for(uuid, self._left_s(), "for a node")

    def _left_s(self) -> float:
        return float(self.record.data["give_up_at"]) - self.context.utc()

    def fail_or_ask_later(self, reason: str) -> Again:
        """Return a pause before the next try, which grows with each try and has jitter.

        Raises MachineFailed without ``wait_for_capacity``, MachineTimedOut after ``timeout``.
        """
        if not self.properties["wait_for_capacity"]:
            raise stepwise.MachineFailed(reason)
        if self._left_s() <= 0:
            self._give_up(reason)
        self.record.data[REASON] = reason
        tries = self.record.data[TRIES] = self.record.data.get(TRIES, 0) + 1
        rest_s = min(LEAST_S * 2.0 ** (tries - 1), MOST_S) * (1 + self.context.random() / 4)
        self.begin("renew")
        return Again(after_s=min(rest_s, self._left_s()), reason=reason)

    def _give_up(self, reason: str) -> NoReturn:
        timeout_s = float(self.properties["timeout"])
        raise stepwise.MachineTimedOut(
            f"cannot wait longer than {timeout_s:g} s for a node: {reason}"
        )

    def step_renew(self) -> str | None:
        withdraw(self, str(self.record.physical_id))
        return "post"

    def handle_create_cancel(self, token: Any) -> None:
        """Do nothing: the delete that follows withdraws the allocation."""

    def step_delete(self) -> str | None:
        uuid = self.record.physical_id
        if uuid is not None:
            withdraw(self, uuid)
        return None

    def differences(self, real: Json) -> Iterator[drift.Difference]:
        """Yield differences of fields and state, and of a node that is no longer reserved."""
        yield from super().differences(real)
        yield from drift.compare({"state": "active"}, real)
        if (node_uuid := real["node_uuid"]) is not None:
            node = self.machines.get_node(node_uuid)
            yield from drift.compare({"instance_uuid": real["uuid"]}, node)

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name != "node_name":
            return super().resolve_attribute(name, path)
        try:
            return self.machines.get_node(str(self.real()["node_uuid"]))["name"]
        except errors.NotFound:
            return None


class NoCandidates(stepwise.MachineFailed):
    """No available node is left beside ``exclude_nodes``."""


def candidates(
    service: machines.Machines, selector: Mapping[str, Any], *, in_use: bool = False
) -> list[Json]:
    """Return the candidate nodes: the named nodes, or the available nodes of a class.

    ``selector``: properties as of an allocation; ``in_use``: all nodes of the class.  Raises
    NoCandidates if ``exclude_nodes`` leaves no available node.
    """
    excluded = {*(selector.get("exclude_nodes") or ())}
    if named := selector.get("candidate_nodes"):
        nodes = [service.get_node(ident) for ident in named]
    else:
        list_nodes = service.list_class if in_use else service.list_available
        nodes = list_nodes(str(selector["resource_class"]))
    rest = [node for node in nodes if not {node["uuid"], node["name"]} & excluded]
    if excluded and not (rest or in_use):
        raise NoCandidates("no node is available but for those of exclude_nodes")
    return rest


def still_fits(node: Json, before: Mapping[str, Any], selector: Mapping[str, Any]) -> bool:
    """Tell whether a node fits the new selector; False if the class or traits have changed."""
    names, named = {node["uuid"], node["name"]}, selector.get("candidate_nodes")
    if any(before.get(key) != selector.get(key) for key in ("resource_class", "traits")):
        return False
    is_excluded = bool(names & {*(selector.get("exclude_nodes") or ())})
    return not is_excluded and (not named or bool(names & {*named}))


def request_of(service: machines.Machines, properties: Mapping[str, Any]) -> Json:
    """Return the body of POST, without empty fields; ``node`` becomes a candidate by UUID.

    Raises NoCandidates.
    """
    fields = {
        name: properties.get(name)
        for name in ("name", "resource_class", "traits", "candidate_nodes", "owner", "extra")
    }
    if ident := properties.get("node"):
        node = service.get_node(ident)
        fields["candidate_nodes"] = [node["uuid"]]
        fields["resource_class"] = fields["resource_class"] or node["resource_class"]
    if properties.get("exclude_nodes"):
        nodes = candidates(service, properties)
        fields["candidate_nodes"] = [node["uuid"] for node in nodes]
    return {name: value for name, value in fields.items() if value}


def withdraw(resource: stepwise.Stepwise, uuid: str) -> None:
    """Delete an allocation, unless it is gone or bears another resource's mark.

    The API leaves its traits in instance_info of a node on which nothing was deployed, and the next
    instance would be deployed with them; they are removed first.
    """
    allocation = machine_records.find_ours(resource, machines.ALLOCATION, uuid)
    if allocation is None:
        return
    with contextlib.suppress(errors.Forbidden, errors.NotFound):
        node = resource.machines.get_node(str(allocation["node_uuid"]))
        unused = (node["provision_state"], node["instance_uuid"]) == (
            State.AVAILABLE, allocation["uuid"],
        )  # fmt: skip
        if unused and "traits" in node["instance_info"]:
            patch = [{"op": "remove", "path": "/instance_info/traits"}]
            resource.machines.update_node(node["uuid"], patch)
    machine_records.delete(resource, machines.ALLOCATION, uuid)
