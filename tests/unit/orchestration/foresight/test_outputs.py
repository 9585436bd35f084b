"""Outputs in a plan: which the template itself adds, changes and takes away."""

from __future__ import annotations

from typing import Any

from bloomery.orchestration import foresight
from bloomery.orchestration.foresight import document
from bloomery.orchestration.plan.plans import Verb
from bloomery.orchestration.stack import Stack
from tests.unit.orchestration.plan.kit import shown
from tests.unit.orchestration.plan.stacks import stack

TEXT = """
heat_template_version: 2021-04-16
parameters: {p: {type: number, default: 1}}
conditions: {two: {equals: [{get_param: p}, 2]}}
resources:
  r: {type: OS::Heat::Value, properties: {value: VALUE}}
outputs:
"""


def outputs(*lines: str, value: Any = 1, **given: Any) -> Stack:
    body = "".join(f"  {line}\n" for line in lines)
    return stack(TEXT.replace("VALUE", str(value)) + body, sound=False, **given)


def test_outputs_that_are_told_otherwise_have_a_line() -> None:
    old = outputs("same: {value: 1}", "name: {value: 1}", "gone: {value: 1}", "z: {value: 1}")
    new = outputs("name: {value: 2}", "url: {value: 2}", "same: {value: 1, description: x}")
    made = foresight.plan(old, new)
    assert shown(made) == "outputs: ~ name, + url, - gone, - z\n\nNo resource changes."
    assert document.of_templates(made)["outputs"] == {
        "name": "update",
        "url": "create",
        "gone": "delete",
        "z": "delete",
    }
    assert shown(foresight.plan(new, outputs("url: {value: 2}", value=2))).endswith(
        "\n\noutputs: - name, - same\n\nsigns: ~ changed in place\n1 to update in place."
    )


def test_outputs_change_with_conditions_and_parameters_and_not_with_resources() -> None:
    body = [
        "a: {value: 1, condition: two}",
        "p: {value: {get_param: p}}",
        "b: {value: {get_attr: [r, value]}}",
    ]
    old = outputs(*body, p=1)
    assert foresight.plan(old, outputs(*body, p=2)).outputs == {"a": Verb.UPDATE, "p": Verb.UPDATE}
    assert foresight.plan(old, outputs(*body, value=2)).outputs == {}
    assert not document.of_templates(foresight.plan(old, old))["outputs"]


def test_one_that_stays_off_is_not_looked_at() -> None:
    old, new = (outputs(f"a: {{value: {value}, condition: two}}") for value in (1, 2))
    assert foresight.plan(old, new).outputs == {}


def test_an_output_with_a_fault_spoils_no_plan() -> None:
    same, other = "a: {value: {digest: [nope, x]}}", "b: {value: {digest: [nope, y]}}"
    old, new = outputs(same, other, p=1), outputs(same, other.replace("y]", "z]"), p=2)
    assert foresight.plan(old, new).outputs == {"b": Verb.UPDATE}
