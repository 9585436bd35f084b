"""The lookups: OS::Ironic::NodeLookup and OS::Heat::StackOutputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import base, drift
from bloomery.orchestration.resources.lookup import HIDDEN, REFRESH, Lookup, NotReadYet

_TEXT, _TEXTS, _FLAG = Type.STRING, Type.LIST, Type.BOOLEAN
FILTERS: Final = {
    "associated": _FLAG, "chassis_uuid": _TEXT, "conductor_group": _TEXT, "driver": _TEXT,
    "instance_name": _TEXT, "lessee": _TEXT, "maintenance": _FLAG, "owner": _TEXT,
    "provision_state": _TEXT, "retired": _FLAG, "shard": _TEXTS,
}  # fmt: skip


class NodeLookup(Lookup):
    """The nodes of a class with traits, as far as the owner of the stack may see them."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "resource_class": Schema(Type.STRING, "The resource class of the nodes.",
                                 update_allowed=True),
        "traits": Schema(Type.LIST, "The traits that each node has.",
                         schema=Schema(Type.STRING), update_allowed=True),
        "candidate_nodes": Schema(
            Type.LIST, "The nodes to look among, by UUID or name; all by default.",
            schema=Schema(Type.STRING), update_allowed=True,
        ),
        "filters": Schema(
            Type.MAP, "Filters of the list of nodes, by field.", update_allowed=True, schema={
                name: Schema(kind, f"The {name} of the nodes.",
                             schema=Schema(Type.STRING) if kind is _TEXTS else None)
                for name, kind in FILTERS.items()
            },
        ),
        "minimum": Schema(
            Type.INTEGER, "The least number of nodes; with fewer nodes the action fails.",
            default=0, update_allowed=True, constraints=[constraints.Range(min=0)],
        ),
        "addresses": Schema(
            Type.BOOLEAN, "Whether to read the MAC addresses of the ports of each node.",
            default=False, update_allowed=True,
        ),
        "refresh": REFRESH,
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "nodes": Attribute("UUID, name, class, traits and free of each node.", Type.LIST),
        "uuids": Attribute("The UUIDs of the nodes, in the order of their names.", Type.LIST),
        "names": Attribute("The names of the nodes; the UUID of a node without one.", Type.LIST),
        "count": Attribute("The number of the nodes.", Type.INTEGER),
        "free": Attribute("The number of those that an allocation may take.", Type.INTEGER),
        "capacity": Attribute("The numbers of nodes and free nodes by class and traits.",
                              Type.LIST),
        "addresses": Attribute("The MAC addresses of the ports, by the name of the node.",
                               Type.MAP),
    }  # fmt: skip
    shown: ClassVar[Sequence[str]] = ("names", "free", "capacity", "addresses")

    @classmethod
    def read(
        cls, properties: Mapping[str, Any], context: base.ResourceContext
    ) -> tuple[dict[str, Any], Sequence[str]]:
        machines = context.machines
        if machines is None:
            raise errors.NotFound(reason="cannot look up nodes: no bare-metal service is here")
        filters = {**(properties["filters"] or {}), "resource_class": properties["resource_class"]}
        wanted = {*(properties["traits"] or ())}
        idents = properties["candidate_nodes"]
        listed = machines.list_nodes({k: v for k, v in filters.items() if v is not None})
        nodes = [
            {"uuid": each["uuid"], "name": each["name"] or each["uuid"], "free": each["is_free"],
             "resource_class": each["resource_class"], "traits": [*each["traits"]]}
            for each in listed if wanted <= {*each["traits"]}
            and (idents is None or each["uuid"] in idents or each["name"] in idents)
        ]  # fmt: skip
        nodes.sort(key=lambda node: (node["name"], node["uuid"]))
        if len(nodes) < properties["minimum"]:
            fits = "1 node fits" if len(nodes) == 1 else f"{len(nodes)} nodes fit"
            raise errors.NotFound(reason=f"{fits}, and minimum is {properties['minimum']}")
        by_uuid = {each["uuid"]: each["name"] for each in nodes if properties["addresses"]}
        listed_addresses = machines.list_addresses([*by_uuid])
        addresses = {by_uuid[uuid]: each for uuid, each in listed_addresses.items()}
        return {"nodes": nodes, "addresses": addresses}, ()

    @classmethod
    def attributes_of(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        nodes = values["nodes"]
        kinds = [(str(each["resource_class"] or ""), tuple(each["traits"])) for each in nodes]
        free = Counter(kind for kind, each in zip(kinds, nodes, strict=True) if each["free"])
        return {
            "nodes": nodes,
            "uuids": [each["uuid"] for each in nodes],
            "names": [each["name"] for each in nodes],
            "count": len(nodes),
            "free": free.total(),
            "capacity": [
                {"resource_class": name, "traits": [*traits], "nodes": count,
                 "free": free[name, traits]}
                for (name, traits), count in sorted(Counter(kinds).items())
            ],
            "addresses": values["addresses"],
        }  # fmt: skip


class StackOutputs(Lookup):
    """The outputs of another stack of the project; ``check`` and the drift watch compare them."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "stack": Schema(Type.STRING, "The name or the ID of the stack.", required=True,
                        update_allowed=True),
        "outputs": Schema(Type.LIST, "The names of the outputs; all by default.",
                          schema=Schema(Type.STRING), update_allowed=True),
        "refresh": REFRESH,
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "outputs": Attribute("The values of the outputs, by name.", Type.MAP),
        "stack_id": Attribute("The ID of the stack.", Type.STRING),
    }
    shown: ClassVar[Sequence[str]] = ("outputs", "stack_id")

    @classmethod
    def read(
        cls, properties: Mapping[str, Any], context: base.ResourceContext
    ) -> tuple[dict[str, Any], Sequence[str]]:
        if context.stacks is None:
            raise errors.NotFound(reason="cannot read other stacks: no service with stacks is here")
        other = context.stacks.read(properties["stack"], properties["outputs"])
        if not other.is_at_rest:
            raise NotReadYet(other)
        return {"stack_id": other.uuid, "outputs": dict(other.outputs)}, [*other.hidden]

    @classmethod
    def attributes_of(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        return dict(values)

    def handle_check(self) -> Any:
        """Raise NotFound, or Drifted with each output that has changed; change nothing."""
        drift.refuse(self.find_differences())

    def find_differences(self) -> list[drift.Difference]:
        """Return the outputs that differ from those that were read last.

        A stack that an engine is working on is left out: its outputs are about to change.
        """
        try:
            values, hidden = self.read(self.properties, self.context)
        except NotReadYet:
            return []
        return [*self._differences(values, {*hidden, *self.record.data.get(HIDDEN, ())})]

    def _differences(self, values: Mapping[str, Any], hidden: set[str]) -> Iterator[Any]:
        stored, name = self.stored or {}, self.properties["stack"]
        before, after = stored.get("outputs") or {}, values["outputs"]
        if stored and stored["stack_id"] != values["stack_id"]:
            yield drift.Difference("stack_id", f"another stack has the name {name} now")
        for key in dict.fromkeys([*before, *after]):
            if before.get(key) == after.get(key):
                continue
            sentence = f"output {key} of stack {name} has changed"
            if key not in hidden:
                now, was = drift.text(after.get(key)), drift.text(before.get(key))
                sentence = f"output {key} of stack {name} is {now} and was {was}"
            yield drift.Difference(f"outputs/{key}", sentence)
