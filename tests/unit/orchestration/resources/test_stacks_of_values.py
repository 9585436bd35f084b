"""OS::Heat::Stack and OS::Heat::InstanceGroup, whose members come from values of the template."""

from __future__ import annotations

import json

import pytest

from bloomery import errors
from bloomery.orchestration import simulation
from bloomery.orchestration.resources.instance_group import InstanceGroup, seconds_of
from bloomery.orchestration.resources.states import Status
from bloomery.orchestration.resources.template_stack import TemplateStack
from bloomery.orchestration.resources.value import Value
from bloomery.outcome import DONE
from tests.kit.stacks.kinds import Children, Siblings, is_complete, made
from tests.kit.stacks.simulations import expand, lines, stack

INNER = """
heat_template_version: 2018-08-31
parameters:
  p: {type: string}
  l: {type: comma_delimited_list, default: []}
resources:
  a: {type: OS::Heat::TestResource, properties: {value: {get_param: p}}}
outputs:
  out: {value: {get_attr: [a, output]}}
  list: {value: {get_param: l}}
"""
OUTER = """
parameters:
  p: {type: string, default: x}
resources:
  s:
    type: OS::Heat::Stack
    properties:
      template: {get_file: inner.yaml}
      parameters: {p: {get_param: p}, l: [1, 2]}
outputs:
  id: {value: {get_resource: s}}
  name: {value: {get_attr: [s, stack_name]}}
  out: {value: {get_attr: [s, outputs, out]}}
  all: {value: {get_attr: [s, outputs]}}
  inner: {value: {get_attr: [s, resource.a, output]}}
"""


def outer(inner=INNER, **given):
    return stack(OUTER, files={"inner.yaml": inner}, given=given)


def test_a_stack_of_a_value_lives_with_the_stack_of_its_resource():
    life = simulation.Lifecycle()
    result = life.create(outer())
    assert result.status == "CREATE_COMPLETE", result.error
    outputs = {name: output.value for name, output in result.outputs.items()}
    assert outputs.pop("name").startswith("S-s-")
    assert outputs.pop("id") == result.resources[0].physical_id
    assert outputs == {"out": "x", "all": {"out": "x", "list": ["1", "2"]}, "inner": "x"}
    result = life.update(outer(p="y"))
    assert result.outputs["out"].value == "y"
    assert lines(result.events, depth=1)[-4:] == expand("S U>, a U+, S U.")
    assert life.delete().status == "DELETE_COMPLETE"


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        ("{", "template: line 2"),
        ("resources: {}", "Template format version not found"),
        (INNER.replace("p: {type: string}", "q: {type: string}"), "Parameter (p) was not defined"),
        (INNER.replace("parameters:", "parameters:\n  q: {type: string}"), "Parameter (q) was not"),
        (INNER.replace("TestResource", "Nope"), "Nope"),
    ],
)
def test_a_template_that_is_wrong_is_refused_with_its_parent(inner, text):
    result = simulation.run(outer(inner))
    assert result.status is None
    assert "resources.s" in result.error.message
    assert text in result.error.message


def test_a_template_that_another_resource_gives_is_read_when_it_is_there():
    text = OUTER.replace("{get_file: inner.yaml}", "{get_attr: [v, value]}").replace(
        "resources:",
        "resources:\n  v: {type: OS::Heat::Value, properties: {value: {get_file: inner.yaml}}}",
    )
    text = text.replace("[1, 2]", "{get_attr: [v, value]}")
    result = simulation.run(stack(text, files={"inner.yaml": INNER}))
    assert result.outputs["out"].value == "x", result.error


@pytest.mark.parametrize("key", ["region_name", "credential_secret_id", "ca_cert"])
def test_other_regions_and_clouds_are_refused_by_name(key):
    resource = made(TemplateStack, {"template": INNER, "context": {key: "RegionTwo"}})
    with pytest.raises(errors.StackValidationFailed, match=f"{key} 'RegionTwo'"):
        resource.validate()


def test_a_stack_of_a_value_has_a_time_of_its_own():
    children = Children()
    resource = made(TemplateStack, {"template": INNER, "timeout": 7}, children=children)
    assert resource.resolve_attribute("outputs") is None
    resource.handle_create()
    assert children.only.blueprint.timeout_s == 420
    assert resource.get_reference_id() == children.only.id


# ------------------------------------------------------------------------------- instance groups


def group(children, launch=None, policy=None, **properties):
    launch = launch or made(Value, {"value": "x", "type": None}, name="launch")
    launch.handle_create()
    given = {"LaunchConfigurationName": launch.get_reference_id(), "Size": 2, **properties}
    return made(
        InstanceGroup,
        given,
        name="g",
        children=children,
        siblings=Siblings(launch),
        policy=policy,
    )


def bodies(children):
    return list(children.only.document["resources"].values())


def test_members_take_the_properties_of_the_launch_configuration():
    children = Children()
    resource = group(children, Tags=[{"Key": "k", "Value": "v"}])
    resource.validate()
    token = resource.handle_create()
    children.end()
    assert resource.check_create_complete(token) == DONE
    tagged = {"value": "x", "Tags": [{"Key": "k", "Value": "v"}]}
    assert bodies(children) == [{"type": "OS::Heat::ScaledResource", "properties": tagged}] * 2
    names = list(resource.members())
    assert resource.resolve_attribute("InstanceList") == f"id-{names[0]},id-{names[1]}"
    assert resource.resolve_attribute(f"resource.{names[1]}").value == f"id-{names[1]}"


@pytest.mark.parametrize(
    ("policy", "batches"),
    [
        ({}, ["yyy"]),
        ({"RollingUpdate": {"MaxBatchSize": 2, "PauseTime": "PT0S"}}, ["yyx", "yyy"]),
    ],
)
def test_members_change_as_the_policy_says(policy, batches):
    children = Children()
    resource = group(children, Size=3)
    resource.handle_create()
    children.end()
    resource.update_policy = policy
    resource.context.siblings.resources[0].properties["value"] = "y"
    resource.record.data = json.loads(json.dumps(resource.record.data))
    token, seen = resource.handle_update(None, {}, {"LaunchConfigurationName": "other"}), []
    while not is_complete(resource.check_update_complete, token):
        assert children.only.status is Status.IN_PROGRESS
        seen.append("".join(one["properties"]["value"] for one in resource.aged().values()))
        children.end()
    assert seen == batches


def test_more_instances_than_a_stack_may_have_are_refused():
    with pytest.raises(errors.RequestLimitExceeded, match="1000000000 members"):
        group(None, Size=10**9).validate()


def test_load_balancers_are_refused():
    with pytest.raises(errors.StackValidationFailed, match="load balancers"):
        group(None, LoadBalancerNames=["lb"]).validate()


@pytest.mark.parametrize(
    ("text", "seconds"), [("PT0S", 0), ("PT1H2M3S", 3723), ("PT5M", 300), ("5 minutes", 0)]
)
def test_durations_are_read_as_iso_8601_writes_them(text, seconds):
    assert seconds_of(text) == seconds
