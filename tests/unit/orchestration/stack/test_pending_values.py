"""A property may have a value of a resource that does not exist yet, in every kind and place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from bloomery import errors, plugins
from bloomery.orchestration import foresight, simulation
from bloomery.orchestration.plan.builder import ExistingStack
from bloomery.orchestration.properties.schema import Schema, Type
from bloomery.orchestration.stack import validate
from bloomery.orchestration.template import kinds
from tests.kit.stacks.simulations import stack

ISO = {"boot_iso": "http://images/a.iso"}
STEP = {"interface": "deploy", "step": "x", "args": {}}
NODE = {"node": "n"}
MINIMAL: Mapping[str, Mapping[str, Any]] = {
    "AWS::CloudFormation::WaitCondition": {"Handle": {"get_resource": "h"}, "Timeout": 60},
    "OS::Heat::AutoScalingGroup": {
        "resource": {"type": "OS::Heat::Value"}, "max_size": 1, "min_size": 1,
    },
    "OS::Heat::InstanceGroup": {
        "AvailabilityZones": [], "LaunchConfigurationName": "x", "Size": 0,
    },
    "OS::Heat::ResourceChain": {"resources": []},
    "OS::Heat::ResourceGroup": {
        "count": 1, "resource_def": {"type": "OS::Heat::Value", "properties": {"value": 1}},
    },
    "OS::Heat::ScalingPolicy": {
        "auto_scaling_group_id": "g", "scaling_adjustment": 1,
        "adjustment_type": "change_in_capacity",
    },
    "OS::Heat::SoftwareComponent": {
        "configs": [{"actions": ["CREATE"], "config": "x", "tool": "script"}],
    },
    "OS::Heat::SoftwareDeployment": {"server": "s"},
    "OS::Heat::StructuredDeployment": {"server": "s"},
    "OS::Heat::Stack": {"template": "{heat_template_version: 2021-04-16}"},
    "OS::Heat::StackOutputs": {"stack": "net"},
    "OS::Heat::Value": {"value": 1},
    "OS::Heat::WaitCondition": {"handle": {"get_resource": "h"}, "timeout": 60},
    "OS::Ironic::Allocation": {"resource_class": "bm"},
    "OS::Ironic::DeployTemplate": {"name": "CUSTOM_A", "steps": [{**STEP, "priority": 1}]},
    "OS::Ironic::HardwareConfiguration": {**NODE, "allow_destructive": True},
    "OS::Ironic::Instance": {**NODE, "image": ISO},
    "OS::Ironic::InstanceGroup": {"member": {"selector": {"resource_class": "bm"}, "image": ISO}},
    "OS::Ironic::Node": {"driver": "fake-hardware"},
    "OS::Ironic::Port": {**NODE, "address": "52:54:00:00:00:01"},
    "OS::Ironic::PortGroup": NODE,
    "OS::Ironic::Runbook": {"name": "CUSTOM_A", "steps": [{**STEP, "order": 1}]},
    "OS::Ironic::RunbookExecution": {**NODE, "runbook": "CUSTOM_A"},
    "OS::Ironic::VolumeConnector": {**NODE, "type": "iqn", "connector_id": "x"},
    "OS::Ironic::VolumeTarget": {
        **NODE, "volume_type": "iscsi", "volume_id": "x", "boot_index": 0,
    },
} | {
    name: {"servers": {"s": "s"}}
    for name in (
        "OS::Heat::SoftwareDeploymentGroup", "OS::Heat::SoftwareDeployments",
        "OS::Heat::StructuredDeploymentGroup", "OS::Heat::StructuredDeployments",
    )
}  # fmt: skip
CALL = {"get_attr": ["v", "value"]}
OTHERS = {
    "v": {"type": "OS::Heat::Value", "properties": {"value": 1}},
    "h": {"type": "OS::Heat::WaitConditionHandle"},
}


def calls_in(schemas: Mapping[str, Schema], path: tuple[str, ...] = ()) -> Iterator[Any]:
    """Yield path and value of every place that may have a call, with its required siblings."""
    for name, schema in schemas.items():
        if not schema.implemented:
            continue
        yield (*path, name), {name: CALL}
        inner = schema.schema
        wraps = schema.type is Type.LIST and isinstance(inner, Schema)
        inner = inner.schema if wraps and isinstance(inner, Schema) else inner
        if isinstance(inner, Mapping):
            required = {key: CALL for key, each in inner.items() if each.required}
            for deep, value in calls_in(inner, (*path, name)):
                body = {**required, **value}
                yield deep, {name: [body] if wraps else body}


def places() -> Iterator[Any]:
    for name, load in sorted(plugins.loaders(kinds.GROUP).items()):
        kind = load()
        if not kind.ignores_properties:
            yield pytest.param(name, kind, id=name)


@pytest.mark.sampled
@pytest.mark.parametrize(("type_name", "kind"), [*places()])
def test_every_property_takes_a_value_that_is_not_known_yet(type_name: str, kind: Any) -> None:
    for path, value in calls_in(kind.properties_schema):
        minimal = dict(MINIMAL.get(type_name, {}))
        for rule in kind.presence_rules:
            if path[0] in rule.names:
                minimal = {key: each for key, each in minimal.items() if key not in rule.names}
        for key, each in value.items():
            beside = minimal.get(key)
            together = isinstance(beside, dict) and isinstance(each, dict) and each is not CALL
            minimal[key] = {**beside, **each} if together else each
        body = {"type": type_name, "properties": minimal}
        made = stack(f"resources: {json.dumps({**OTHERS, 'r': body})}")
        try:
            validate(made)
            planned = foresight.create(made, ExistingStack(records={}))
        except errors.Failure as exc:
            pytest.fail(f"{type_name} {'.'.join(path)}: {exc}")
        assert "r" in {key.name for key, _ in planned}, path


INNER = """
heat_template_version: 2021-04-16
parameters: {image: {type: string, constraints: [{length: {min: 4}}]}, place: {type: json}}
conditions: {has_image: {not: {equals: [{get_param: image}, ""]}}}
resources:
  i:
    type: OS::Ironic::Instance
    properties:
      selector: {get_param: place}
      image: {source: {if: [has_image, {get_param: image}, {get_param: "OS::stack_name"}]}}
