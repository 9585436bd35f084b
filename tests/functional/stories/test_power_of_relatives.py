"""Nodes below others that take their power from them."""

from __future__ import annotations

import pytest

from tests.kit.machines.scripted import Script
from tests.kit.waiting import wait_for


@pytest.fixture
def family(stage):
    parent = stage.enrol()
    return parent, [stage.enrol(parent_node=parent), stage.enrol(parent_node=parent)]


def powers(stage, *nodes):
    return [stage.show(node)["power_state"] for node in nodes]


def test_a_child_that_goes_on_brings_its_parent_on_first(stage, family):
    parent, (child, other) = family
    shown = stage.power(child, "power on")
    assert (shown["power_state"], shown["last_error"]) == ("power on", None)
    assert powers(stage, parent, other) == ["power on", None]
    assert stage.steps(child, "power") == [("power.power_on", "done"), ("power.change", "done")]
    assert stage.told(parent)[-2:] == ["power_set.start", "power_set.end"]
    assert stage.told(child) == ["create.start", "create.end", "power_set.start", "power_set.end"]
    stage.power(child, "power off")
    stage.power(child, "power on")
    assert stage.steps(child, "power")[3:] == [("power.change", "done")], "the parent was on"


@pytest.mark.parametrize("target", ["rebooting", "soft rebooting"])
def test_a_child_that_restarts_asks_no_parent(stage, family, target):
    parent, (child, _) = family
    stage.power(child, target)
    assert powers(stage, parent, child) == [None, "power on"]


def test_a_parent_that_goes_off_takes_its_children_off_first(stage, family):
    parent, children = family
    stage.power(children[0], "power on")
    stage.power(children[1], "power on")
    stage.power(parent, "power off")
    assert powers(stage, parent, *children) == ["power off"] * 3
    stage.power(parent, "power on")
    assert powers(stage, *children) == ["power off"] * 2


def test_who_has_a_power_supply_of_its_own_is_left_alone(stage, family):
    parent, (child, _) = family
    stage.patch(child, **{"driver_info.has_dedicated_power_supply": True})
    stage.power(child, "power on")
    assert powers(stage, parent, child) == [None, "power on"]
    stage.power(parent, "power off")
    assert powers(stage, parent, child) == ["power off", "power on"]


@pytest.mark.parametrize("target", ["soft power off", "power off"])
def test_a_soft_power_off_asks_no_child(stage, family, target):
    parent, (child, _) = family
    stage.power(child, "power on")
    stage.power(parent, target)
    assert powers(stage, child) == ["power on" if target == "soft power off" else "power off"]


def test_a_relative_that_is_locked_is_named(stage, family):
    parent, (child, other) = family
    with stage.site.acquire(parent):
        answer = stage.try_power(child, "power on")
    assert answer.status == 409
    assert f"its parent {parent}" in answer.said
    assert "is locked by host" in answer.said
    stage.site.set(child, power_state="power on")
    with stage.site.acquire(child):
        answer = stage.try_power(parent, "power off")
    assert answer.status == 409
    assert f"its child {child}" in answer.said
    assert powers(stage, other) == [None]


def test_a_child_that_may_not_be_switched_off_keeps_its_parent_on(stage, family):
    parent, (child, other) = family
    stage.power(child, "power on")
    stage.power(other, "power on")
    stage.patch(other, disable_power_off=True)
    answer = stage.try_power(parent, "power off")
    assert answer.status == 409
    assert f"disable_power_off is set on node {other}" in answer.said
    assert powers(stage, parent, child, other) == ["power on"] * 3


def test_a_relative_that_fails_is_named_and_nothing_else_changes(stage):
    parent = stage.enrol({"fail": ["power"]})
    child = stage.enrol(parent_node=parent)
    shown = stage.power(child, "power on")
    assert (shown["power_state"], shown["target_power_state"]) == (None, None)
    assert f"(power step power.power_on on other node {parent} of " in shown["last_error"]
    assert stage.told(child)[-1] == "power_set.error"
    assert stage.site.is_free(parent)


def test_a_node_that_is_its_own_parent_can_be_powered(stage):
    node = stage.enrol()
    stage.site.set(node, parent_node=node)  # as sites of earlier versions have it: now refused
    assert stage.power(node, "power on")["power_state"] == "power on"
    assert stage.power(node, "power off")["power_state"] == "power off"


