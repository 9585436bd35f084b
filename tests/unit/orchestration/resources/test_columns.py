"""Every property of every kind has its columns, and the columns of a kind agree with each other."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from bloomery.orchestration.properties.constraints import AllowedValues
from bloomery.orchestration.properties.schema import Drift, OnChange, Plans, Policy, Schema
from bloomery.orchestration.resources import instance_info
from bloomery.orchestration.resources.base import Resource
from bloomery.orchestration.resources.effects import NO_EFFECT, Impact
from bloomery.orchestration.resources.instance import Instance
from bloomery.orchestration.resources.node import Node
from bloomery.orchestration.resources.stepwise import Stepwise
from tests.kit.stacks.kinds import made

KINDS: dict[str, type[Resource]] = {
    each.name: each.load() for each in importlib.metadata.entry_points(group="bloomery.resources")
}
PROPERTIES = [(kind, name) for kind in KINDS for name in KINDS[kind].properties_schema]


def missing_columns(kind: type[Resource], name: str) -> list[str]:
    """Return what the declaration of a property lacks, in sentences."""
    schema = kind.properties_schema[name]
    sentences = []
    if schema.update_allowed and not (schema.on_change or kind.on_change):
        sentences.append(f"{name} may be updated, and on_change does not say what that does")
    if not schema.update_allowed and schema.on_change:
        sentences.append(f"{name} has on_change, and may not be updated")
    if issubclass(kind, Stepwise) and kind.compares and schema.drift is None:
        sentences.append(f"{name} does not say whether a check compares it: drift")
    if isinstance(schema.on_change, Policy):
        policy = kind.properties_schema[schema.on_change.property]
        allowed = [each for each in policy.constraints if isinstance(each, AllowedValues)]
        if [*schema.on_change.changes] != [value for each in allowed for value in each.values]:
            sentences.append(f"{name} does not know each value of {schema.on_change.property}")
    return sentences


@pytest.mark.parametrize(("kind", "name"), PROPERTIES)
def test_each_property_has_its_columns(kind: str, name: str) -> None:
    assert missing_columns(KINDS[kind], name) == []


@pytest.mark.parametrize("kind", KINDS)
def test_properties_of_machines_say_themselves_what_a_change_does(kind: str) -> None:
    if issubclass(KINDS[kind], Stepwise) and KINDS[kind].compares:
        assert KINDS[kind].on_change is None


def test_a_property_without_its_columns_is_named() -> None:
    class Forgetful(Instance):
        properties_schema: ClassVar[Mapping[str, Schema]] = {
            **Instance.properties_schema,
            "forgotten": Schema(Instance.properties_schema["name"].type, update_allowed=True),
        }

    assert missing_columns(Forgetful, "forgotten") == [
        "forgotten may be updated, and on_change does not say what that does",
        "forgotten does not say whether a check compares it: drift",
    ]
    assert missing_columns(Forgetful, "name") == []


# ------------------------------------------------------------------ the columns do as they say

VALUES: dict[str, Any] = {
    "power": "on", "image_update_policy": "rebuild", "hardware": {"runbook": "r"},
}  # fmt: skip
IMPACTS = {
    OnChange.REBUILD: Impact.REBUILD, OnChange.POWER: Impact.SERVICE, OnChange.RUN: Impact.SERVICE,
}  # fmt: skip
UPDATABLE = [name for name, each in Instance.properties_schema.items() if each.update_allowed]


@pytest.mark.parametrize("name", UPDATABLE)
def test_a_plan_tells_of_an_instance_what_the_column_says(name: str) -> None:
    (change,) = instance_info.changes(VALUES, [name]) or [OnChange.LATER]
    effect = Instance.effect_of_update({}, VALUES, {name})
    if change in IMPACTS:
        assert (effect.impact, effect.loses_data) == (IMPACTS[change], change is OnChange.REBUILD)
    else:
        assert effect == NO_EFFECT
    assert Instance.needs_replace({}, VALUES, {name: 1}) is (change is OnChange.REPLACE)
    ends_earlier = change in (OnChange.REBUILD, OnChange.REPLACE)
    assert Instance.preempted_by({}, VALUES, {name}) is ends_earlier


@pytest.mark.parametrize("name", [
    "spread", "first_boot", "wait_for", "retry", "replace_order", "teardown", "suspend_mode",
    "timeouts", "runbook_before", "runbook_after", "image_update_policy", "user_data_update_policy",
])  # fmt: skip
def test_what_the_next_action_reads_changes_nothing_now(name: str) -> None:
    assert instance_info.changes(VALUES, [name]) == {OnChange.LATER}


def test_a_change_of_protection_is_written_at_once() -> None:
    assert instance_info.changes(VALUES, ["protected"]) == {OnChange.PATCH}


def test_what_decides_of_orders_is_given_to_plans() -> None:
    for kind in KINDS.values():
        schema = kind.properties_schema
        policies = {
            s.on_change.property for s in schema.values() if isinstance(s.on_change, Policy)
        }
        assert policies <= kind.effect_properties
        powers = {name for name, each in schema.items() if each.on_change is OnChange.POWER}
        assert powers <= kind.effect_properties


@pytest.mark.parametrize("kind", [Instance, Node])
def test_live_properties_are_those_that_a_machine_tells(kind: type[Resource]) -> None:
    """What converges comes from the machine: nothing that a check does not compare."""
    node: dict[str, Any] = dict.fromkeys(kind.properties_schema, "x")
    node |= {"power_state": "power off", "traits": ["A"]}
    resource = made(kind, {})
    live = resource.parse_live_resource_data({**node, "traits": ["B"], "power": "on"}, node)
    drifts = {kind.properties_schema[name].drift for name in live}
    assert drifts <= {Drift.LIVE, Drift.OWN}
    lives = {n for n, each in kind.properties_schema.items() if each.drift is Drift.LIVE}
    assert lives <= {*live}


def test_columns_of_plans_are_those_of_kinds() -> None:
    assert Instance.node_properties == ("node",)
    assert Instance.machine_properties == {
        "selector", "image", "traits", "deploy_steps", "custom_deploy", "protected",
    }  # fmt: skip
    assert Node.machine_properties == {"name", "driver", "resource_class"}
    schema = Node.properties_schema
    assert {n for n, each in schema.items() if each.plans is Plans.VERBS} == Node.effect_properties
