"""What a change of properties orders of a machine: functions that plans and handlers share."""

from __future__ import annotations

import pytest

from bloomery.orchestration.resources import instance_info
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


RAID = {"logical_disks": [{"size_gb": 10, "raid_level": "1"}]}
LOST = "the node goes through manage, clean, provide; what is on its disks is lost"
NOT_ALLOWED = (
    "cannot change RAID of node n1, which destroys data: set "
    "hardware_configuration.allow_destructive to true"
)


def configured(**sections):
    return {**NODE, "hardware_configuration": sections}


@pytest.mark.parametrize(
    ("before", "after", "verbs", "loses_data", "reason"),
    [
        ({"bios": {"settings": {"A": "1"}}}, {"bios": {"settings": {"A": "2"}}},
         ("manage", "clean", "provide"), False, "the node goes through manage, clean, provide"),
        ({"raid": {"logical_disks": []}}, {"raid": RAID, "allow_destructive": True},
         ("manage", "clean", "provide"), True, LOST),
        ({"raid": {"logical_disks": []}}, {"raid": RAID}, (), False, NOT_ALLOWED),
        ({"raid": RAID}, {"raid": RAID, "allow_destructive": True}, (), False, ""),
    ],
)  # fmt: skip
def test_a_change_of_raid_loses_data_or_is_refused(before, after, verbs, loses_data, reason):
    names = {"hardware_configuration"}
    effect = Node.effect_of_update(configured(**before), configured(**after), names)
    assert (effect.verbs, effect.loses_data, effect.reason) == (verbs, loses_data, reason)
    assert effect.is_refused == (reason == NOT_ALLOWED)


def test_what_an_enrolled_node_was_never_given_is_configured_on_its_way_up():
    before = {**configured(bios={"settings": {"A": "1"}}), "target_state": "enroll"}
    after = {**before, "target_state": "manageable"}
    effect = Node.effect_of_update(before, after, {"target_state"})
    assert (effect.verbs, effect.certain) == (("manage", "inspect", "clean"), True)


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
    node = {"uuid": "u", "name": "n", "maintenance": True, "maintenance_reason": "smoke",
            "protected": False}  # fmt: skip
    because = (
        "node n is in maintenance (smoke): {} is refused until that ends "
        "(baremetal node maintenance unset n)"
    )
    assert reason_to_refuse(node, verbs) == (because.format(refused) if refused else "")
    assert reason_to_refuse({**node, "maintenance": False}, verbs) == ""


@pytest.mark.parametrize(
    ("verbs", "refused"),
    [(("abort", "rebuild"), "rebuild"), (("deleted",), "deleted"), (("service",), "")],
)
def test_protection_refuses_what_takes_the_system_away_unless_it_ends_first(verbs, refused):
    node = {"uuid": "u", "name": "n", "maintenance": False, "protected": True}
    because = (
        f"node n is protected: {refused} is refused until that ends "
        "(baremetal node unset --protected n)"
    )
    assert reason_to_refuse(node, verbs) == (because if refused else "")
    assert reason_to_refuse(node, verbs, unprotects=True) == ""


WIPE = {"interface": "deploy", "step": "erase_devices"}
VOLUMES = {"interface": "raid", "step": "delete_configuration"}
ASSET_TAG = {"interface": "vendor", "step": "send_raw"}
BURN_IN = {"interface": "deploy", "step": "burnin_disk"}


def of_node(steps):
    before = {**configured(extra_steps=[ASSET_TAG | {"args": {"n": 1}}])}
    return Node.effect_of_update(before, configured(extra_steps=steps), {"hardware_configuration"})


def of_configuration(steps, apply_when="service"):
    return HardwareConfiguration.effect_of_create(
        {**CONFIG, "bios": None, "extra_steps": steps, "apply_when": apply_when}
    )


def of_run(steps, **more):
    properties = {"mode": "clean", "run_on": ["CREATE"], "steps": steps} | more
    return RunbookExecution.effect_of_create(properties)


def of_instance(steps):
    after = {"hardware": {"extra_steps": steps}, "power": "on"}
    return instance_info.effect_of_update({}, after, {"hardware"})


def of_iso(steps):
    after = {"hardware": {"extra_steps": steps}, "image": {"boot_iso": "http://a"}}
    after |= {"image_update_policy": "rebuild", "user_data_update_policy": "ignore"}
    return instance_info.effect_of_update({}, after, {"hardware", "image"})


@pytest.mark.parametrize("effect_of", [of_node, of_configuration, of_run, of_instance, of_iso])
@pytest.mark.parametrize(
    ("steps", "loses_data"),
    [([ASSET_TAG], False), ([WIPE], True), ([ASSET_TAG, VOLUMES], True), ([BURN_IN], True)],
    ids=["none", "erase_devices", "raid", "burnin_disk"],
)
def test_steps_that_erase_disks_or_change_volumes_lose_data(effect_of, steps, loses_data):
    effect = effect_of(steps)
    assert effect.verbs
    assert (effect.loses_data, "what is on its disks is lost" in effect.reason) == (
        loses_data, loses_data,
    )  # fmt: skip


def test_what_is_left_to_a_deployment_says_what_is_lost_then():
    effect = of_configuration([VOLUMES], apply_when="deploy")
    assert (effect.verbs, effect.loses_data) == ((), False)
    assert effect.reason.endswith(", and what is on its disks is lost then")


def test_of_the_steps_of_a_runbook_a_plan_says_that_it_does_not_know_them():
    unread = "the plan does not tell whether its runbook erases disks"
    assert unread in of_run(None, runbook="wash").reason
    after = {"hardware": {"runbook": "wash"}, "power": "on"}
    assert unread in instance_info.effect_of_update({}, after, {"hardware"}).reason
