"""What a change of properties orders of a machine: functions that plans and handlers share."""

from __future__ import annotations

import pytest

from bloomery.orchestration.resources.effects import NO_EFFECT, Impact
from bloomery.orchestration.resources.node import Node
from bloomery.orchestration.resources.step_run import HardwareConfiguration, RunbookExecution
from bloomery.orchestration.resources.stepwise import reason_to_refuse

NODE = {"target_state": "available", "inspect": "once", "on_delete": "delete",
        "driver": "redfish", "resource_class": "bm", "name": "n1"}  # fmt: skip
CONFIG = {"firmware": None, "bios": {"settings": {"A": "1"}}, "raid": None, "extra_steps": None,
          "apply_when": "manageable", "on_delete": "keep"}  # fmt: skip


@pytest.mark.parametrize(
    ("target", "inspect", "verbs"),
    [
        ("available", "once", ("manage", "inspect", "provide")),
        ("available", "none", ("manage", "provide")),
        ("manageable", "once", ("manage", "inspect")),
        ("enroll", "once", ()),
    ],
)
def test_a_node_is_enrolled_by_these_verbs(target, inspect, verbs):
    effect = Node.effect_of_create({**NODE, "target_state": target, "inspect": inspect})
    assert (effect.verbs, effect.driver, effect.resource_class) == (verbs, "redfish", "bm")


@pytest.mark.parametrize(
    ("before", "after", "names", "verbs", "certain"),
    [
        ({}, {}, {"name"}, (), True),
        ({"target_state": "manageable"}, {}, {"target_state"}, ("provide",), True),
        ({"target_state": "enroll"}, {}, {"target_state"}, ("manage", "inspect", "provide"), True),
        ({}, {"target_state": "manageable"}, {"target_state"}, ("manage",), False),
        ({"target_state": "manageable"}, {"target_state": "manageable", "inspect": "always"},
         {"driver_info", "inspect"}, ("inspect",), False),
    ],
)  # fmt: skip
def test_a_node_goes_up_and_down_by_these_verbs(before, after, names, verbs, certain):
    effect = Node.effect_of_update({**NODE, **before}, {**NODE, **after}, names)
    assert (effect.verbs, effect.certain) == (verbs, certain)


def test_a_node_leaves_by_manageable():
    assert Node.effect_of_delete(NODE).verbs == ("manage",)
    assert Node.effect_of_delete({**NODE, "on_delete": "keep"}) == NO_EFFECT
    assert Node.effect_of_delete({**NODE, "target_state": "enroll"}) == NO_EFFECT


def test_steps_run_in_the_actions_that_are_named():
    properties = {"mode": "service", "run_on": ["UPDATE"]}
    assert RunbookExecution.effect_of_create(properties) == NO_EFFECT
    assert RunbookExecution.effect_of_update(properties, properties, {"triggers"}).verbs == (
        "service",
    )


@pytest.mark.parametrize(
    ("change", "verbs", "loses_data", "certain"),
    [
        ({"bios": {"settings": {"A": "2"}}}, ("clean",), False, True),
        ({"raid": {"logical_disks": []}}, ("clean",), True, False),
        ({"bios": None}, (), False, True),
        ({"bios": {"settings": {"A": "2"}}, "apply_when": "service"}, ("service",), False, True),
        ({"bios": {"settings": {"A": "2"}}, "apply_when": "deploy"}, (), False, True),
    ],
)
def test_only_changed_sections_are_configured(change, verbs, loses_data, certain):
    effect = HardwareConfiguration.effect_of_update(CONFIG, {**CONFIG, **change}, set(change))
    assert (effect.verbs, effect.loses_data, effect.certain) == (verbs, loses_data, certain)
    assert effect.impact is (Impact.SERVICE if verbs else Impact.PATCH)


def test_what_waited_for_a_deployment_is_configured_when_it_waits_no_more():
    before = {**CONFIG, "apply_when": "deploy"}
    effect = HardwareConfiguration.effect_of_update(before, CONFIG, {"apply_when"})
    assert (effect.verbs, effect.certain) == (("clean",), False)


def test_only_what_is_to_be_reset_is_at_the_end():
    assert HardwareConfiguration.effect_of_delete(CONFIG) == NO_EFFECT
    effect = HardwareConfiguration.effect_of_delete({**CONFIG, "on_delete": "reset"})
    assert (effect.verbs, effect.loses_data) == (("clean",), False)


@pytest.mark.parametrize(
    ("verbs", "refused"),
    [
        (("manage", "inspect", "clean", "provide"), "clean"),
        (("rebuild", "service", "power off"), "rebuild"),
        (("service",), "service"),
        (("manage", "provide"), ""),
        (("power on",), ""),
    ],
)
def test_maintenance_refuses_what_would_write_clean_or_service_a_node(verbs, refused):
    node = {"uuid": "u", "name": "n", "maintenance": True, "maintenance_reason": "smoke"}
    because = (
        "node n is in maintenance (smoke): {} is refused until that ends "
        "(baremetal node maintenance unset n)"
    )
    assert reason_to_refuse(node, verbs) == (because.format(refused) if refused else "")
    assert reason_to_refuse({**node, "maintenance": False}, verbs) == ""
