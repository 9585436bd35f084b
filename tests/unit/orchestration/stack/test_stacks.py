"""Kinds, order, and what a plan asks of a stack."""

from __future__ import annotations

from typing import ClassVar

import pytest

from bloomery import errors
from bloomery.orchestration.properties.schema import Schema, Type
from bloomery.orchestration.properties.translation import Replace
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.value import Value
from bloomery.orchestration.stack import Stack, validate
from bloomery.orchestration.stack.template_side import TemplateSide
from bloomery.orchestration.template import kinds, versions
from bloomery.orchestration.template.definition import Definition
from bloomery.orchestration.template.environment import Environment
from tests.unit.orchestration.stack import kit

LINE = """
parameters:
  secret: {type: string, default: x, hidden: true}
  plain: {type: string, default: y}
resources:
  c: {type: OS::Heat::Value, properties: {value: {get_attr: [b, value]}}}
  b: {type: OS::Heat::Value, depends_on: d, properties: {value: {get_resource: a}}}
  a: {type: OS::Heat::Value, properties: {value: {get_param: plain}}}
  d: {type: OS::Heat::Value, properties: {value: 1}}
"""


class Kettle(base.Resource):
    """A kind with all that a kind may say."""

    properties_schema: ClassVar = {
        "litres": Schema(Type.NUMBER, required=True),
        "description": Schema(Type.STRING),
    }
    validated: ClassVar[list] = []

    def validate(self) -> None:
        self.validated.append(self.record.name)
        if self.properties["litres"] > 9:
            raise errors.StackValidationFailed(reason="too many", path=("litres",))

    @classmethod
    def implicit_dependencies(cls, definition, siblings):
        return [name for name in siblings if name.startswith("stove") and name != definition.name]

    def handle_snapshot_delete(self, state):
        """Make its policy Snapshot valid."""


def of_kettles(body, **more) -> Stack:
    document = kit.hot(body)
    environment = Environment.of(None, kinds.Kinds({"Kettle": lambda: Kettle, "V": lambda: Value}))
    template = versions.template_class(document)(document)
    return Stack(Definition(template=template, environment=environment, **more))


@pytest.fixture(autouse=True)
def forget():
    Kettle.validated.clear()


def test_what_is_required_comes_first():
    made = kit.stack(kit.hot(LINE))
    order = [*made.order]
    assert order.index("a") < order.index("b") < order.index("c")
    assert order.index("d") < order.index("b")
    assert set(made.graph.requires("b")) == {"a", "d"}


def test_a_kind_may_say_what_must_come_first():
    made = of_kettles(
        "resources: {k: {type: Kettle, properties: {litres: 1}},"
        " stove: {type: V, properties: {value: 1}}}"
    )
    assert [*made.order] == ["stove", "k"]


def test_what_is_there_already_waits_for_nobody():
    made = of_kettles(
        "resources: {k: {type: Kettle, external_id: x},"
        " stove: {type: V, properties: {value: {get_resource: k}}}}"
    )
    assert [*made.order] == ["k", "stove"]


def test_a_kind_is_looked_for_once():
    made = kit.stack(kit.hot(LINE))
    assert made.kind("a") is Value
    assert made.kind("a") is made.kind("b")


def test_a_stack_is_one_side_of_a_plan():
    made: TemplateSide = kit.stack(kit.hot(LINE))
    assert set(made.parameters) == {
        "OS::stack_name", "OS::stack_id", "OS::project_id", "secret", "plain",
    }  # fmt: skip
    assert set(made.hidden) == {"secret"}
    assert [*made.required("b")] == ["d", "a"]
    assert made.properties("a", made.view) == {"value": "y", "type": None}
    assert made.properties("a", made.view, {"value"}) == {"type": None}
    assert not made.restricted("a")


def test_properties_that_are_one_call_can_be_read_without_some():
    body = """
parameters: {p: {type: json, default: {value: 1}}}
resources: {a: {type: OS::Heat::Value, properties: {get_param: p}}}
"""
    made = kit.stack(kit.hot(body))
    assert made.properties("a", made.view)["value"] == 1
    assert made.properties("a", made.view, {"value"}) == {"type": None}


def test_what_is_left_out_is_not_read():
    body = "resources: {a: {type: OS::Heat::Value, properties: {value: {get_param: nobody}}}}"
    made = kit.stack(kit.hot(body))
    assert made.properties("a", made.view, {"value"}) == {"type": None}
    with pytest.raises(errors.StackValidationFailed, match="nobody"):
        made.properties("a", made.view)


def test_what_ignores_its_properties_has_none():
    body = "resources: {a: {type: OS::Heat::None, properties: {x: {get_param: nobody}}}}"
    made = kit.stack(kit.hot(body))
    assert made.properties("a", made.view) == {}
    validate(made)


def test_what_views_answer_from_can_be_compared():
    assert kit.stack(kit.hot(LINE)).context == kit.stack(kit.hot(LINE)).context
    changed = kit.stack(kit.hot(LINE), user_parameters={"plain": "z"})
    assert kit.stack(kit.hot(LINE)).context != changed.context


def test_restrictions_come_from_the_environment():
    env = {"resource_registry": {"resources": {"a": {"restricted_actions": ["update"]}}}}
    assert set(kit.stack(kit.hot(LINE), env).restricted("a")) == {"update"}


def test_before_anything_exists_ids_are_names_and_attributes_null():
    view = kit.stack(kit.hot(LINE)).view
    seen = view.resource("a")
    assert (seen.ready, seen.reference_id()) == (False, "a")
    assert (seen.attribute("value"), seen.attributes()) == (None, {})
    assert [seen.has_attribute(name) for name in ("value", "show", "x")] == [True, True, False]


# -------------------------------------------------------------------------------- kinds' own checks


def test_a_kind_checks_what_its_schema_cannot_see():
    made = of_kettles("resources: {k: {type: Kettle, properties: {litres: 10}}}")
    with pytest.raises(errors.StackValidationFailed) as told:
        validate(made)
    assert str(told.value) == "resources.k.properties.litres: too many"


def test_resources_that_are_written_alike_are_checked_once():
    like = "{type: Kettle, properties: {litres: 1}}"
    other = "{type: Kettle, properties: {litres: 2}}"
    validate(of_kettles(f"resources: {{k: {like}, l: {like}, m: {other}}}"))
    assert Kettle.validated == ["k", "m"]


def test_a_kind_that_makes_snapshots_may_be_kept_as_one():
    policy = "deletion_policy: snapshot"
    validate(of_kettles(f"resources: {{k: {{type: Kettle, {policy}, properties: {{litres: 1}}}}}}"))


def test_the_description_of_a_resource_is_that_of_its_property():
    made = of_kettles("resources: {k: {type: Kettle, description: Mine, properties: {litres: 1}}}")
    assert made.properties("k", made.view)["description"] == "Mine"


def test_old_spellings_of_a_kind_are_understood(monkeypatch):
    monkeypatch.setattr(Kettle, "properties_schema", {
        "litres": Schema(Type.NUMBER), "volume": Schema(Type.NUMBER),
    })  # fmt: skip
    monkeypatch.setattr(Kettle, "translation_rules", (Replace(("litres",), source=("volume",)),))
    made = of_kettles("resources: {k: {type: Kettle, properties: {volume: 10}}}")
    with pytest.raises(errors.StackValidationFailed, match="too many"):
        validate(made)
