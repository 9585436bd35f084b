"""Adopt: a machine that runs its user's system already becomes active untouched."""

from __future__ import annotations

import pytest


@pytest.fixture
def node(stage):
    return stage.bring_to("manageable")


def test_adopted_node_is_active_and_was_not_touched(stage, node):
    stage.power(node, "power on")
    stage.ask(node, "adopt")
    shown = stage.wait_for(node, "active")
    assert stage.standing(node) == ("active", None)
    assert (shown["last_error"], shown["power_state"]) == (None, "power on")
    assert stage.moves(node)[-2:] == ["manageable -> adopting", "adopting -> active"]
    assert stage.steps(node, "adopt") == [("deploy.adopt", "done")]
    assert stage.site.node(node).conductor_affinity == stage.site.runtime.host


def test_failing_adoption_may_be_repeated(stage, node):
    stage.power(node, "power on")
    stage.behave(node, fail=["deploy.take_over"])
    stage.ask(node, "adopt")
    shown = stage.wait_for(node, "adopt failed")
    assert stage.standing(node) == ("adopt failed", "active")
    assert "deploy.take_over was told to fail" in shown["last_error"]
    assert shown["power_state"] is None
    assert stage.care(node) == (False, None)
    stage.behave(node)
    stage.ask(node, "adopt")
    assert stage.wait_for(node, "active")["last_error"] is None
    assert stage.moves(node)[-2:] == ["adopt failed -> adopting", "adopting -> active"]


def test_failed_adoption_may_be_left_and_the_node_deleted(stage, node):
    stage.behave(node, fail=["deploy.take_over"])
    stage.ask(node, "adopt")
    stage.wait_for(node, "adopt failed")
    stage.ask(node, "manage")
    assert stage.standing(node) == ("manageable", None)
    assert stage.api.delete(f"/v1/nodes/{node}").status == 204


def test_silent_bmc_fails_the_adoption(stage, node):
    stage.behave(node, fail=["power"])
    stage.ask(node, "adopt")
    assert "power.get_power_state" in stage.wait_for(node, "adopt failed")["last_error"]
