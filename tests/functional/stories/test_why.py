"""Why: one question that tells an operator where a node stands, and what to do."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from bloomery.conductor.periodics import power_sync
from bloomery.conductor.states import VERB_LIST, State, verbs_before
from tests.kit.machines.bmc import UNREACHABLE, FakeBmc
from tests.kit.waiting import wait_for

PASSWORD = "hunter2-why"
SECRET = {"driver_info": {"redfish_password": PASSWORD, "redfish_address": "https://bmc.test"}}
HOLD = {"interface": "deploy", "step": "hold", "args": {}}


@pytest.fixture
def bmc():
    return FakeBmc()


@pytest.fixture
def watched(make_stage, bmc):
    return make_stage(registry=bmc.registry(), power_state_sync_max_retries=0)


def why(stage, node):
    told = stage.why(node)
    assert PASSWORD not in json.dumps(told)
    shown = stage.show(node)
    assert told["provision_state"] == shown["provision_state"]
    assert told["power_state"] == shown["power_state"]
    return told


def test_node_that_is_new(stage):
    told = why(stage, stage.enrol(**SECRET))
    assert told["next_action"] == (
        "ask for manage (baremetal node manage): the node was not checked yet"
    )
    assert (told["last_error"], told["lock"], told["step"]) == (None, None, None)


def test_node_whose_bmc_refused(stage):
    node = stage.enrol({"fail": ["power"]}, **SECRET)
    request = stage.ask(node, "manage")
    stage.wait_for(node, "enroll")
    told = why(stage, node)
    assert told["next_action"] == (
        "correct the cause of the error, and ask for manage again (baremetal node manage)"
    )
    assert "was told to fail" in told["last_error"]["now"]
    assert told["last_error"]["last"] == told["last_error"]["now"]
    assert told["last_error"]["request_id"] == request
    assert (told["lock"], told["step"], told["maintenance"]) == (None, None, None)


def test_the_last_cleaning_that_ended_well_is_told_with_its_steps(stage):
    node = stage.bring_to("manageable")
    assert why(stage, node)["last_cleaned"] is None
    stage.patch(node, automated_clean=False)
    stage.ask(node, "provide")
    stage.wait_for(node, "available")
    assert why(stage, node)["last_cleaned"] is None, "nothing was cleaned"
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    stage.patch(node, automated_clean=True)
    stage.ask(node, "provide")
    stage.wait_for(node, "available")
    automatic = why(stage, node)["last_cleaned"]
    runs = [run for run in stage.site.runs(node) if run["phase"] == "clean"]
    assert datetime.fromisoformat(automatic["at"]) == runs[-1]["finished_at"]
    assert set(automatic["steps"]) <= {f"{run['interface']}.{run['step']}" for run in runs}
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    log = {"interface": "vendor", "step": "log_passthrough"}
    for steps, state in (([log], "manageable"), ([log, HOLD | {"step": "wash"}], "clean failed")):
        stage.ask(node, "clean", clean_steps=steps)
        stage.wait_for(node, state)
    assert why(stage, node)["last_cleaned"]["steps"] == ["vendor.log_passthrough"]
    child = stage.enrol(parent_node=node)
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    on_child = {"interface": "power", "step": "power_on", "execute_on_child_nodes": True}
    stage.ask(node, "clean", clean_steps=[on_child])
    stage.wait_for(node, "manageable")
    assert stage.show(child)["power_state"] == "power on"
    assert why(stage, node)["last_cleaned"]["steps"] == ["vendor.log_passthrough"]


def test_events_have_the_cause_that_lists_show(stage):
    node = stage.enrol({"fail": ["power"]}, **SECRET)
    stage.ask(node, "manage")
    stage.wait_for(node, "enroll")
    row = stage.api.get(f"/ext/v1/nodes/{node}").json["node"]
    last = stage.facts(node, "provision_set")[-1]
    assert "was told to fail" in row["cause"]
    assert {name: last[name] for name in ("cause_code", "cause")} == {
        "cause_code": "last_error", "cause": row["cause"],
    }  # fmt: skip


def test_node_whose_bmc_takes_its_time(watched, bmc):
    node = watched.enrol(**SECRET)
    bmc.may_answer.clear()
    request = watched.ask(node, "manage")
    wait_for(lambda: bmc.looks, "the BMC to be asked")
    told = why(watched, node)
    assert told["provision_state"] == "verifying"
    assert told["next_action"] == "wait: step power.check_power of verify runs"
    assert told["lock"]["holder"] == watched.site.runtime.host
    assert told["lock"]["purpose"] == "manage"
    assert told["lock"]["age_s"] >= 0
    assert told["step"]["request_id"] == request
    assert (told["step"]["position"], told["step"]["of"]) == (1, 1)
    bmc.may_answer.set()
    watched.wait_for(node, "manageable")
    assert why(watched, node)["next_action"].startswith("ask for provide, inspect, clean or adopt")


def test_node_that_waits_for_its_agent(stage):
    node = stage.bring_to("available", {"wait": {"deploy.deploy": -1}}, **SECRET)
    stage.ask(node, "active")
    stage.wait_for(node, "wait call-back")
    told = why(stage, node)
    assert told["next_action"] == (
        "wait for the call, or ask for abort (baremetal node abort): waiting for the fake agent to "
        "call back"
    )
    assert told["lock"] is None
    assert (told["step"]["flow"], told["step"]["name"]) == ("deploy", "deploy.deploy")
    assert told["step"]["state"] == "waiting"
    waits = datetime.fromisoformat(told["step"]["deadline_at"]) - datetime.now(UTC)
    assert timedelta(seconds=1700) < waits <= timedelta(seconds=1800)  # deploy_callback_timeout


def test_node_that_is_held_and_then_unheld(stage):
    node = stage.bring_to("manageable", **SECRET)
    stage.ask(node, "clean", clean_steps=[HOLD])
    stage.wait_for(node, "clean hold")
    told = why(stage, node)
    assert told["next_action"] == (
        "unhold it to continue, or abort it (baremetal node unhold, baremetal node abort)"
    )
    assert told["step"]["reason"] == "a hold step: unhold the node to go on, or abort"
    stage.ask(node, "unhold")
    told = why(stage, node)
    assert told["provision_state"] == "clean wait"
    assert told["next_action"].startswith("wait for the call, or ask for abort")
    stage.let_agents_call(node, "manageable")
    assert why(stage, node)["step"] is None


def test_node_whose_cleaning_failed_in_a_step(stage):
    node = stage.bring_to("manageable", {"fail": ["vendor"]}, **SECRET)
    stage.ask(node, "provide")
    stage.wait_for(node, "clean failed")
    told = why(stage, node)
    assert told["next_action"] == (
        "correct the cause of the error, end maintenance, and ask for manage and then for "
        "provide (baremetal node manage, baremetal node provide)"
    )
    assert told["maintenance"]["fault"] == "clean failure"
    assert told["maintenance"]["reason"] == told["last_error"]["now"]
    assert stage.api.delete(f"/v1/nodes/{node}/maintenance").status == 202
    told = why(stage, node)
    assert told["next_action"] == (
        "correct the cause of the error, and ask for manage and then for provide "
        "(baremetal node manage, baremetal node provide)"
    )


def test_node_whose_bmc_fell_silent(watched, bmc):
    node = watched.bring_to("active", **SECRET)
    watched.power(node, "power on")
    bmc.reads, bmc.one = UNREACHABLE, {}
    sync = power_sync.PowerSync(watched.site.runtime)
    sync.run()
    wait_for(lambda: sync.is_idle, "the slow look")
    told = why(watched, node)
    assert told["next_action"] == (
        "look at the BMC (its address: baremetal node show --fields driver_info): maintenance ends "
        "by itself when it answers again; it is asked after 300 to 1200 s, and within 300 s once "
        "anything has reached it"
    )
    assert told["maintenance"]["fault"] == "power failure"
    assert "no route" in told["last_error"]["now"]


def test_node_that_nobody_knows(stage):
    assert stage.api.get("/ext/v1/nodes/nobody/why").status == 404


@pytest.mark.parametrize(("cleans", "state"), [(True, "manageable"), (False, "available")])
@pytest.mark.parametrize("is_own", [True, False], ids=["node", "option"])
def test_a_retired_node_ends_where_why_says(make_stage, cleans, state, is_own):
    stage = make_stage(automated_clean=not cleans if is_own else cleans)
    node = stage.bring_to("active")
    stage.patch(node, retired=True, **({"automated_clean": cleans} if is_own else {}))
    promised = why(stage, node)["next_action"]
    stage.ask(node, "deleted")
    stage.wait_for(node, state)
    assert state in promised.partition("; after deleted ")[2]


@pytest.mark.parametrize(
    ("flags", "conductor"),
    [
        ({}, {}),
        ({"maintenance": True}, {}),
        ({"maintenance": True}, {"allow_provisioning_in_maintenance": False}),
        ({"protected": True}, {}),
        ({"retired": True}, {}),
        ({"protected": True, "retired": True, "maintenance": True}, {}),
        ({"rescue_interface": "no-rescue", "inspect_interface": "no-inspect"},
         {"enabled_rescue_interfaces": ("fake", "no-rescue"),
          "enabled_inspect_interfaces": ("fake", "no-inspect")}),
        ({"deploy_interface": "no-deploy"}, {"enabled_deploy_interfaces": ("fake", "no-deploy")}),
    ],
)  # fmt: skip
def test_the_verbs_that_why_allows_are_those_that_the_conductor_takes(
    make_stage, flags, conductor
) -> None:
    stage = make_stage(check_provision_state_interval=0, workers_pool_size=300, **conductor)
    step = {"interface": "vendor", "step": "log_passthrough"}
    more = {
        "clean": {"clean_steps": [step]}, "service": {"service_steps": [step]},
        "rescue": {"rescue_password": "secret"},
    }  # fmt: skip
    in_maintenance = {
        each["verb"] for each in stage.api.get("/ext/v1/states").json["verbs"]
        if each["in_maintenance"]
    }  # fmt: skip
    ways_out = {"maintenance unset", "unset --protected", "unset --retired"}
    for state in State:
        node = None
        for verb in VERB_LIST:
            if node is None:  # the one before was moved
                node = stage.enrol()
                stage.site.set(node, provision_state=state, **flags)
            why = stage.why(node)
            row = next(each for each in why["verbs"] if each["verb"] == verb.name)
            is_named = re.search(rf"baremetal node {verb.name}\b", why["next_action"])
            is_later = verbs_before(state, verb.target) and not flags.get("retired")
            has_interfaces = not any(name.endswith("_interface") for name in flags)
            if is_named and has_interfaces and not (row["allowed"] or is_later):
                assert any(each in why["next_action"] for each in ways_out), (state, why)
            answer = stage.try_to(node, verb.target, **more.get(verb.target, {}))
            assert row["allowed"] == (answer.status == 202), (state, row, answer.body)
            assert row["allowed"] or row["reason"] in answer.said
            if row["allowed"]:
                assert verb.name in in_maintenance or not flags.get("maintenance")
                stage.wait_until_free(node)
                node = None
