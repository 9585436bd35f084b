"""OS::Ironic::DeployTemplate and OS::Ironic::Runbook: named lists of steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Drift, OnChange, Schema, Type
from bloomery.orchestration.resources import drift, machine_records, machines
from bloomery.orchestration.resources.machine_records import field

TRAITS: Final = "traits"
_UUID: Mapping[str, Attribute] = {"uuid": Attribute("The UUID of the record.", Type.STRING)}
_EXTRA = field(Type.MAP, "Arbitrary metadata.", drift=Drift.FIELD)


def _steps(number: str) -> Schema:
    """Return the schema of steps; ``number``: their key for priority or order."""
    members = {
        "interface": Schema(Type.STRING, "The interface that has the step.", required=True),
        "step": Schema(Type.STRING, "The name of the step.", required=True),
        "args": Schema(Type.MAP, "The arguments of the step."),
        number: Schema(Type.INTEGER, f"The {number} of the step.", required=True),
    }
    return field(
        Type.LIST,
        "The steps to run.",
        required=True,
        schema=Schema(Type.MAP, schema=members),
        constraints=[constraints.Length(min=1)],
    )


class DeployTemplate(machine_records.MachineRecord):
    """A deploy template; its reference ID is its name, the trait of instances that run it."""

    noun = machines.DEPLOY_TEMPLATE
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "name": field(Type.STRING, "The name: a trait such as CUSTOM_HARDENED.", required=True),
        "steps": _steps("priority"),
        "extra": _EXTRA,
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        **_UUID,
        "trait": Attribute("The trait that selects the deploy template.", Type.STRING),
    }
    attribute_fields: ClassVar[Mapping[str, str]] = {"trait": "name"}

    def get_reference_id(self) -> Any:
        return self.properties.get("name") or super().get_reference_id()


class Runbook(machine_records.MachineRecord):
    """Steps for cleaning and service on nodes with one of its traits; without traits, on none."""

    noun = machines.RUNBOOK
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "name": field(Type.STRING, "The name of the runbook.", required=True),
        "description": field(Type.STRING, "A description of the runbook."),
        "steps": _steps("order"),
        "traits": Schema(
            Type.LIST, "The traits of nodes on which the runbook may run; one suffices.",
            update_allowed=True,
            on_change=OnChange.PATCH, drift=Drift.OWN, schema=Schema(Type.STRING),
        ),
        "disable_ramdisk": field(Type.BOOLEAN, "Whether the steps run without a ramdisk."),
        "public": field(Type.BOOLEAN, "Whether all projects may use the runbook."),
        "owner": field(Type.STRING, "The project that owns the runbook."),
        "extra": _EXTRA,
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = _UUID

    def create_record(self) -> None:
        super().create_record()
        self._set_traits()

    def step_update(self) -> str | None:
        """Set the traits, then patch the record; a crash in between repeats both."""
        self._set_traits()
        return super().step_update()

    def _set_traits(self) -> None:
        if self.properties[TRAITS] is not None:
            self.machines.set_runbook_traits(str(self.record.physical_id), self.properties[TRAITS])

    def differences(self, real: machines.Json) -> Iterator[drift.Difference]:
        yield from super().differences(real)
        if self.properties[TRAITS] is not None:
            expected = {TRAITS: sorted(self.properties[TRAITS])}
            yield from drift.compare(expected, {TRAITS: sorted(real[TRAITS] or ())})
