"""Clean: an operator's own list of steps on a managed node."""

from __future__ import annotations

import pytest

from bloomery.outcome import WaitForCall
from tests.kit.machines.scripted import Script, failing, in_turn

LOG = {"interface": "vendor", "step": "log_passthrough"}
HOLD = {"interface": "deploy", "step": "hold"}
WASH = {"interface": "deploy", "step": "wash"}
CALL = WaitForCall(reason="until the agent calls")


@pytest.fixture
def node(stage):
    return stage.bring_to("manageable")


@pytest.fixture
def script():
    return Script(has_agents=True)


@pytest.fixture
def scripted(make_stage, script):
    return make_stage(registry=script.registry())


def clean(stage, node, *steps, state, **along):
    stage.ask(node, "clean", clean_steps=list(steps), **along)
    return stage.wait_for(node, state)


def test_good_step_leads_back_to_manageable(stage, node):
    shown = clean(stage, node, LOG, state="manageable")
    assert stage.standing(node) == ("manageable", None)
    assert (shown["last_error"], shown["clean_step"]) == (None, {})
    assert stage.moves(node)[-2:] == ["manageable -> cleaning", "cleaning -> manageable"]
    targets = [told["target_provision_state"] for told in stage.facts(node, "provision_set")]
    assert targets[-2:] == ["manageable", None]
    assert stage.steps(node, "clean") == [
        ("deploy.prepare_cleaning", "done"), ("vendor.log_passthrough", "done"),
        ("deploy.tear_down_cleaning", "done"),
    ]  # fmt: skip


def test_unknown_step_is_taken_and_then_fails_without_harm(stage, node):
    shown = clean(stage, node, WASH, state="clean failed")
    assert stage.standing(node) == ("clean failed", "manageable")
    assert stage.care(node) == (False, None)
    assert "offers deploy.wash" in shown["last_error"]
    assert stage.steps(node, "clean") == [("deploy.refuse", "failed")]
    stage.ask(node, "manage")
    assert stage.show(node)["last_error"] == shown["last_error"]


@pytest.mark.parametrize("args", [{"nonsense": 1}, {"nonsense": 1, "more": 2}])
def test_argument_that_a_step_does_not_know_is_named(stage, node, args):
    shown = clean(stage, node, LOG | {"args": args}, state="clean failed")
    assert "unexpected arguments" in shown["last_error"]
    assert "nonsense" in shown["last_error"]
    assert stage.care(node) == (False, None)


def test_argument_that_a_step_lacks_is_named(scripted, script):
    script.add("clean", "wash", argsinfo={"soap": {"description": "which", "required": True}})
    node = scripted.bring_to("manageable")
    shown = clean(scripted, node, WASH, state="clean failed")
    assert "missing arguments: soap" in shown["last_error"]
    assert script.calls.count("wash") == 0


def test_steps_run_in_the_operators_order(scripted, script):
    for name in ("wash", "rinse", "dry"):
        script.add("clean", name)
    node = scripted.bring_to("manageable")
    steps = [{"interface": "deploy", "step": name} for name in ("dry", "wash", "rinse")]
    clean(scripted, node, *steps, state="manageable")
    assert [c for c in script.calls if c in {"wash", "rinse", "dry"}] == ["dry", "wash", "rinse"]


def test_held_node_goes_on_when_unheld_and_the_agent_calls(stage, node):
    shown = clean(stage, node, HOLD, LOG, state="clean hold")
    assert stage.standing(node) == ("clean hold", "manageable")
    assert shown["clean_step"]["step"] == "hold"
    stage.ask(node, "unhold")
    assert stage.standing(node) == ("clean wait", "manageable")
    stage.let_agents_call(node, "manageable")
    assert stage.standing(node) == ("manageable", None)
    assert stage.moves(node)[-5:] == [
        "manageable -> cleaning", "cleaning -> clean hold", "clean hold -> clean wait",
        "clean wait -> cleaning", "cleaning -> manageable",
    ]  # fmt: skip
    assert stage.steps(node, "clean") == [
        ("deploy.prepare_cleaning", "done"), ("deploy.hold", "done"),
        ("vendor.log_passthrough", "done"), ("deploy.tear_down_cleaning", "done"),
    ]  # fmt: skip


def test_node_in_maintenance_is_not_cleaned(stage, node):
    stage.site.set(node, maintenance=True)
    body = {"target": "clean", "clean_steps": [LOG]}
    answer = stage.api.put(f"/v1/nodes/{node}/states/provision", body)
    assert (answer.status, "maintenance" in answer.said) == (400, True)
    assert stage.standing(node) == ("manageable", None)


def test_held_node_is_left_alone_by_agents_and_by_time(stage, node):
    clean(stage, node, HOLD, state="clean hold")
    stage.let_agents_call(node, "clean hold")
    stage.let_time_pass(node)
    assert stage.standing(node) == ("clean hold", "manageable")


