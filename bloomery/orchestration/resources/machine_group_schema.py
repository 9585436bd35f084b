"""The properties, update policies and attributes of OS::Ironic::InstanceGroup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import resource_group, rollouts
from bloomery.orchestration.resources.rollouts import OnFailure, RolloutOrder

SHARE: Final = constraints.AllowedPattern(r"\d+%?")


def _integer(description: str, default: int | None, least: int = 0) -> Schema:
    return Schema(
        Type.INTEGER, description, default=default, constraints=[constraints.Range(min=least)]
    )


def _share(description: str, default: str) -> Schema:
    return Schema(Type.STRING, description, default=default, constraints=[SHARE])


def _seconds(description: str, default: int = 0) -> Schema:
    return Schema(Type.NUMBER, description, default=default, constraints=[constraints.Range(min=0)])


def _choice(description: str, allowed: type[RolloutOrder | OnFailure], default: str) -> Schema:
    rules = [constraints.AllowedValues([str(each) for each in allowed])]
    return Schema(Type.STRING, description, default=default, constraints=rules)


GATE: Final = {
    "check": Schema(Type.BOOLEAN, "Members must be healthy after their batch.", default=True),
    "settle_seconds": _seconds("Seconds after a batch until its members are judged.",
                               rollouts.SETTLE_S),
}  # fmt: skip
ROLLING: Final = {
    "max_unavailable": _share("How many members may be down, as a number or a percentage.", "1"),
    "max_surge": _share("How many members more there may be meanwhile.", "0"),
    "batch_size": _integer("How many members change at a time.", 1, least=1),
    "pause_time": _seconds("Seconds between two batches."),
    "order": _choice("Who changes first.", RolloutOrder, "index_desc"),
    "failure_policy": _choice("What too many failures come to.", OnFailure, "pause"),
    "max_failures": _integer("How many members may fail.", 0),
    "health_gate": Schema(Type.MAP, "What members are after their batch.", schema=GATE),
}
CANARY: Final = {
    "size": _integer("How many members try the new definition first.", 0),
    "soak_seconds": _seconds("Seconds until they are judged again."),
    "require_signal": Schema(Type.BOOLEAN, "Others wait for a signal.", default=False),
}
CREATE: Final = {
    "max_batch_size": _integer("How many members are made at a time; all.", None, least=1),
    "pause_time": _seconds("Seconds between two batches."),
    "max_failures": _integer("How many members may fail.", 0),
}
DELETION: Final = {"batch_size": _integer("How many members leave at a time.", 10, least=1)}

PROPERTIES: Final[Mapping[str, Schema]] = {
    **resource_group.Indexed.properties_schema,
    "member": Schema(
        Type.MAP, "Properties of each member, as of OS::Ironic::Instance.", required=True,
        update_allowed=True,
    ),
    "member_overrides": Schema(
        Type.MAP, "Properties of single members, by index.", update_allowed=True
    ),
    "spread_by": Schema(
        Type.STRING, "What members share with as few others as can be, by their nodes.",
        default="none", update_allowed=True,
        constraints=[constraints.AllowedValues(["none", "conductor_group", "shard", "chassis"])],
    ),
    "min_ready": Schema(
        Type.STRING, "How many members are ready when the group is complete.", default="100%",
        update_allowed=True, constraints=[SHARE],
    ),
}  # fmt: skip
UPDATE_POLICY: Final[Mapping[str, Schema]] = {
    "batch_create": Schema(Type.MAP, "How members are made.", schema=CREATE),
    "rolling_update": Schema(Type.MAP, "How they take a new definition.", schema=ROLLING),
    "canary": Schema(Type.MAP, "Who tries it first.", schema=CANARY),
    "deletion": Schema(Type.MAP, "How members leave.", schema=DELETION),
}
ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    **resource_group.Indexed.attributes_schema,
    "ready_count": Attribute("How many members are ready.", Type.INTEGER),
    "updated_count": Attribute("How many have the definition.", Type.INTEGER),
    "degraded": Attribute("Names of those that are not ready.", Type.LIST),
    "rollout": Attribute("How far the roll-out is.", Type.MAP),
    "addresses": Attribute("First address of each member.", Type.LIST),
    "nodes": Attribute("UUID of each member's node.", Type.LIST),
}
