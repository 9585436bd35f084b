"""Rescue: an active node runs a ramdisk that its user can log in to, and then its own system."""

from __future__ import annotations

import json

import pytest

from bloomery.db.tables import NODES

PASSWORD = "let-me-in-9cb1"
NEVER_CALLS = {"wait": {"rescue.rescue": -1}}


@pytest.fixture
def node(stage):
    return stage.bring_to("active")


def rescue(stage, node, state):
    stage.ask(node, "rescue", rescue_password=PASSWORD)
    return stage.wait_for(node, state)


def stored_info(stage, node):
    [row] = stage.site.rows(NODES, uuid=node)
    assert PASSWORD not in str(row)
    return json.loads(row["instance_info"])


def test_rescued_node_comes_back(stage, node):
    shown = rescue(stage, node, "rescue")
    assert stage.standing(node) == ("rescue", None)
    assert shown["instance_info"]["rescue_password"] == "******"
    assert "$sealed" in stored_info(stage, node)["rescue_password"]
    stage.ask(node, "unrescue")
    shown = stage.wait_for(node, "active")
    assert stage.standing(node) == ("active", None)
    assert "rescue_password" not in shown["instance_info"]
    assert stage.moves(node)[-4:] == [
        "active -> rescuing", "rescuing -> rescue", "rescue -> unrescuing", "unrescuing -> active",
    ]  # fmt: skip
    assert stage.steps(node, "rescue") == [("rescue.rescue", "done")]
    assert stage.steps(node, "unrescue") == [("rescue.unrescue", "done")]


def test_failing_rescue_forgets_the_password(stage, node):
    stage.behave(node, fail=["rescue.rescue"])
    shown = rescue(stage, node, "rescue failed")
    assert stage.standing(node) == ("rescue failed", "rescue")
    assert "was told to fail" in shown["last_error"]
    assert "rescue_password" not in stored_info(stage, node)
    assert stage.care(node) == (False, None)
    stage.behave(node)
    assert rescue(stage, node, "rescue")["last_error"] is None


def test_failing_unrescue_may_be_repeated(stage, node):
    stage.behave(node, fail=["rescue.unrescue"])
    rescue(stage, node, "rescue")
    stage.ask(node, "unrescue")
    shown = stage.wait_for(node, "unrescue failed")
    assert stage.standing(node) == ("unrescue failed", "active")
    assert "was told to fail" in shown["last_error"]
    stage.behave(node)
    stage.ask(node, "unrescue")
    assert stage.wait_for(node, "active")["last_error"] is None


def test_agent_that_calls_ends_the_wait(stage, node):
    stage.site.service.periodics.stop()  # it would let the agent call before we look
    stage.behave(node, wait={"rescue.rescue": 0.01})
    rescue(stage, node, "rescue wait")
    assert stage.standing(node) == ("rescue wait", "rescue")
    stage.let_agents_call(node, "rescue")


def test_abort_while_it_waits_forgets_the_password_and_keeps_the_instance(stage, node):
    kept = {"root_uuid_or_disk_id": "0xabc", "is_whole_disk_image": True}
    stage.behave(node, **NEVER_CALLS)
    rescue(stage, node, "rescue wait")
    info = stage.site.node(node).driver_internal_info | kept
    stage.site.set(node, driver_internal_info=json.dumps(info))
    stage.ask(node, "abort")
    shown = stage.wait_for(node, "rescue failed")
    assert stage.standing(node) == ("rescue failed", "rescue")
    assert "aborted on request" in shown["last_error"]
    assert "rescue_password" not in stored_info(stage, node)
    assert stage.care(node) == (False, None)
    assert kept.items() <= shown["driver_internal_info"].items()


def test_abort_that_cannot_tidy_up_needs_an_operator(stage, node):
    stage.behave(node, fail=["rescue.clean_up"], **NEVER_CALLS)
    rescue(stage, node, "rescue wait")
    stage.ask(node, "abort")
    shown = stage.wait_for(node, "rescue failed")
    assert stage.care(node) == (True, "rescue abort failure")
    assert "rescue.clean_up" in shown["maintenance_reason"]


def test_ramdisk_that_never_calls_is_switched_off(stage, node):
    stage.power(node, "power on")
    stage.behave(node, **NEVER_CALLS)
    rescue(stage, node, "rescue wait")
    stage.let_time_pass(node)
    shown = stage.show(node)
    assert stage.standing(node) == ("rescue failed", "rescue")
    assert "rescue_callback_timeout" in shown["last_error"]
    assert shown["power_state"] == "power off"
    assert "rescue_password" not in stored_info(stage, node)


@pytest.mark.parametrize("verb", ["rescue", "unrescue"])
def test_maintenance_refuses(stage, node, verb):
    along = {"rescue_password": PASSWORD} if verb == "rescue" else {}
    if verb == "unrescue":
        rescue(stage, node, "rescue")
    stage.patch(node, maintenance=True)
    before = stage.show(node)
    answer = stage.try_to(node, verb, **along)
    assert answer.status == 400
    assert "maintenance" in answer.said
    assert stage.show(node) == before


def test_driver_that_cannot_be_validated_is_told_at_once(stage, node):
    stage.misconfigure(node)
    answer = stage.try_to(node, "rescue", rescue_password=PASSWORD)
    assert answer.status == 500
    assert "driver_info/fake" in answer.said
    assert stage.standing(node) == ("active", None)
    assert "rescue_password" not in stored_info(stage, node)