WASH = {"interface": "deploy", "step": "wash"}  # needs an agent
VERBS = {  # of a child: where it begins, the arguments, and where it ends
    "provide": ("manageable", {}, "available"),
    "clean": ("manageable", {"clean_steps": [WASH]}, "manageable"),
    "inspect": ("manageable", {}, "manageable"),
    "active": ("available", {}, "active"),
    "rebuild": ("active", {}, "active"),
    "service": ("active", {"service_steps": [WASH]}, "active"),
    "rescue": ("active", {"rescue_password": "let-me-in-9cb1"}, "rescue"),
    "unrescue": ("rescue", {}, "active"),
    "deleted": ("active", {}, "available"),
}


def child_in(stage, state, parent, **values):
    before = "active" if state == "rescue" else state
    child = stage.bring_to(before, parent_node=parent, **values)
    if state == "rescue":
        stage.ask(child, "rescue", rescue_password="let-me-in-9cb1")
        stage.wait_for(child, "rescue")
    stage.wait_until_free(child)
    return child


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("is_dedicated", [False, True], ids=["", "dedicated"])
def test_a_flow_that_boots_a_child_switches_its_parent_on_first(make_stage, verb, is_dedicated):
    script = Script()
    script.add("clean", "wash", priority=0)
    script.add("service", "wash", priority=0)
    stage = make_stage(registry=script.registry())
    begins, arguments, ends = VERBS[verb]
    parent = stage.enrol()
    info = {"driver_info": {"has_dedicated_power_supply": True}} if is_dedicated else {}
    child = child_in(stage, begins, parent, **info)
    stage.power(parent, "power off")
    stage.ask(child, verb, **arguments)
    shown = stage.wait_for(child, ends)
    stage.wait_until_free(child)
    assert shown["last_error"] is None
    boots = not is_dedicated and verb != "inspect"  # that of fake hardware boots nothing
    assert powers(stage, parent) == ["power on" if boots else "power off"]


def test_a_flow_of_a_child_whose_parent_is_on_has_no_step_for_it(stage):
    parent = stage.enrol()
    stage.power(parent, "power on")
    child = stage.bring_to("active", parent_node=parent)
    assert "power.power_on" not in [name for name, _ in stage.steps(child)]


def test_a_parent_that_fails_to_go_on_fails_the_flow_of_its_child_by_name(stage):
    parent = stage.enrol({"fail": ["power"]})
    child = stage.enrol(parent_node=parent)
    stage.ask(child, "manage")
    stage.wait_for(child, "manageable")
    stage.ask(child, "provide")
    error = stage.wait_for(child, "clean failed")["last_error"]
    assert f"(clean step power.power_on on other node {parent} of " in error
    assert stage.site.is_free(parent)


def test_a_flow_waits_for_a_parent_that_is_locked(stage):
    parent = stage.enrol()
    child = stage.enrol(parent_node=parent)
    stage.ask(child, "manage")
    stage.wait_for(child, "manageable")
    with stage.site.acquire(parent, purpose="a long story"):
        stage.ask(child, "provide")
        wait_for(lambda: "a long story" in stage.why(child)["cause"], "the child to wait")
    shown = stage.wait_for(child, "available")
    assert shown["last_error"] is None
    assert powers(stage, parent) == ["power on"]


def test_children_that_are_provided_together_wait_for_each_other(stage):
    """Each flow needs the lock of the parent, while another one switches it on."""
    parent = stage.enrol({"delay": {"power": 0.05}})
    children = [stage.enrol(parent_node=parent) for _ in range(4)]
    for node in (parent, *children):
        stage.ask(node, "manage")
        stage.wait_for(node, "manageable")
    for node in (parent, *children):
        stage.ask(node, "provide")
    for node in (parent, *children):
        assert stage.wait_for(node, "available")["last_error"] is None


def test_a_flow_goes_on_where_another_one_has_switched_the_parent_on(stage):
    parent = stage.enrol()
    child = stage.enrol(parent_node=parent)
    stage.ask(child, "manage")
    stage.wait_for(child, "manageable")
    with stage.site.acquire(parent, purpose="a long story"):
        stage.ask(child, "provide")
        wait_for(lambda: "a long story" in stage.why(child)["cause"], "the child to wait")
        stage.site.set(parent, power_state="power on")
        assert stage.wait_for(child, "available")["last_error"] is None
