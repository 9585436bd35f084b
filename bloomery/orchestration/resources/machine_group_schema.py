"""The properties, update policies and attributes of OS::Ironic::InstanceGroup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import instance_schema, resource_group, rollouts, windows
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
    "check": Schema(
        Type.BOOLEAN, "Whether a member with critical health counts as failed.", default=True
    ),
    "settle_seconds": _seconds("Seconds between a batch and the check of its members.",
                               rollouts.SETTLE_S),
}  # fmt: skip
_CLOCK: Final = [constraints.AllowedPattern(windows.CLOCK)]
WINDOW: Final = {
    "days": Schema(
        Type.LIST, "The days on which the window opens; every day by default.",
        schema=Schema(Type.STRING, constraints=[constraints.AllowedValues([*windows.DAYS])]),
    ),
    "begin": Schema(
        Type.STRING, "The time at which it opens, such as 22:00; 00:00 by default.",
        constraints=_CLOCK,
    ),
    "end": Schema(
        Type.STRING, "The time at which it closes, perhaps on the next day; 00:00 by default.",
        constraints=_CLOCK,
    ),
    "cron": Schema(
        Type.STRING, "When it opens, in place of days and begin, such as 0 22 1 * *.",
        constraints=[constraints.Custom("cron_expression")],
    ),
    "length": Schema(
        Type.NUMBER, "With cron: the seconds from its opening to its end.",
        constraints=[constraints.Range(min=60)],
    ),
    "time_zone": Schema(
        Type.STRING, "The time zone of its times, such as Europe/Berlin.", default="UTC",
        constraints=[constraints.Custom("timezone")],
    ),
}  # fmt: skip
ROLLING: Final = {
    "max_unavailable": _share(
        "The maximum number or percentage of members that are not ready.", "1"
    ),
    "max_surge": _share("The maximum number or percentage of additional members.", "0"),
    "batch_size": _integer("The maximum number of members updated at the same time.", 1, least=1),
    "pause_time": _seconds("Seconds between two batches."),
    "order": _choice("The order in which members are updated.", RolloutOrder, "index_desc"),
    "failure_policy": _choice(
        "The action when more than max_failures members have failed.", OnFailure, "pause"
    ),
    "max_failures": _integer(
        "The number of members that may fail before failure_policy applies.", 0
    ),
    "health_gate": Schema(Type.MAP, "The check after each batch.", schema=GATE),
    "window": Schema(
        Type.MAP,
        "The times at which a batch that changes or deletes members may begin; any time "
        "by default.",
        schema=WINDOW,
    ),
}
CANARY: Final = {
    "size": _integer("The number of members in the canary; 0: no canary.", 0),
    "soak_seconds": _seconds("Seconds until the second check of the canary."),
    "require_signal": Schema(Type.BOOLEAN, "Wait for a signal after the canary.", default=False),
}
CREATE: Final = {
    "max_batch_size": _integer(
        "The maximum number of members created at the same time; all by default.", None, least=1
    ),
    "pause_time": _seconds("Seconds between two batches."),
    "max_failures": _integer("The number of members that may fail before the create stops.", 0),
}
DELETION: Final = {
    "batch_size": _integer("The maximum number of members deleted at the same time.", 10, least=1)
}

PROPERTIES: Final[Mapping[str, Schema]] = {
    **resource_group.Indexed.properties_schema,
    "member": Schema(
        Type.MAP, "The properties of each member, an OS::Ironic::Instance.", required=True,
        update_allowed=True,
    ),
    "member_overrides": Schema(
        Type.MAP, "Properties of single members that override member, by index.",
        update_allowed=True
    ),
    "drain": Schema(
        Type.MAP, "The drain of each member whose properties have none.",
        schema=instance_schema.DRAIN, update_allowed=True, secret=True,
    ),
    "spread_by": Schema(
        Type.STRING, "The failure domain that members are spread over.",
        default="none", update_allowed=True,
        constraints=[constraints.AllowedValues(["none", "conductor_group", "shard", "chassis"])],
    ),
    "min_ready": Schema(
        Type.STRING, "The number or percentage of members that must be ready.", default="100%",
        update_allowed=True, constraints=[SHARE],
    ),
}  # fmt: skip
UPDATE_POLICY: Final[Mapping[str, Schema]] = {
    "batch_create": Schema(Type.MAP, "The creation of members in batches.", schema=CREATE),
    "rolling_update": Schema(Type.MAP, "The update of members in batches.", schema=ROLLING),
    "canary": Schema(Type.MAP, "The members that are updated first.", schema=CANARY),
    "deletion": Schema(Type.MAP, "The deletion of members in batches.", schema=DELETION),
}
ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    **resource_group.Indexed.attributes_schema,
    "ready_count": Attribute("The number of members that are ready.", Type.INTEGER),
    "updated_count": Attribute("The number of members with the current definition.", Type.INTEGER),
    "degraded": Attribute("The names of members that are not ready.", Type.LIST),
    "rollout": Attribute("The state, batch, reason and failures of the last roll-out.", Type.MAP),
    "addresses": Attribute("The first static IP address of each member.", Type.LIST),
    "nodes": Attribute("The UUID of each member's node.", Type.LIST),
}
