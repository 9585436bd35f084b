"""Inspect: find out what a managed node is made of."""

from __future__ import annotations

import pytest

NEVER_CALLS = {"wait": {"inspect.inspect_hardware": -1}}


@pytest.fixture
def node(stage):
    return stage.bring_to("manageable")


def test_inspected_node_is_manageable_again(stage, node):
    stage.ask(node, "inspect")
    shown = stage.wait_for(node, "manageable")
    assert stage.standing(node) == ("manageable", None)
    assert shown["last_error"] is None
    assert shown["inspection_finished_at"] is not None
    assert shown["inspection_started_at"] is None
    assert stage.moves(node)[-2:] == ["manageable -> inspecting", "inspecting -> manageable"]
    assert stage.steps(node, "inspect") == [("inspect.inspect_hardware", "done")]


def test_failing_inspection_may_be_repeated_or_left(stage, node):
    stage.behave(node, fail=["inspect"])
    stage.ask(node, "inspect")
    shown = stage.wait_for(node, "inspect failed")
    assert stage.standing(node) == ("inspect failed", "manageable")
    assert "was told to fail" in shown["last_error"]
    assert shown["inspection_started_at"] is None
    assert stage.care(node) == (False, None)
    stage.behave(node)
    stage.ask(node, "inspect")
    assert stage.wait_for(node, "manageable")["last_error"] is None


def test_manage_leaves_a_failed_inspection(stage, node):
    stage.behave(node, fail=["inspect"])
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect failed")
    stage.ask(node, "manage")
    assert stage.standing(node) == ("manageable", None)


def test_behaviour_that_nobody_could_follow_is_refused_at_once(stage, node):
    stage.misconfigure(node)
    answer = stage.try_to(node, "inspect")
    assert answer.status == 400
    assert stage.standing(node) == ("manageable", None)


def test_agent_that_calls_ends_the_wait(stage, node):
    stage.site.service.periodics.stop()  # it would let the agent call before we look
    stage.behave(node, wait={"inspect.inspect_hardware": 0.01})
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    assert stage.standing(node) == ("inspect wait", "manageable")
    stage.let_agents_call(node, "manageable")
    assert stage.steps(node, "inspect") == [("inspect.inspect_hardware", "done")]


def test_abort_while_it_waits(stage, node):
    stage.behave(node, **NEVER_CALLS)
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    stage.ask(node, "abort")
    shown = stage.wait_for(node, "inspect failed")
    assert "aborted on request" in shown["last_error"]
    assert shown["inspection_started_at"] is None
    assert stage.steps(node, "inspect") == [("inspect.inspect_hardware", "failed")]


def test_abort_that_cannot_tidy_up_ends_all_the_same(stage, node):
    stage.behave(node, fail=["inspect.abort"], **NEVER_CALLS)
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    stage.ask(node, "abort")
    assert "aborted on request" in stage.wait_for(node, "inspect failed")["last_error"]


def test_agent_that_never_calls_is_not_waited_for_for_ever(stage, node):
    stage.behave(node, **NEVER_CALLS)
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    stage.let_time_pass(node)
    assert stage.standing(node) == ("inspect failed", "manageable")
    assert "inspect_wait_timeout" in stage.show(node)["last_error"]
