"""Undeploy: the instance is taken away, and the node is cleaned for the next one."""

from __future__ import annotations

import pytest

NEVER_CALLS = {"wait": {"deploy.deploy": -1}}


def test_active_node_passes_through_deleting_and_cleaning(stage):
    node = stage.bring_to("active")
    stage.patch(node, **{"instance_info.hostname": "web-1"})
    stage.ask(node, "deleted")
    shown = stage.wait_for(node, "available")
    assert stage.standing(node) == ("available", None)
    assert (shown["instance_info"], shown["instance_uuid"], shown["last_error"]) == ({}, None, None)
    assert stage.moves(node)[-3:] == [
        "active -> deleting", "deleting -> cleaning", "cleaning -> available",
    ]  # fmt: skip
    assert stage.told(node)[-3:] == [
        "provision_set.start", "provision_set.success", "provision_set.end",
    ]  # fmt: skip
    assert stage.steps(node, "undeploy") == [("deploy.tear_down", "done")]
    assert stage.steps(node, "clean")[-1] == ("deploy.tear_down_cleaning", "done")


def test_instance_of_a_node_is_forgotten(stage):
    node = stage.bring_to("available")
    instance = "11111111-2222-3333-4444-555555555555"
    stage.patch(node, instance_uuid=instance, instance_name="web")
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    stage.ask(node, "undeploy")
    shown = stage.wait_for(node, "available")
    assert (shown["instance_uuid"], shown["instance_name"]) == (None, None)


def test_failed_deployment_is_given_up(stage):
    node = stage.bring_to("available", {"fail": ["deploy.deploy"]})
    stage.ask(node, "active")
    stage.wait_for(node, "deploy failed")
    stage.ask(node, "deleted")
    assert stage.wait_for(node, "available")["last_error"] is None


def test_node_that_waits_for_its_agent_is_given_up_with_its_flow(stage):
    node = stage.bring_to("available", NEVER_CALLS)
    stage.ask(node, "active")
    stage.wait_for(node, "wait call-back")
    stage.ask(node, "deleted")
    stage.wait_for(node, "available")
    assert stage.steps(node, "deploy") == [("deploy.prepare", "done"), ("deploy.deploy", "skipped")]
    assert stage.why(node)["step"] is None, "nobody waits for the agent any more"


def test_agent_of_a_former_deployment_does_not_disturb_the_next_one(stage):
    node = stage.bring_to("available", NEVER_CALLS)
    stage.ask(node, "active")
    stage.wait_for(node, "wait call-back")
    stage.ask(node, "deleted")
    stage.wait_for(node, "available")
    stage.site.service.periodics.stop()  # it would let the agent call before we look
    stage.behave(node, wait={"deploy.deploy": 0.01})
    stage.ask(node, "active")
    stage.wait_for(node, "wait call-back")
    stage.let_agents_call(node, "active")
    assert stage.steps(node, "deploy")[2:] == [
        ("deploy.prepare", "done"),
        ("deploy.deploy", "done"),
    ]


def test_failing_tear_down_ends_in_error_and_may_be_repeated(stage):
    node = stage.bring_to("active")
    stage.patch(node, **{"instance_info.hostname": "web-1"})
    stage.behave(node, fail=["deploy.tear_down"])
    stage.ask(node, "deleted")
    shown = stage.wait_for(node, "error")
    assert stage.standing(node) == ("error", None)
    assert "was told to fail" in shown["last_error"]
    assert shown["instance_info"] == {}, "what was known of the instance goes all the same"
    assert stage.care(node) == (False, None)
    assert stage.moves(node)[-1] == "deleting -> error"
    stage.behave(node)
    stage.ask(node, "deleted")
    assert stage.wait_for(node, "available")["last_error"] is None
    assert stage.moves(node)[-3] == "error -> deleting"


def test_maintenance_does_not_keep_an_instance_alive(stage):
    node = stage.bring_to("active")
    stage.api.put(f"/v1/nodes/{node}/maintenance", {"reason": "smoke"})
    stage.ask(node, "deleted")
    shown = stage.wait_for(node, "available")
    assert (shown["maintenance"], shown["maintenance_reason"]) == (True, "smoke")
    assert shown["last_error"] is None


def test_limit_on_tear_downs_is_told(make_stage):
    stage = make_stage(max_concurrent_clean=1)
    busy = stage.bring_to("manageable", {"wait": {"vendor.log_passthrough": -1}})
    node = stage.bring_to("active")
    stage.ask(busy, "provide")
    stage.wait_for(busy, "clean wait")
    assert stage.try_to(node, "deleted").status == 503
    assert stage.standing(node) == ("active", None)


@pytest.mark.parametrize("state", ["rescue", "rescue failed", "unrescue failed"])
def test_rescue_is_taken_away_first(make_stage, state):
    stage = make_stage()
    node = stage.bring_to("active")
    stage.behave(node, fail={
        "rescue": [], "rescue failed": ["rescue.rescue"], "unrescue failed": ["rescue.unrescue"],
    }[state])  # fmt: skip
    stage.ask(node, "rescue", rescue_password="s3cr3t-enough")
    stage.wait_for(node, "rescue failed" if state == "rescue failed" else "rescue")
    if state == "unrescue failed":
        stage.ask(node, "unrescue")
        stage.wait_for(node, "unrescue failed")
    stage.ask(node, "deleted")
    assert stage.wait_for(node, "available")["instance_info"] == {}
