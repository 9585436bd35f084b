"""Service: work on an active node, on an operator's order."""

from __future__ import annotations

import pytest

from bloomery.outcome import WaitForCall
from tests.kit.machines.scripted import Script, in_turn

LOG = {"interface": "vendor", "step": "log_passthrough"}
WAIT = {"interface": "vendor", "step": "trigger_servicewait"}
HOLD = {"interface": "deploy", "step": "hold"}
WASH = {"interface": "deploy", "step": "wash"}


@pytest.fixture
def node(stage):
    return stage.bring_to("active")


def service(stage, node, *steps, state, **along):
    stage.ask(node, "service", service_steps=list(steps), **along)
    return stage.wait_for(node, state)


def test_good_step_leads_back_to_active(stage, node):
    shown = service(stage, node, LOG, state="active")
    assert stage.standing(node) == ("active", None)
    assert (shown["last_error"], shown["service_step"]) == (None, {})
    assert stage.moves(node)[-2:] == ["active -> servicing", "servicing -> active"]
    assert stage.steps(node, "service") == [
        ("deploy.prepare_service", "done"), ("vendor.log_passthrough", "done"),
        ("deploy.tear_down_service", "done"),
    ]  # fmt: skip


def test_ramdisk_is_left_out_on_request(stage, node):
    service(stage, node, LOG, state="active", disable_ramdisk=True)
    assert stage.steps(node, "service") == [("vendor.log_passthrough", "done")]


def test_unknown_step_fails_at_its_turn_and_needs_an_operator(stage, node):
    shown = service(stage, node, LOG, WASH, state="service failed")
    assert stage.standing(node) == ("service failed", "active")
    assert stage.care(node) == (True, "service failure")
    assert "deploy.wash" in shown["last_error"]
    assert shown["service_step"] == {}
    assert stage.steps(node, "service")[1:] == [
        ("vendor.log_passthrough", "done"), ("deploy.wash", "failed"),
        ("deploy.tear_down_service", "skipped"),
    ]  # fmt: skip


def test_failed_service_is_left_after_maintenance_only(stage, node):
    service(stage, node, WASH, state="service failed")
    answer = stage.try_to(node, "abort")
    assert answer.status == 409
    assert f"baremetal node maintenance unset {node} (DELETE /v1/" in answer.said
    assert stage.try_to(node, "service", service_steps=[LOG]).status == 400
    assert stage.try_to(node, "rescue", rescue_password="s3cr3t").status == 400
    assert stage.api.delete(f"/v1/nodes/{node}/maintenance").status == 202
    assert stage.care(node) == (False, None)
    stage.ask(node, "abort")
    stage.wait_for(node, "active")
    assert stage.standing(node) == ("active", None)
    assert stage.moves(node)[-1] == "service failed -> active"


def test_failed_service_may_be_repeated(stage, node):
    service(stage, node, WASH, state="service failed")
    stage.api.delete(f"/v1/nodes/{node}/maintenance")
    assert service(stage, node, LOG, state="active")["last_error"] is None


def test_failed_service_may_end_the_instance_even_in_maintenance(stage, node):
    service(stage, node, WASH, state="service failed")
    stage.ask(node, "deleted")
    shown = stage.wait_for(node, "available")
    assert stage.care(node) == (True, "service failure")
    assert shown["service_step"] == {}


def test_held_node_goes_on_by_itself_when_unheld(stage, node):
    service(stage, node, HOLD, LOG, state="service hold")
    assert stage.standing(node) == ("service hold", "active")
    stage.ask(node, "unhold")
    stage.wait_for(node, "active")
    assert stage.moves(node)[-5:] == [
        "active -> servicing", "servicing -> service hold", "service hold -> service wait",
        "service wait -> servicing", "servicing -> active",
    ]  # fmt: skip
    assert [state for _, state in stage.steps(node, "service")] == ["done"] * 4


def test_hold_as_the_last_word_ends_well(stage, node):
    service(stage, node, HOLD, state="service hold", disable_ramdisk=True)
    stage.ask(node, "unhold")
    stage.wait_for(node, "active")
    assert stage.steps(node, "service") == [("deploy.hold", "done")]


