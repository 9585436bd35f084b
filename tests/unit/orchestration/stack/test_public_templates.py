"""What public templates have, and Heat accepts or refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from oslo_utils import uuidutils

from bloomery.orchestration import simulation
from bloomery.orchestration.template import parse
from tests.kit.stacks.simulations import stack

MAP = {"type": "OS::Heat::Value", "properties": {"value": {"a": 1}}}
NULL = {"get_attr": ["map", "value", "missing"]}
LONG = "p: {type: string, default: much-too-long, constraints: [{length: {max: 3}}]}"
INNER = f"{{heat_template_version: 2018-08-31, parameters: {{{LONG}}}}}"
CFN = (
    "{HeatTemplateFormatVersion: 2012-12-12, Resources: {}, "
    "Parameters: {p: {Type: String, Default: much-too-long, MaxLength: 3}}}"
)
CREATED = "CREATE_COMPLETE"


def random(**properties: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::RandomString", "properties": {"length": 4, **properties}}


def group(value: Any) -> dict[str, Any]:
    member = {"type": "OS::Heat::Value", "properties": {"value": value}}
    return {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": member}}


ROWS: Mapping[str, tuple[Any, Any, str]] = {
    # name: resource, environment, the status or a part of the error
    "sequence": (random(sequence="octdigits"), {}, CREATED),
    "sequence beside classes": (
        random(sequence="digits", character_classes=[{"class": "letters", "min": 2}]), {}, CREATED,
    ),
    "sequence is null": (random(sequence=None), {}, CREATED),
    "sequence of no class": (random(sequence="xyz"), {}, '"xyz" is not among the allowed values'),
    "default breaks its constraint, value by property": (
        {"type": "inner.yaml", "properties": {"p": "abc"}}, {}, CREATED,
    ),
    "default breaks its constraint, value of a new resource": (
        {"type": "inner.yaml", "properties": {"p": {"get_attr": ["map", "value", "a"]}}}, {},
        CREATED,
    ),
    "default breaks its constraint, value by parameter_defaults": (
        {"type": "inner.yaml"}, {"parameter_defaults": {"p": "abc"}}, CREATED,
    ),
    "default breaks its constraint, CloudFormation": (
        {"type": "cfn.template", "properties": {"p": "abc"}}, {}, CREATED,
    ),
    "default breaks its constraint and is used": (
        {"type": "inner.yaml"}, {}, "the default of parameter 'p' is invalid",
    ),
    "value breaks the constraint": (
        {"type": "inner.yaml", "properties": {"p": "abcd"}}, {}, "its length is 4",
    ),
    "null removes the default of a nested template": (
        {"type": "inner.yaml"}, {"parameter_defaults": {"p": None}}, "Property p not assigned",
    ),
    "null in parameter_defaults, value by property": (
        {"type": "inner.yaml", "properties": {"p": "abc"}}, {"parameter_defaults": {"p": None}},
        CREATED,
    ),
    "group with a null for a required property": (group(NULL), {}, "Property value not assigned"),
    "group with a value": (group("x"), {}, CREATED),
}  # fmt: skip


@pytest.mark.parametrize(("body", "environment", "outcome"), [*ROWS.values()], ids=[*ROWS])
def test_public_templates_have_the_outcome_of_heat(
    body: Any, environment: Any, outcome: str
) -> None:
    resources = json.dumps({"map": MAP, "r": body})
    files = {"inner.yaml": INNER, "cfn.template": CFN}
    made = stack(f"resources: {resources}", environment=environment, files=files)
    result = simulation.run(made)
    text = result.error.message if result.error else f"{result.status} {result.reason}"
    assert outcome in text, text


def test_a_sequence_is_one_class_of_characters() -> None:
    text = f"resources: {json.dumps({'r': random(sequence='digits')})}"
    result = simulation.run(stack(f"{text}\noutputs: {{o: {{value: {{get_resource: r}}}}}}"))
    assert result.outputs["o"].value.isdecimal()


def test_a_template_for_virtual_machines_runs_on_machines(
    on_service: simulation.Simulation,
) -> None:
    examples = Path(__file__).parents[4] / "examples"
    text = (examples / "nova.yaml").read_text().partition("\n")[2]
    environment = parse.document((examples / "from-nova.env.yaml").read_text())
    files = {"nova-server.yaml": (examples / "nova-server.yaml").read_text()}
    life = simulation.Lifecycle(on_service)
    result = life.create(stack(text, environment=environment, files=files))
    assert result.status == CREATED, result.reason or result.error
    assert result.outputs["name"].value == "web"
    assert uuidutils.is_uuid_like(result.outputs["server"].value)
    environment["parameter_defaults"]["image_urls"]["new"] = "http://images/new"
    given = {"image": "new"}
    result = life.update(stack(text, environment=environment, files=files, given=given))
    assert result.status == "UPDATE_COMPLETE", result.reason or result.error
