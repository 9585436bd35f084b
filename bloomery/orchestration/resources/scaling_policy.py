"""OS::Heat::ScalingPolicy: resizes a group on a signal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bloomery import errors
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, OnChange, Schema, Type
from bloomery.orchestration.resources import base, signals
from bloomery.orchestration.resources.scaling import Adjustment, ScaledGroup


class ScalingPolicy(signals.Signalled):
    """A policy that resizes its group on a signal, except during an update or cooldown of it."""

    on_change: ClassVar[OnChange | None] = OnChange.LATER
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "auto_scaling_group_id": Schema(
            Type.STRING, "The group to resize (get_resource).", required=True
        ),
        "scaling_adjustment": Schema(
            Type.NUMBER, "The change of the number of members, or the new number.", required=True,
            update_allowed=True
        ),
        "adjustment_type": Schema(
            Type.STRING, "The meaning of scaling_adjustment.", required=True, update_allowed=True,
            constraints=[constraints.AllowedValues([one.value for one in Adjustment])],
        ),
        "cooldown": Schema(
            Type.NUMBER,
            "Seconds after a change during which signals have no effect; by default the group's.",
            update_allowed=True,
        ),
        "min_adjustment_step": Schema(
            Type.INTEGER, "The minimum number of members that a percentage adds or removes.",
            update_allowed=True, constraints=[constraints.Range(min=0)],
        ),
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "alarm_url": Attribute(
            "The URL for alarms, with the token that authorizes them.", Type.STRING,
        ),
        "signal_url": Attribute(
            "The URL for signals with credentials of the owner.", Type.STRING
        ),
    }  # fmt: skip

    def validate(self) -> None:
        kind, step = self.properties["adjustment_type"], self.properties["min_adjustment_step"]
        if step is not None and kind is not None and kind != Adjustment.PERCENT:
            raise errors.StackValidationFailed(
                reason=f"cannot have min_adjustment_step with {kind}: it is for"
                f" {Adjustment.PERCENT} alone",
                path=["min_adjustment_step"],
            )

    def handle_create(self) -> Any:
        self.resource_id_set(self.derived_id())
        self.draw_token()

    def handle_signal(self, details: Mapping[str, Any] | None = None) -> str:
        """Resize the group.  Raises NoActionRequired for a signal whose state is not alarm."""
        signal = details or {}
        if str(signal.get("current", signal.get("state", "alarm"))).lower() != "alarm":
            raise base.NoActionRequired
        siblings, reference = self.context.siblings, self.properties["auto_scaling_group_id"]
        group, cooldown_s = siblings and siblings.find(reference), self.properties["cooldown"]
        if not isinstance(group, ScaledGroup):
            raise errors.NotFound(
                reason=f"cannot find the group {reference!r} of the policy {self.record.name}:"
                " it is none of this stack; name one with get_resource"
            )
        if cooldown_s is None:
            cooldown_s = group.properties.get("cooldown")
        before, after = group.adjust(
            float(self.properties["scaling_adjustment"]),
            Adjustment(self.properties["adjustment_type"]),
            min_step=self.properties["min_adjustment_step"],
            cooldown_s=float(cooldown_s or 0),
        )
        return f"{group.record.name} turns from {before} to {after} members"

    def get_reference_id(self) -> Any:
        return self.signed_url() or self.record.name

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if self.record.physical_id is None:
            return None
        return self.signed_url() if name == "alarm_url" else self.signal_url()
