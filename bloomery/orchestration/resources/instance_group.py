"""OS::Heat::InstanceGroup: a group of members with one launch configuration.

The environment maps the type of the members, ``OS::Heat::ScaledResource``, to a template or a type.
The launch configuration is a resource of the stack.  The members get its properties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import composite, scaling

MEMBER_TYPE: Final = "OS::Heat::ScaledResource"
ADDRESS: Final = "PublicIp"
DURATION: Final = re.compile(r"\APT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?\Z")


class InstanceGroup(scaling.ScaledGroup):
    """A group with one launch configuration; it deletes the oldest members first."""

    dynamic_attributes: ClassVar[bool] = False
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "AvailabilityZones": Schema(Type.LIST, "Availability zones; not used.", required=True),
        "LaunchConfigurationName": Schema(
            Type.STRING,
            "The launch configuration (get_resource) whose properties the members have.",
            required=True, update_allowed=True,
        ),
        "Size": Schema(
            Type.INTEGER, "The number of members.", required=True, update_allowed=True,
            constraints=[constraints.Range(min=0)],
        ),
        "LoadBalancerNames": Schema(Type.LIST, "Load balancers; not supported."),
        "Tags": Schema(
            Type.LIST, "Tags of the members.", schema=Schema(
                Type.MAP, schema={
                    "Key": Schema(Type.STRING, "Name of the tag.", required=True),
                    "Value": Schema(Type.STRING, "Value of the tag.", required=True),
                },
            ),
        ),
    }  # fmt: skip
    update_policy_schema: ClassVar[Mapping[str, Schema]] = {
        "RollingUpdate": Schema(
            Type.MAP, "The batches in which members get new properties.", schema={
                "MinInstancesInService": Schema(
                    Type.INTEGER, "The minimum number of members in service.", default=0
                ),
                "MaxBatchSize": Schema(
                    Type.INTEGER, "The maximum number of members in a batch.", default=1
                ),
                "PauseTime": Schema(
                    Type.STRING, "The pause between two batches, such as PT5M.", default="PT0S",
                    constraints=[constraints.AllowedPattern(DURATION.pattern)],
                ),
            },
        ),
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "InstanceList": Attribute(
            "The addresses of the members, separated by commas.", Type.STRING
        ),
    }

    def validate(self) -> None:
        if self.properties["LoadBalancerNames"]:
            raise errors.StackValidationFailed(
                reason="cannot use load balancers: there is no such service; leave them out",
                path=["LoadBalancerNames"],
            )
        self.check_count(self.first_capacity())

    def member(self) -> Mapping[str, Any]:
        siblings, name = self.context.siblings, self.properties["LaunchConfigurationName"]
        template = siblings and siblings.find(name)
        values = dict(template.properties) if template else {}
        properties = {key: value for key, value in values.items() if value is not None}
        if self.properties["Tags"]:
            properties["Tags"] = self.properties["Tags"]
        return {"type": MEMBER_TYPE, "properties": properties}

    def bounds(self) -> tuple[int, int]:
        return self.first_capacity(), self.first_capacity()

    def first_capacity(self) -> int:
        return int(self.properties["Size"] or 0)

    def new_capacity(self, prop_diff: Mapping[str, Any]) -> int:
        return self.first_capacity()

    def pace(self) -> Mapping[str, Any]:
        """Return the pace of the update policy; without a policy all members change at once."""
        stated = self.update_policy.get("RollingUpdate") or {}
        return {
            "min_in_service": stated.get("MinInstancesInService") or 0,
            "max_batch_size": stated.get("MaxBatchSize") or max(len(self.ages()), 1),
            "pause_time": seconds_of(stated.get("PauseTime") or "PT0S"),
        }

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name.startswith(composite.MEMBER):
            return self.member_attribute(name, path)
        members = self.members().values()
        return ",".join(
            str(m.attribute(ADDRESS) if m.has_attribute(ADDRESS) else m.reference_id())
            for m in members
        )


def seconds_of(duration: str) -> float:
    match = DURATION.match(duration)
    hours, minutes, seconds = (int(part or 0) for part in match.groups()) if match else (0, 0, 0)
    return float(hours * 3600 + minutes * 60 + seconds)
