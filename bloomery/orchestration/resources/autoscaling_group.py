"""OS::Heat::AutoScalingGroup: a group that scaling policies resize."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import composite, rolling, scaling
from bloomery.orchestration.template.view import Walked

OUTPUTS: Final = "outputs"
OUTPUTS_LIST: Final = "outputs_list"
ROLLING: Final = "rolling_updates"
DESIRED: Final = "desired_capacity"


def _count(description: str, *, required: bool = False) -> Schema:
    rules = [constraints.Range(min=0)] if required else []
    return Schema(
        Type.INTEGER, description, required=required, update_allowed=True, constraints=rules
    )


class AutoScalingGroup(scaling.ScaledGroup):
    """A group that scaling policies resize; it deletes the oldest members first."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "resource": Schema(
            Type.MAP, "The definition of each member, as a resource of a template.", required=True,
            update_allowed=True,
        ),
        "max_size": _count("The maximum number of members.", required=True),
        "min_size": _count("The minimum number of members.", required=True),
        "cooldown": _count("Seconds after a change during which signals have no effect."),
        DESIRED: _count("The initial number of members, or the number after an update."),
        ROLLING: Schema(
            Type.MAP, "The batches in which members get a new definition.",
            default={name: schema.default for name, schema in rolling.UPDATE_PACE.items()},
            update_allowed=True, schema=rolling.UPDATE_PACE,
        ),
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        OUTPUTS: Attribute(
            "The value of one attribute by member name; the path begins with the attribute.",
            Type.MAP,
        ),
        OUTPUTS_LIST: Attribute(
            "The values of one attribute; the path begins with the attribute.", Type.LIST,
        ),
        "current_size": Attribute("The number of members.", Type.INTEGER),
        "refs": Attribute("The reference id of each member.", Type.LIST),
        "refs_map": Attribute("The reference id of each member by name.", Type.MAP),
    }  # fmt: skip
    dynamic_attributes: ClassVar[bool] = False

    def validate(self) -> None:
        least, most = self.bounds()
        if self.properties["max_size"] is None or self.properties["min_size"] is None:
            return  # the values are not known yet
        scaling.check_bounds(least, most, self.properties[DESIRED])
        self.check_count(self.first_capacity())

    def member(self) -> Mapping[str, Any]:
        definition = self.properties["resource"] or {}
        return {key: value for key, value in definition.items() if value is not None}

    def bounds(self) -> tuple[int, int]:
        return int(self.properties["min_size"] or 0), int(self.properties["max_size"] or 0)

    def first_capacity(self) -> int:
        desired = self.properties[DESIRED]
        return self.bounds()[0] if desired is None else int(desired)

    def new_capacity(self, prop_diff: Mapping[str, Any]) -> int:
        """Return the new desired capacity, by default the current number of members."""
        least, most = self.bounds()
        desired = prop_diff.get(DESIRED)
        return max(least, min(most, len(self.aged()) if desired is None else int(desired)))

    def pace(self) -> Mapping[str, Any]:
        stated = self.properties[ROLLING] or {}
        return {
            name: schema.default if stated.get(name) is None else stated[name]
            for name, schema in rolling.UPDATE_PACE.items()
        }

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        members = self.members()
        if name.startswith(composite.MEMBER):
            member, dot, rest = name.removeprefix(composite.MEMBER).partition(".")
            if member not in members and member.isdecimal() and int(member) < len(members):
                member = list(members)[int(member)]  # the index of a member stands for its name
            return self.member_attribute(f"{composite.MEMBER}{member}{dot}{rest}", path)
        if name == "current_size":
            return composite.value_at(len(members), path)
        if name in {OUTPUTS, OUTPUTS_LIST}:
            attribute, below = self.attribute_at(OUTPUTS, path)
            values = {n: composite.attribute_of(m, attribute, below) for n, m in members.items()}
            return Walked(values if name == OUTPUTS else list(values.values()))
        references = {n: m.reference_id() for n, m in members.items()}
        return composite.value_at(
            references if name == "refs_map" else list(references.values()), path
        )

    @classmethod
    def listed_attributes(cls) -> Iterable[str]:
        return (name for name in cls.attributes_schema if name not in {OUTPUTS, OUTPUTS_LIST})
