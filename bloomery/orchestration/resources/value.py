"""OS::Heat::Value: a value that a template computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery.orchestration.properties import constraints, values
from bloomery.orchestration.properties.schema import Attribute, OnChange, Schema, Type
from bloomery.orchestration.resources import base

TYPES: Final = {
    "string": Type.STRING,
    "number": Type.NUMBER,
    "comma_delimited_list": Type.LIST,
    "json": Type.MAP,
    "boolean": Type.BOOLEAN,
}
VALUE: Final = "value"


class Value(base.Resource):
    """A value; ``type`` checks it without conversion: for number, the text 5 stays a text."""

    on_change: ClassVar[OnChange | None] = OnChange.LATER
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        VALUE: Schema(Type.ANY, "The value.", required=True, update_allowed=True),
        "type": Schema(
            Type.STRING, "The type to validate the value against.", update_allowed=True,
            constraints=[constraints.AllowedValues(list(TYPES))],
        ),
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {VALUE: Attribute("The value.")}

    def validate(self) -> None:
        expected, value = TYPES.get(self.properties["type"]), self.properties[VALUE]
        if expected is not None and value is not None:
            values.Properties({VALUE: Schema(expected)}, {VALUE: value}).resolved(check=True)

    def handle_create(self) -> Any:
        self.resource_id_set(self.physical_resource_name())

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        return self.properties[VALUE] if name == VALUE else None
