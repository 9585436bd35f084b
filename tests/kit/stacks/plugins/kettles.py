"""A plug-in as a site writes it: a kind that takes time, and a constraint."""

from __future__ import annotations

from typing import ClassVar

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import base


def is_tea(value, context):
    return None if str(value).endswith(" tea") else "write a kind of tea"


class Kettle(base.Resource):
    """Boils water for tea."""

    properties_schema: ClassVar = {
        "litres": Schema(Type.NUMBER, "How much.", required=True, update_allowed=True),
        "tea": Schema(
            Type.STRING,
            "What for.",
            default="green tea",
            constraints=[constraints.Custom("site.tea")],
        ),
    }
    attributes_schema: ClassVar = {"boiled_at": Attribute("When it boiled.", Type.NUMBER)}

    def handle_create(self):
        self.resource_id_set(self.physical_resource_name())
        return {"until": self.context.utc() + 60 * self.properties["litres"]}

    def check_create_complete(self, token):
        left_s = token["until"] - self.context.utc()
        if left_s > 0:
            return base.look_again(left_s, "the water is cold")
        self.record.data["boiled_at"] = self.context.utc()
        return True

    def handle_update(self, definition, tmpl_diff, prop_diff):
        return None

    def resolve_attribute(self, name, path=()):
        return self.record.data.get(name)


def resource_mapping():
    return {"Site::Kettle": Kettle}


def constraint_mapping():
    return {"site.tea": is_tea}
