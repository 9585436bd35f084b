"""Kinds for one record of the bare-metal API: one call each creates, patches and deletes it.

A subclass sets its noun.  Its properties with the drift FIELD or LIVE are fields of the record::

    class Port(MachineRecord):
        noun = machines.PORT
        properties_schema = {"address": field(Type.STRING, "MAC address.")}
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from operator import methodcaller
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.properties.schema import (
    Drift,
    OnChange,
    Plans,
    Schema,
    Type,
    drift_names,
    updatable,
)
from bloomery.orchestration.resources import drift, machines, stepwise
from bloomery.orchestration.resources.machines import Json
from bloomery.orchestration.resources.stepwise import MARKS, Step

NODE: Final = "node_uuid"
ADDRESS: Final = "address"
CHANGED: Final = "changed"  # the properties that an update changes
GROUP: Final = "portgroup_uuid"
FIELDS: Final = {"node": NODE, "portgroup": GROUP}  # of properties with another name

NODE_OF: Final = Schema(
    Type.STRING, "UUID or name of the node.", required=True, drift=Drift.FIELD, plans=Plans.NODE
)
STEPS: Final = MARKS | {
    "create": Step("create the record", run=methodcaller("create_record")),
    "update": Step("write the fields that have changed"),
    "delete": Step("delete the record, if this resource owns it"),
}


def field(kind: Type, description: str, drift: Drift = Drift.LIVE, **more: Any) -> Schema:
    """Return the schema of a property that is a field of the record, patched and compared."""
    return updatable(kind, OnChange.PATCH, drift, description, **more)


class MachineRecord(stepwise.Stepwise):
    """A record of the bare-metal API.  ``fields``: field of the record by property."""

    steps: ClassVar[Mapping[str, Step]] = STEPS
    noun: ClassVar[str]
    fields: ClassVar[Mapping[str, str]] = {}  # set by __init_subclass__
    attribute_fields: ClassVar[Mapping[str, str]] = {}  # field by attribute, if the names differ

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        names = drift_names(cls.properties_schema, Drift.FIELD, Drift.LIVE)
        cls.fields = {name: FIELDS.get(name, name) for name in names}

    def handle_create(self) -> Any:
        self.resource_id_set(self.derived_id(self.noun))
        self.begin("create")

    def create_record(self) -> None:
        uuid = str(self.record.physical_id)
        values = {name: v for name, v in self.values().items() if v is not None}
        create(self, self.noun, uuid, values)

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        self.record.data[CHANGED] = [name for name in self.fields if name in prop_diff]
        self.begin("update")

    def step_update(self) -> str | None:
        values, names = self.values(), self.record.data.get(CHANGED, ())
        changes = {self.fields[name]: values[self.fields[name]] for name in names}
        if "extra" in changes:
            changes["extra"] = {**(changes["extra"] or {}), machines.MARK: self.mark()}
        if changes:
            patch = stepwise.patch_of(changes)
            self.machines.update(self.noun, str(self.record.physical_id), patch)
        self.record.data.pop(CHANGED, None)
        return None

    def handle_delete(self) -> Any:
        self.begin("delete")

    def step_delete(self) -> str | None:
        """Delete the record, unless it is gone or bears another resource's mark."""
        uuid = self.record.physical_id
        if uuid is not None and find_ours(self, self.noun, uuid) is not None:
            delete(self, self.noun, uuid)
        return None

    def step_mark(self) -> str | None:
        """Write the mark on the record.  Raises MachineRefused if another resource has it."""
        record = self.real()
        self.check_unmarked(record["extra"], f"{self.noun} {self.record.physical_id}")
        patch = [{"op": "add", "path": f"/extra/{machines.MARK}", "value": self.mark()}]
        self.machines.update(self.noun, record["uuid"], patch)
        self.resource_id_set(record["uuid"])  # it may have been a name
        return None

    def step_unmark(self) -> str | None:
        uuid = str(self.record.physical_id)
        if find_ours(self, self.noun, uuid) is not None:
            patch = [{"op": "remove", "path": f"/extra/{machines.MARK}"}]
            self.machines.update(self.noun, uuid, patch)
        return None

    def differences(self, real: Json) -> Iterator[drift.Difference]:
        yield from self.mark_differences(real)
        property_of = {field: name for name, field in self.fields.items()}
        for field, value in self.values().items():
            if value is not None:
                is_secret = property_of[field] in self.secret_properties
                yield from drift.compare({field: value}, real, secret=is_secret)

    def real(self) -> Json:
        uuid = self.record.physical_id
        record = None if uuid is None else self.machines.find(self.noun, uuid)
        if record is None:
            raise errors.EntityNotFound(entity=self.record.type, name=uuid or self.record.name)
        return record

    def values(self) -> Json:
        values = {field: self.properties[name] for name, field in self.fields.items()}
        for field, value in values.items():
            if value == "" or value is None:
                values[field] = None
            elif field == ADDRESS:
                values[field] = value.lower()
            elif field == NODE:
                values[field] = self.machines.get_node(value)["uuid"]
            elif field == "steps":  # the API requires ``args`` in each step
                values[field] = [each | {"args": each.get("args") or {}} for each in value]
            elif field == GROUP:
                record = self.machines.find(machines.PORTGROUP, value)
                if record is None:
                    raise errors.EntityNotFound(entity=machines.PORTGROUP, name=value)
                values[field] = str(record["uuid"])
        return values

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        try:
            return self.real().get(self.attribute_fields.get(name, name))
        except errors.NotFound:
            return None

    def get_live_resource_data(self) -> Any:
        return self.real()

    def parse_live_resource_data(
        self, properties: Mapping[str, Any], data: Any
    ) -> Mapping[str, Any]:
        names = drift_names(self.properties_schema, Drift.LIVE)
        return {name: data.get(name) for name in names if properties.get(name) is not None}


def create(resource: stepwise.Stepwise, noun: str, uuid: str, fields: Json) -> None:
    """Create a marked record, unless this resource has created this UUID before."""
    extra = {**(fields.get("extra") or {}), machines.MARK: resource.mark()}
    try:
        resource.machines.create(noun, fields | {"uuid": uuid, "extra": extra})
    except errors.Conflict:
        if find_ours(resource, noun, uuid) is None:
            raise


def find_ours(resource: stepwise.Stepwise, noun: str, uuid: str) -> Json | None:
    record = resource.machines.find(noun, uuid)
    return record if record is not None and resource.is_ours(record["extra"]) else None


def delete(resource: stepwise.Stepwise, noun: str, uuid: str) -> None:
    with contextlib.suppress(errors.NotFound):
        resource.machines.delete(noun, uuid)
