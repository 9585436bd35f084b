"""OS::Heat::SoftwareConfig and similar: stored texts for tools on servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.software import SoftwareStore

TYPES: Final = ["String", "Number", "CommaDelimitedList", "Json", "Boolean"]
ACTIONS: Final = ["CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME"]
UNGROUPED: Final = "Heat::Ungrouped"
COMPONENT: Final = "component"


def _described(more: Mapping[str, Schema]) -> Schema:
    both = {
        "name": Schema(Type.STRING, "The name of the input or output.", required=True),
        "description": Schema(Type.STRING, "A description of the input or output."),
        "type": Schema(
            Type.STRING,
            "The type of the value.",
            default="String",
            constraints=[constraints.AllowedValues(TYPES)],
        ),
    }
    return Schema(Type.MAP, schema={**both, **more})


INPUTS: Final = Schema(
    Type.LIST, "The inputs of the tool.", schema=_described(
        {
            "default": Schema(Type.ANY, "The default value."),
            "replace_on_change": Schema(
                Type.BOOLEAN, "Whether a new value replaces the deployment.", default=False
            ),
        }
    ),
)  # fmt: skip
OUTPUTS: Final = Schema(
    Type.LIST, "The outputs of the tool.", schema=_described(
        {
            "error_output": Schema(
                Type.BOOLEAN, "Whether any value means a failure.", default=False
            )
        }
    ),
)  # fmt: skip
OPTIONS: Final = Schema(Type.MAP, "Options of the tool.")


class Config(base.Resource):
    """The base class of configs.  A config never changes: a new text replaces it."""

    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "config": Attribute("The text of the config.", Type.STRING),
    }

    def text(self) -> Any:
        raise NotImplementedError

    def group(self) -> str:
        return str(self.properties.get("group") or UNGROUPED)

    def handle_create(self) -> Any:
        uuid, properties = self.derived_id(), self.properties
        software_of(self).create_config(
            uuid,
            name=self.physical_resource_name(),
            group=self.group(),
            config=self.text(),
            options=properties.get("options") or {},
            inputs=properties.get("inputs") or [],
            outputs=properties.get("outputs") or [],
        )
        self.resource_id_set(uuid)

    def handle_delete(self) -> Any:
        if self.record.physical_id is not None:
            software_of(self).delete_config(self.record.physical_id)

    def get_live_resource_data(self) -> Any:
        uuid = self.record.physical_id
        if uuid is None or software_of(self).show_config(uuid) is None:
            raise errors.EntityNotFound(entity="Resource", name=self.record.name)
        return None

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        return self.text() if name == "config" else None


def software_of(resource: base.Resource) -> SoftwareStore:
    if resource.context.software is None:
        raise errors.NotSupported(feature=f"The software of {resource.record.name}")
    return resource.context.software


class SoftwareConfig(Config):
    """A text for a tool."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "group": Schema(Type.STRING, "The tool that reads the text.", default=UNGROUPED),
        "config": Schema(Type.STRING, "The text of the config."),
        "options": OPTIONS,
        "inputs": INPUTS,
        "outputs": OUTPUTS,
    }

    def text(self) -> Any:
        return self.properties["config"]


class StructuredConfig(SoftwareConfig):
    """A map instead of a text, in which deployments replace inputs by their values."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        **SoftwareConfig.properties_schema,
        "config": Schema(Type.MAP, "The config as a map."),
    }


class SoftwareComponent(Config):
    """Several texts, each for some actions of a deployment."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "configs": Schema(
            Type.LIST, "The texts, each for some of the actions.", required=True,
            constraints=[constraints.Length(min=1)], schema=Schema(
                Type.MAP, schema={
                    "actions": Schema(
                        Type.LIST, "The actions in which the text is deployed.",
                        default=["CREATE", "UPDATE"], constraints=[constraints.Length(min=1)],
                        schema=Schema(Type.STRING),
                    ),
                    "config": Schema(Type.STRING, "The text to deploy."),
                    "tool": Schema(Type.STRING, "The tool that reads the text.", required=True),
                },
            ),
        ),
        "inputs": INPUTS,
        "outputs": OUTPUTS,
        "options": OPTIONS,
    }  # fmt: skip

    def validate(self) -> None:
        parts = self.properties["configs"] or ()
        actions = [action for part in parts for action in part.get("actions") or ()]
        for action in actions:
            if actions.count(action) > 1:
                raise errors.StackValidationFailed(
                    reason=f"cannot have two texts for {action}: name each action once",
                    path=["configs"],
                )

    def group(self) -> str:
        return COMPONENT

    def text(self) -> Any:
        return {"configs": self.properties["configs"]}