def test_abort_in_hold_ends_in_clean_failed_without_maintenance(stage, node):
    clean(stage, node, HOLD, LOG, state="clean hold")
    stage.ask(node, "abort")
    shown = stage.wait_for(node, "clean failed")
    assert stage.standing(node) == ("clean failed", "manageable")
    assert stage.care(node) == (False, None)
    assert "aborted on request in clean hold" in shown["last_error"]
    assert shown["clean_step"] == {}
    assert stage.moves(node)[-1] == "clean hold -> clean failed"
    assert stage.steps(node, "clean") == [
        ("deploy.prepare_cleaning", "done"), ("deploy.hold", "failed"),
        ("vendor.log_passthrough", "skipped"), ("deploy.tear_down_cleaning", "skipped"),
    ]  # fmt: skip


def test_abort_in_wait_of_an_abortable_step_is_at_once(scripted, script):
    script.add("clean", "wash", in_turn(CALL), abortable=True)
    node = scripted.bring_to("manageable")
    clean(scripted, node, WASH, state="clean wait")
    scripted.ask(node, "abort")
    shown = scripted.wait_for(node, "clean failed")
    assert scripted.standing(node) == ("clean failed", "manageable")
    assert scripted.care(node) == (False, None)
    assert "aborted on request in clean wait at step deploy.wash" in shown["last_error"]
    assert script.calls.count("tear_down_cleaning") == 1


@pytest.mark.parametrize("then", ["next", "same"])
def test_step_that_is_not_abortable_is_the_last_one(scripted, script, then):
    called = WaitForCall(reason="until the agent calls", then=then)
    script.add("clean", "wash", in_turn(called, None))
    script.add("clean", "dry")
    node = scripted.bring_to("manageable")
    clean(scripted, node, WASH, {"interface": "deploy", "step": "dry"}, state="clean wait")
    scripted.ask(node, "abort")
    assert scripted.standing(node) == ("clean wait", "manageable")
    assert scripted.show(node)["clean_step"]["abort_after"] is True
    shown = scripted.let_agents_call(node, "clean failed")
    assert scripted.standing(node) == ("clean failed", "manageable")
    assert scripted.care(node) == (False, None), "nothing broke"
    assert "aborted on request after step deploy.wash" in shown["last_error"]
    assert "dry" not in script.calls
    assert shown["clean_step"] == {}


def test_failure_in_a_step_sets_maintenance_and_fault(scripted, script):
    script.add("clean", "wash", failing(RuntimeError("no water")))
    node = scripted.bring_to("manageable")
    shown = clean(scripted, node, WASH, state="clean failed")
    assert scripted.standing(node) == ("clean failed", "manageable")
    assert scripted.care(node) == (True, "clean failure")
    assert "no water" in shown["last_error"]
    assert shown["maintenance_reason"] == shown["last_error"]
    scripted.ask(node, "manage")
    assert scripted.standing(node) == ("manageable", None)
    assert scripted.show(node)["last_error"] == shown["last_error"]


def test_retired_node_ends_manageable_after_automated_cleaning(stage):
    node = stage.bring_to("active")
    stage.patch(node, retired=True)
    stage.ask(node, "deleted")
    stage.wait_for(node, "manageable")


def test_retired_node_may_be_cleaned_by_an_operator(stage, node):
    stage.patch(node, retired=True)
    clean(stage, node, LOG, state="manageable")


def test_without_steps_it_is_refused(stage, node):
    assert stage.try_to(node, "clean").status == 400
    assert stage.try_to(node, "clean", clean_steps=[]).status == 400
    assert stage.standing(node) == ("manageable", None)


@pytest.mark.parametrize(("seconds", "entries"), [(0, 0), (0.01, 0), (5, 1)])
def test_wait_is_cut_to_what_the_operator_allows_and_the_history_says_so(
    make_stage, seconds, entries
):
    stage = make_stage(max_conductor_wait_step_seconds=1 if seconds < 1 else 0)
    node = stage.bring_to("manageable")
    wait = {"interface": "deploy", "step": "wait", "args": {"seconds": seconds}}
    clean(stage, node, wait, state="manageable")
    history = stage.api.get(f"/v1/nodes/{node}/history?detail=true").json["history"]
    cut = [row["event"] for row in history if "max_conductor_wait_step_seconds" in row["event"]]
    assert len(cut) == entries


@pytest.mark.parametrize("seconds", ["soon", -1, True, [1], {}, 1e300])
def test_wait_of_no_length_fails_by_name(stage, node, seconds):
    wait = {"interface": "deploy", "step": "wait", "args": {"seconds": seconds}}
    shown = clean(stage, node, wait, state="clean failed")
    assert "seconds of a wait step takes a number" in shown["last_error"]
