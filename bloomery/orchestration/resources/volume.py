"""OS::Ironic::VolumeConnector and OS::Ironic::VolumeTarget: boot from remote volumes.

The bare-metal service accepts changes only while the node is powered off.  With ``allow_power_off``
the resource powers the node off after a refusal, and on again after the change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.conductor.states import Power
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Drift, OnChange, Plans, Schema, Type
from bloomery.orchestration.resources import base, machine_records, machines, stepwise
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect, Impact
from bloomery.orchestration.resources.machine_records import field
from bloomery.orchestration.resources.stepwise import Step

POWER_S: Final = 600.0  # until a node is on, or off
CHANGE: Final = "change"  # the step that was refused because the node is on
WAS_ON: Final = "was_on"

_TYPES = [
    constraints.AllowedValues(["iqn", "ip", "mac", "wwnn", "wwpn", "port", "portgroup"]),
]
_ATTRIBUTES: Mapping[str, Attribute] = {
    "uuid": Attribute("The UUID of the record.", Type.STRING),
    "node_uuid": Attribute("The UUID of the node.", Type.STRING),
}
_EXTRA = field(Type.MAP, "Arbitrary metadata.", drift=Drift.FIELD)
_POWER = Schema(
    Type.BOOLEAN, "Whether a change may power the node off, and on again.", default=False,
    update_allowed=True, on_change=OnChange.LATER, drift=Drift.NONE, plans=Plans.VERBS,
)  # fmt: skip
STEPS: Final = machine_records.STEPS | {
    "update": Step("write the fields that have changed", "power_off power_on end"),
    "delete": Step("delete the record, if this resource owns it", "power_off power_on end"),
    "power_off": Step("switch the node off", "is_off", orders=True),
    "is_off": Step("check the power state", "update delete", "for power off"),
    "power_on": Step("switch the node on again", "is_on", orders=True),
    "is_on": Step("check the power state", "end", "for power on"),
}


class Volume(machine_records.MachineRecord):
    """A record that can only change while its node is powered off."""

    steps: ClassVar[Mapping[str, Step]] = STEPS
    repairs_failed: ClassVar[bool] = True

    @classmethod
    def effect_of_update(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
    ) -> Effect:
        changes = any(name in cls.fields for name in names)
        return _effect_of_change(after) if changes else NO_EFFECT

    @classmethod
    def effect_of_repair(cls, properties: Mapping[str, Any]) -> Effect:
        return _effect_of_change(properties)

    @classmethod
    def effect_of_delete(cls, properties: Mapping[str, Any]) -> Effect:
        return _effect_of_change(properties)

    @classmethod
    def needs_replace_failed(cls) -> bool:
        """Return False: the next update repeats a change that was refused."""
        return False

    def step_update(self) -> str | None:
        """Raise UpdateReplace where the record is gone, or was never made."""
        if self.machines.find(self.noun, str(self.record.physical_id)) is None:
            raise base.UpdateReplace
        return self._with_power_off("update", super().step_update)

    def step_delete(self) -> str | None:
        return self._with_power_off("delete", super().step_delete)

    def _with_power_off(self, step: str, change: Callable[[], str | None]) -> str | None:
        try:
            change()
        except errors.InvalidStateRequested as exc:
            if not self.properties["allow_power_off"]:
                raise stepwise.MachineRefused(f"{exc} Or set allow_power_off.") from exc
            self.record.data[CHANGE] = step
            if self._node()["power_state"] == Power.ON:
                self.record.data[WAS_ON] = True  # stored before the power is off
            return "power_off"
        return "power_on" if self.record.data.get(WAS_ON) else None

    def _node(self) -> machines.Json:
        return self.machines.get_node(self.properties["node"])

    def step_power_off(self) -> str | None:
        node = self._node()
        if node["power_state"] != Power.OFF:
            self.machines.set_power_state(node["uuid"], Power.OFF)
        return "is_off"

    def step_is_off(self) -> stepwise.Following:
        return self._await_power(Power.OFF) or str(self.record.data[CHANGE])

    def step_power_on(self) -> str | None:
        node = self._node()
        if node["power_state"] != Power.ON:
            self.machines.set_power_state(node["uuid"], Power.ON)
        return "is_on"

    def step_is_on(self) -> stepwise.Following:
        if waits := self._await_power(Power.ON):
            return waits
        self.record.data.pop(WAS_ON, None)
        return None

    def _await_power(self, target: Power) -> stepwise.Following:
        node = self._node()
        if node["power_state"] == target:
            return None
        if node["target_power_state"] is None and node["last_error"]:
            raise stepwise.MachineFailed(str(node["last_error"]))
        return self.wait_for(node["uuid"], POWER_S, f"for {target}")


def _effect_of_change(properties: Mapping[str, Any]) -> Effect:
    if not properties["allow_power_off"]:
        return NO_EFFECT
    reason = "the machine is switched off for it, and on again, if it is on"
    return Effect(impact=Impact.SERVICE, certain=False, reason=reason)


class VolumeConnector(Volume):
    """A volume connector: the machine's identity for the storage."""

    noun = machines.VOLUME_CONNECTOR
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "node": machine_records.NODE_OF,
        "type": Schema(
            Type.STRING, "The type of connector_id.", required=True, constraints=_TYPES,
            drift=Drift.LIVE,
        ),
        "connector_id": Schema(
            Type.STRING, "The identifier, such as an IQN or MAC address.", required=True,
            drift=Drift.LIVE
        ),
        "extra": _EXTRA,
        "allow_power_off": _POWER,
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = _ATTRIBUTES


class VolumeTarget(Volume):
    """A volume target: a remote volume of a node, and how to reach it."""

    noun = machines.VOLUME_TARGET
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "node": machine_records.NODE_OF,
        "volume_type": Schema(
            Type.STRING, "The type: iscsi or fibre_channel.", required=True, drift=Drift.LIVE
        ),
        "volume_id": field(Type.STRING, "The ID of the volume in the storage.", required=True),
        "boot_index": field(Type.INTEGER, "The boot index; 0: the boot volume.", required=True),
        "properties": field(
            Type.MAP, "The connection of the volume, kept as a secret.", secret=True
        ),
        "extra": _EXTRA,
        "allow_power_off": _POWER,
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = _ATTRIBUTES
