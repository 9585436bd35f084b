"""OS::Heat::SoftwareConfig: a text that is kept, and given out as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import base

TYPES: Final = ["String", "Number", "CommaDelimitedList", "Json", "Boolean"]


def _described(more: Mapping[str, Schema]) -> Schema:
    """One input or output: a name, what it is for, and what is its own."""
    both = {
        "name": Schema(Type.STRING, "Its name.", required=True),
        "description": Schema(Type.STRING, "What it is for."),
        "type": Schema(
            Type.STRING,
            "The type of its value.",
            default="String",
            constraints=[constraints.AllowedValues(TYPES)],
        ),
    }
    return Schema(Type.MAP, schema={**both, **more})


class SoftwareConfig(base.Resource):
    """Never changed: another text is another config."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "group": Schema(Type.STRING, "Which tool reads the text.", default="Heat::Ungrouped"),
        "config": Schema(Type.STRING, "The text."),
        "options": Schema(Type.MAP, "Options of the tool."),
        "inputs": Schema(
            Type.LIST,
            "Values that the tool is given.",
            schema=_described(
                {
                    "default": Schema(Type.ANY, "The value if none is given."),
                    "replace_on_change": Schema(
                        Type.BOOLEAN,
                        "Whether another value replaces what was deployed.",
                        default=False,
                    ),
                }
            ),
        ),
        "outputs": Schema(
            Type.LIST,
            "Values that the tool gives back.",
            schema=_described(
                {
                    "error_output": Schema(
                        Type.BOOLEAN, "Whether any value tells of a failure.", default=False
                    )
                }
            ),
        ),
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "config": Attribute("The text.", Type.STRING),
    }

    def handle_create(self) -> Any:
        self.resource_id_set(self.derived_id())

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        return self.properties["config"] if name == "config" else None
