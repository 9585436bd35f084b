"""Manage: a node is enrolled, and its BMC is asked whether it is there."""

from __future__ import annotations

from bloomery.drivers.fake import behaviour


def test_enrolled_node_becomes_manageable(stage):
    node = stage.enrol()
    assert stage.standing(node) == ("enroll", None)
    request = stage.ask(node, "manage")
    shown = stage.wait_for(node, "manageable")
    assert stage.standing(node) == ("manageable", None)
    assert shown["last_error"] is None
    assert shown["power_state"] is None, "fake hardware cannot tell until it was asked for power"
    assert shown["reservation"] is None
    assert stage.moves(node) == ["enroll -> verifying", "verifying -> manageable"]
    assert stage.told(node) == [
        "create.start", "create.end", "provision_set.start", "provision_set.end",
    ]  # fmt: skip
    assert stage.steps(node) == [("power.check_power", "done")]
    assert {row["request_id"] for row in stage.site.history(node)} == {request}


def test_failing_bmc_leads_back_to_enroll_with_the_reason(stage):
    node = stage.enrol({"fail": ["power"]})
    stage.ask(node, "manage")
    shown = stage.wait_for(node, "enroll")
    assert stage.standing(node) == ("enroll", None)
    assert "was told to fail" in shown["last_error"]
    assert shown["last_error"] in stage.errors(node)
    assert stage.care(node) == (False, None)
    assert stage.told(node)[-2:] == ["provision_set.start", "provision_set.error"]
    assert stage.steps(node) == [("power.check_power", "failed")]


def test_second_try_clears_the_error_and_gets_there(stage):
    node = stage.enrol({"fail": ["power"]})
    stage.ask(node, "manage")
    stage.wait_for(node, "enroll")
    stage.behave(node)
    stage.ask(node, "manage")
    assert stage.wait_for(node, "manageable")["last_error"] is None
    assert len(stage.errors(node)) == 1, "the history keeps what last_error forgot"


def test_flapping_bmc_fails_every_other_time(stage):
    node = stage.enrol({"flap": {"power": 2}})
    stage.power(node, "power on")
    stage.ask(node, "manage")
    assert "was told to fail" in stage.wait_for(node, "enroll")["last_error"]
    stage.ask(node, "manage")
    assert stage.wait_for(node, "manageable")["last_error"] is None


def test_silent_bmc_is_told_after_its_time_budget(stage, monkeypatch):
    monkeypatch.setattr(behaviour, "_SILENCE_S", 0.05)
    node = stage.enrol({"silent": ["power"]})
    stage.ask(node, "manage")
    shown = stage.wait_for(node, "enroll")
    assert "cannot reach the BMC" in shown["last_error"]
    assert "no answer" in shown["last_error"]


def test_behaviour_that_nobody_could_follow_is_refused_by_name(stage):
    node = stage.enrol()
    stage.misconfigure(node)
    stage.ask(node, "manage")
    assert "driver_info/fake" in stage.wait_for(node, "enroll")["last_error"]


def test_manage_from_available_needs_no_worker(stage):
    node = stage.bring_to("available")
    stage.ask(node, "manage")
    assert stage.standing(node) == ("manageable", None)
    assert stage.moves(node)[-1] == "available -> manageable"
    assert stage.told(node)[-1] == "provision_set.success"
