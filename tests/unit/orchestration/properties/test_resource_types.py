from __future__ import annotations

from typing import Any, ClassVar

import pytest

from bloomery.orchestration.properties import resource_types
from bloomery.orchestration.properties.constraints import (
    AllowedPattern,
    AllowedValues,
    Custom,
    Length,
    Modulo,
    Range,
)
from bloomery.orchestration.properties.presence import ExactlyOne, Rule
from bloomery.orchestration.properties.schema import Attribute, Schema, Status, Support, Type
from bloomery.orchestration.template import parameter_schemas

HIDDEN = Support(status=Status.HIDDEN)


class Kettle:
    """Boils water.

    As much as fits.
    """

    presence_rules: ClassVar[tuple[Rule, ...]] = (ExactlyOne("s", "m", reason="cannot boil"),)
    properties_schema: ClassVar[dict[str, Schema]] = {
        "s": Schema(
            Type.STRING, "A text.", update_allowed=True,
            constraints=[AllowedValues(["x", "y"]), Length(max=3, description="short")],
        ),
        "r": Schema(
            Type.STRING, required=True, constraints=[AllowedPattern("x"), Custom("ip_addr")]
        ),
        "i": Schema(Type.INTEGER, default=2, immutable=True, constraints=[Range(1, 5)]),
        "n": Schema(Type.NUMBER, constraints=[Modulo(2, 1)]),
        "b": Schema(Type.BOOLEAN, default=False),
        "l": Schema(Type.LIST, default=[1], constraints=[Length(1), AllowedValues([1, 2])]),
        "ls": Schema(Type.LIST, schema=Schema(Type.STRING)),
        "lm": Schema(
            Type.LIST,
            schema=Schema(Type.MAP, schema={"x": Schema(Type.INTEGER, required=True)}),
        ),
        "m": Schema(Type.MAP, default={"k": 1}, schema={"k": Schema(Type.INTEGER)}),
        "a": Schema(Type.ANY, default="text"),
        "old": Schema(Type.STRING, support=HIDDEN),
        "later": Schema(Type.STRING, implemented=False),
        "unsupported": Schema(Type.STRING, support=Support(status=Status.UNSUPPORTED)),
    }  # fmt: skip
    attributes_schema: ClassVar[dict[str, Attribute]] = {
        "temperature": Attribute("How hot.", Type.NUMBER),
        "state": Attribute(),
        "secret": Attribute("x", support=HIDDEN),
    }
    support = Support(
        status=Status.DEPRECATED, message="use Pot", version="3", previous=Support(version="1")
    )


class Bare:
    properties_schema: ClassVar[dict[str, Schema]] = {}
    presence_rules = ()
    attributes_schema: ClassVar[dict[str, Attribute]] = {"show": Attribute("mine", Type.MAP)}
    support = Support()


PLAIN = {"required": False, "update_allowed": False, "immutable": False}


def test_a_kind_is_shown_with_its_properties_attributes_and_support():
    said = resource_types.schema_document("My::Kettle", Kettle)
    assert said["resource_type"] == "My::Kettle"
    assert said["properties"] == {
        "s": {
            "type": "string", "required": False, "update_allowed": True, "immutable": False,
            "description": "A text.",
            "constraints": [
                {"allowed_values": ["x", "y"]},
                {"length": {"max": 3}, "description": "short"},
            ],
        },
        "r": {
            "type": "string", "required": True, "update_allowed": False, "immutable": False,
            "constraints": [{"allowed_pattern": "x"}, {"custom_constraint": "ip_addr"}],
        },
        "i": {
            "type": "integer", "required": False, "update_allowed": False, "immutable": True,
            "default": 2, "constraints": [{"range": {"min": 1, "max": 5}}],
        },
        "n": PLAIN | {"type": "number", "constraints": [{"modulo": {"step": 2, "offset": 1}}]},
        "b": PLAIN | {"type": "boolean", "default": False},
        "l": PLAIN | {
            "type": "list", "default": [1],
            "constraints": [{"length": {"min": 1}}, {"allowed_values": [1, 2]}],
        },
        "ls": PLAIN | {"type": "list", "schema": {"*": PLAIN | {"type": "string"}}},
        "lm": PLAIN | {
            "type": "list",
            "schema": {
                "*": PLAIN | {
                    "type": "map",
                    "schema": {"x": PLAIN | {"type": "integer", "required": True}},
                }
            },
        },
        "m": PLAIN | {
            "type": "map", "default": {"k": 1}, "schema": {"k": PLAIN | {"type": "integer"}},
        },
        "a": PLAIN | {"type": "any", "default": "text"},
        "unsupported": PLAIN | {"type": "string"},
    }  # fmt: skip
    assert said["attributes"] == {
        "temperature": {"description": "How hot.", "type": "number"},
        "state": {},
        "show": {"description": resource_types.SHOW.description, "type": "map"},
    }
    assert said["support_status"] == {
        "status": "DEPRECATED", "message": "use Pot", "version": "3",
        "previous_status": {
            "status": "SUPPORTED", "message": None, "version": "1", "previous_status": None,
        },
    }  # fmt: skip
    assert "description" not in said