outputs: {url: {value: "http://images/b"}}
"""
IMAGE = {"get_attr": ["image", "value"]}
CLASS = {"resource_class": "bm"}
INSTANCE = {"type": "OS::Ironic::Instance"}
GROUP = {"type": "OS::Ironic::InstanceGroup"}
RUN = {"type": "OS::Ironic::RunbookExecution"}
WEB = INSTANCE | {"properties": {"selector": CLASS, "image": ISO}}
REFERENCES: Mapping[str, Mapping[str, Any]] = {
    "image.source of a Value": INSTANCE | {
        "properties": {"selector": CLASS, "image": {"source": IMAGE}}},
    "image of a Value": INSTANCE | {
        "properties": {"selector": CLASS, "image": {"get_attr": ["map", "value"]}}},
    "image of a nested stack": INSTANCE | {
        "properties": {"selector": CLASS, "image": {"source": {"get_attr": ["nested", "url"]}}}},
    "image in a text": INSTANCE | {
        "properties": {"selector": CLASS, "image": {
            "boot_iso": {"str_replace": {"template": "U/x", "params": {"U": IMAGE}}}}}},
    "node of an Allocation": INSTANCE | {
        "properties": {"node": {"get_attr": ["allocation", "node_uuid"]}, "image": ISO}},
    "allocation": INSTANCE | {
        "properties": {"allocation": {"get_resource": "allocation"}, "image": ISO}},
    "selector": INSTANCE | {
        "properties": {"selector": {"get_attr": ["class", "value"]}, "image": ISO}},
    "resource_class": INSTANCE | {"properties": {
        "selector": {"resource_class": {"get_attr": ["class", "value", "resource_class"]}},
        "image": ISO}},
    "image in an InstanceGroup": GROUP | {
        "properties": {"count": 2, "member": {"selector": CLASS, "image": {"source": IMAGE}}}},
    "selector in an InstanceGroup": GROUP | {"properties": {
        "count": 2, "member": {"selector": {"get_attr": ["class", "value"]}, "image": ISO}}},
    "image in a ResourceGroup": {"type": "OS::Heat::ResourceGroup", "properties": {
        "count": 2, "resource_def": INSTANCE | {
            "properties": {"selector": CLASS, "image": {"source": IMAGE}}}}},
    "image for a nested template": {"type": "inner.yaml", "properties": {
        "image": IMAGE, "place": CLASS}},
    "selector for a nested template": {"type": "inner.yaml", "properties": {
        "image": "http://images/a", "place": {"get_attr": ["class", "value"]}}},
    "image for nested templates of a group": {"type": "OS::Heat::ResourceGroup", "properties": {
        "count": 2, "resource_def": {"type": "inner.yaml", "properties": {
            "image": IMAGE, "place": CLASS}}}},
    "image for a stack": {"type": "OS::Heat::Stack", "properties": {
        "template": {"get_file": "inner.yaml"},
        "parameters": {"image": IMAGE, "place": CLASS}}},
    "runbook": RUN | {"properties": {
        "node": {"get_attr": ["web", "node_uuid"]}, "runbook": {"get_resource": "book"}}},
    "instance": RUN | {"properties": {
        "instance": {"get_resource": "web"}, "runbook": "CUSTOM_BOOK"}},
    "steps": RUN | {"properties": {
        "instance": {"get_resource": "web"}, "steps": {"get_attr": ["steps", "value"]}}},
    "a member of an InstanceGroup": RUN | {"properties": {
        "node": {"get_attr": ["webs", "resource.0", "node_uuid"]}, "runbook": "CUSTOM_BOOK"}},
}  # fmt: skip
STEPS = [STEP]
SOURCES: Mapping[str, Mapping[str, Any]] = {
    "image": {"type": "OS::Heat::Value", "properties": {"value": "http://images/a"}},
    "map": {"type": "OS::Heat::Value", "properties": {"value": {"source": "http://images/a"}}},
    "class": {"type": "OS::Heat::Value", "properties": {"value": CLASS}},
    "steps": {"type": "OS::Heat::Value", "properties": {"value": STEPS}},
    "nested": {"type": "inner.yaml", "properties": {"image": "http://images/a", "place": CLASS}},
    "allocation": {"type": "OS::Ironic::Allocation", "properties": CLASS},
    "book": {"type": "OS::Ironic::Runbook",
             "properties": {"name": "CUSTOM_BOOK", "traits": ["CUSTOM_BOOK"],
                            "steps": [{**STEP, "order": 1}]}},
    "web": WEB,
    "webs": GROUP | {"properties": {"count": 2, "member": WEB["properties"]}},
}  # fmt: skip


def with_sources(body: Mapping[str, Any]) -> Any:
    """A stack of the resource and of the resources that it refers to."""
    text = json.dumps(body)
    sources = {name: each for name, each in SOURCES.items() if f'"{name}"' in text}
    if body["type"] == RUN["type"]:
        sources["book"] = SOURCES["book"]
    if "book" in sources:
        body = {**body, "depends_on": ["book"]}
    resources = json.dumps({"r": body, **sources})
    return stack(f"resources: {resources}", files={"inner.yaml": INNER})


@pytest.mark.sampled
@pytest.mark.parametrize("body", [*REFERENCES.values()], ids=[*REFERENCES])
def test_a_resource_is_created_from_what_is_created_before_it(
    body: Mapping[str, Any], on_service: simulation.Simulation
) -> None:
    made = with_sources(body)
    planned = foresight.create(made, ExistingStack(records={}))
    assert "r" in {key.name for key, _ in planned}
    result = simulation.run(with_sources(body), simulation=on_service)
    assert result.status == "CREATE_COMPLETE", result.reason or result.error