def test_other_steps_take_the_place_of_those_that_were_held(stage, node):
    service(stage, node, HOLD, WASH, state="service hold")
    service(stage, node, LOG, state="active")
    assert stage.steps(node, "service")[1:4] == [
        ("deploy.hold", "skipped"), ("deploy.wash", "skipped"),
        ("deploy.tear_down_service", "skipped"),
    ]  # fmt: skip
    assert stage.why(node)["step"] is None


def test_abort_in_hold_leads_back_to_active(stage, node):
    service(stage, node, HOLD, LOG, state="service hold")
    stage.ask(node, "abort")
    shown = stage.wait_for(node, "active")
    assert stage.standing(node) == ("active", None)
    assert stage.care(node) == (False, None)
    assert "aborted on request in service hold" in shown["last_error"]
    assert shown["service_step"] == {}
    assert stage.moves(node)[-2:] == ["service hold -> service failed", "service failed -> active"]


def test_abort_in_wait_leads_back_to_active(make_stage):
    script = Script(has_agents=True)
    script.add("service", "wash", in_turn(WaitForCall(reason="until it calls")), abortable=True)
    stage = make_stage(registry=script.registry())
    node = stage.bring_to("active")
    service(stage, node, WASH, state="service wait")
    stage.ask(node, "abort")
    stage.wait_for(node, "active")
    assert stage.moves(node)[-2:] == ["service wait -> service failed", "service failed -> active"]
    assert script.calls.count("tear_down_service") == 1
    assert stage.care(node) == (False, None)


def test_step_that_is_not_abortable_is_the_last_one(stage, node):
    stage.behave(node, wait={"vendor.trigger_servicewait": 0})
    service(stage, node, WAIT, LOG, state="service wait")
    stage.ask(node, "abort")
    assert stage.standing(node) == ("service wait", "active")
    assert stage.show(node)["service_step"]["abort_after"] is True
    shown = stage.let_agents_call(node, "service failed")
    assert "aborted on request after step vendor.trigger_servicewait" in shown["last_error"]
    assert stage.care(node) == (False, None)


@pytest.mark.parametrize(
    ("step", "args", "sentence"),
    [
        ("bios.apply_configuration", {}, "missing arguments: settings"),
        ("bios.apply_configuration", {"settings": [], "x": 1}, "unexpected arguments: x"),
        ("bios.factory_reset", {"x": 1}, "unexpected arguments: x"),
        ("power.power_on", {"x": 1}, "unexpected arguments: x"),
    ],
)
def test_arguments_are_looked_at_before_the_step_runs(stage, node, step, args, sentence):
    interface, name = step.split(".")
    order = {"interface": interface, "step": name, "args": args}
    shown = service(stage, node, order, state="service failed")
    assert f"step {step} has {sentence}" in shown["last_error"]
    assert stage.care(node) == (True, "service failure")


def test_wait_that_nobody_ends_goes_on(stage, node):
    service(stage, node, WAIT, LOG, state="service wait")
    stage.let_agents_call(node, "service wait")
    assert stage.standing(node) == ("service wait", "active")


def test_agent_that_is_told_to_carries_on_what_waits(stage, node):
    stage.behave(node, wait={"vendor.trigger_servicewait": 0})
    service(stage, node, WAIT, LOG, state="service wait")
    stage.let_agents_call(node, "active")
    assert [state for _, state in stage.steps(node, "service")] == ["done"] * 4


def test_agent_that_never_calls_is_not_waited_for_for_ever(stage, node):
    stage.behave(node, wait={"vendor": -1})
    service(stage, node, WAIT, state="service wait")
    stage.let_time_pass(node)
    assert stage.standing(node) == ("service failed", "active")
    assert stage.care(node) == (True, "service failure"), "a step was running"
    assert "service_callback_timeout" in stage.show(node)["last_error"]


def test_maintenance_refuses(stage, node):
    stage.patch(node, maintenance=True)
    answer = stage.try_to(node, "service", service_steps=[LOG])
    assert answer.status == 400
    assert "maintenance" in answer.said


@pytest.mark.parametrize(("wanted", "power"), [(True, "power off"), (False, "power on")])
def test_failed_node_is_switched_off_where_the_operator_says_so(make_stage, wanted, power):
    stage = make_stage(poweroff_in_servicefail=wanted)
    node = stage.bring_to("active")
    stage.power(node, "power on")
    assert service(stage, node, WASH, state="service failed")["power_state"] == power