def test_a_kind_is_described_by_its_class_when_asked():
    said = resource_types.schema_document("My::Kettle", Kettle, with_description=True)
    assert said["description"] == "Boils water.\n\nAs much as fits.\n\nGive exactly one of s and m."
    said = resource_types.schema_document("My::Bare", Bare, with_description=True)
    assert said["description"] == resource_types.NO_DESCRIPTION
    assert said["attributes"] == {"show": {"description": "mine", "type": "map"}}


HOT_PARAMETERS: dict[str, Any] = {
    "s": {
        "type": "string", "description": "A text.",
        "constraints": [
            {"allowed_values": ["x", "y"]},
            {"length": {"max": 3}, "description": "short"},
        ],
    },
    "r": {
        "type": "string",
        "constraints": [{"allowed_pattern": "x"}, {"custom_constraint": "ip_addr"}],
    },
    "i": {"type": "number", "default": 2, "constraints": [{"range": {"min": 1, "max": 5}}]},
    "n": {"type": "number", "constraints": [{"modulo": {"step": 2, "offset": 1}}]},
    "b": {"type": "boolean", "default": False},
    "l": {
        "type": "comma_delimited_list", "default": [1],
        "constraints": [{"length": {"min": 1}}, {"allowed_values": [1, 2]}],
    },
    "ls": {"type": "comma_delimited_list"},
    "lm": {"type": "json"},
    "m": {"type": "json", "default": {"k": 1}},
    "a": {"type": "json", "default": '"text"'},
    "unsupported": {"type": "string"},
}  # fmt: skip
CFN_PARAMETERS: dict[str, Any] = {
    "s": {"Type": "String", "Description": "A text.", "AllowedValues": ["x", "y"], "MaxLength": 3},
    "r": {"Type": "String", "AllowedPattern": "x"},
    "i": {"Type": "Number", "Default": 2, "MinValue": 1, "MaxValue": 5},
    "n": {"Type": "Number"},
    "b": {"Type": "Boolean", "Default": False},
    "l": {
        "Type": "CommaDelimitedList", "Default": [1], "MinLength": 1, "AllowedValues": [1, 2],
    },
    "ls": {"Type": "CommaDelimitedList"},
    "lm": {"Type": "Json"},
    "m": {"Type": "Json", "Default": {"k": 1}},
    "a": {"Type": "Json", "Default": '"text"'},
    "unsupported": {"Type": "String"},
}  # fmt: skip


def test_the_template_of_a_kind_in_hot():
    assert resource_types.template("My::Kettle", Kettle, resource_types.Dialect.HOT) == {
        "heat_template_version": "2018-08-31",
        "description": "One resource of type My::Kettle",
        "parameters": HOT_PARAMETERS,
        "resources": {
            "Kettle": {
                "type": "My::Kettle",
                "properties": {name: {"get_param": name} for name in HOT_PARAMETERS},
            }
        },
        "outputs": {
            "temperature": {
                "description": "How hot.", "value": {"get_attr": ["Kettle", "temperature"]},
            },
            "state": {"description": "", "value": {"get_attr": ["Kettle", "state"]}},
            "show": {
                "description": resource_types.SHOW.description,
                "value": {"get_attr": ["Kettle", "show"]},
            },
            "OS::stack_id": {"value": {"get_resource": "Kettle"}},
        },
    }  # fmt: skip


def test_the_template_of_a_kind_in_cloudformation_is_the_usual_one():
    said = resource_types.template("My::Kettle", Kettle)
    assert list(said) == [
        "HeatTemplateFormatVersion", "Description", "Parameters", "Resources", "Outputs",
    ]  # fmt: skip
    assert said["HeatTemplateFormatVersion"] == "2012-12-12"
    assert said["Parameters"] == CFN_PARAMETERS
    assert said["Resources"] == {
        "Kettle": {
            "Type": "My::Kettle",
            "Properties": {name: {"Ref": name} for name in CFN_PARAMETERS},
        }
    }
    assert said["Outputs"]["OS::stack_id"] == {"Value": {"Ref": "Kettle"}}
    assert said["Outputs"]["temperature"]["Value"] == {"Fn::GetAtt": ["Kettle", "temperature"]}


@pytest.mark.parametrize("name", HOT_PARAMETERS)
def test_a_generated_parameter_can_be_read_and_holds_the_default(name: str):
    hot = parameter_schemas.hot_schema(name, HOT_PARAMETERS[name])
    cfn = parameter_schemas.cfn_schema(name, CFN_PARAMETERS[name])
    default = Kettle.properties_schema[name].default
    if default is not None:
        expected = ["1"] if name == "l" else default
        assert hot.value(hot.default) == cfn.value(cfn.default) == expected


def test_a_bare_kind_has_a_template_too():
    said = resource_types.template("Bare", Bare, resource_types.Dialect("hot"))
    assert said["parameters"] == {}
    assert said["resources"] == {"Bare": {"type": "Bare", "properties": {}}}
