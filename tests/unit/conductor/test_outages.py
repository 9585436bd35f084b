"""A BMC that is silent for a while fails no step that may be repeated."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor import runner
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.conf.drivers import BmcOptions, Ipmi
from bloomery.db import rows
from bloomery.drivers import registry
from bloomery.drivers.ipmi import power as ipmi_power
from bloomery.drivers.ipmi import tool
from bloomery.outcome import Again
from tests.kit.machines.scripted import Script, failing, in_turn
from tests.kit.waiting import wait_for
from tests.unit.drivers.ipmi.conftest import LEAST

SILENT = errors.BmcUnreachable(node="n", address="bmc", reason="no route")
ALONE = errors.BmcLeftAlone(
    node="n", address="bmc", retry_after_s=0.01, cause="no route",
    reason="no route (left alone after 5 failures; next try in 0 s)",
)  # fmt: skip
QUEUED = errors.BmcQueueTimeout(
    node="n", address="bmc", retry_after_s=0.01, cause="others", reason="others came first"
)
BUDGET = {"bmc_outage_budget": 300}


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(runner, "_OUTAGE_PAUSES_S", (0.01, 0.01))


@pytest.fixture
def script():
    made = Script()
    made.add("deploy", "one")
    made.add("clean", "wipe")
    return made


def deploying(site):
    node = site.enrol(provision_state="available")
    site.deploy(node)
    return node


def run_of(site, node, step="one") -> Any:
    return next(run for run in site.runs(node) if run["step"] == step)


@pytest.mark.parametrize("step", ["prepare", "one"])
@pytest.mark.parametrize("silence", [SILENT, ALONE], ids=["silent", "left alone"])
def test_a_deployment_bears_it(make_site, script, step, silence):
    script.when(step, in_turn(silence, silence, silence, None))
    site = make_site(registry=script.registry(), **BUDGET)
    node = deploying(site)
    assert site.wait_for_state(node, "active").last_error is None
    assert script.calls.count(step) == 4


def test_a_step_that_got_no_turn_at_a_bmc_queues_again_whatever_the_budget(make_site, script):
    script.when("one", in_turn(*[QUEUED] * 5, None))
    site = make_site(registry=script.registry(), bmc_outage_budget=0)
    node = deploying(site)
    assert site.wait_for_state(node, "active").last_error is None
    assert script.calls.count("one") == 6
    assert run_of(site, node)["deadline_at"] is None


def test_an_undeployment_bears_it(make_site, script):
    script.when("tear_down", in_turn(SILENT, ALONE, None))
    site = make_site(registry=script.registry(), **BUDGET)
    node = site.enrol(provision_state="active")
    site.provision(node, "deleted")
    assert site.wait_for_state(node, "available").last_error is None


def test_the_same_turn_is_taken_again(make_site, script):
    turns = []

    def act(task):
        turns.append(task.turn)
        if turns.count(task.turn) == 1:
            raise SILENT
        return Again(after_s=0.01, reason="goes on") if task.turn < 2 else None

    script.when("one", act)
    site = make_site(registry=script.registry(), **BUDGET)
    site.wait_for_state(deploying(site), "active")
    assert turns == [0, 0, 1, 1, 2, 2]


def test_what_it_waits_for_and_until_when_stands_in_its_row(make_site, script):
    script.when("one", failing(SILENT))
    site = make_site(registry=script.registry(), **BUDGET)
    node = deploying(site)
    wait_for(lambda: run_of(site, node)["state"] == "again", "the step to wait")
    run = run_of(site, node)
    assert run["reason"].startswith("the BMC does not answer: no route; it is asked again until")
    assert timedelta(seconds=200) < run["deadline_at"] - rows.now() <= timedelta(seconds=300)
    script.when("one", lambda task: None)
    site.wait_for_state(node, "active")


def test_the_row_is_written_once_however_often_it_is_tried(make_site, script):
    script.when("one", failing(SILENT))
    site = make_site(registry=script.registry(), **BUDGET)
    node = deploying(site)
    wait_for(lambda: run_of(site, node)["state"] == "again", "the step to wait")
    due_at, tries = run_of(site, node)["due_at"], len(script.calls)
    wait_for(lambda: len(script.calls) > tries + 3, "more tries")
    assert run_of(site, node)["due_at"] == due_at
    script.when("one", lambda task: None)
    site.wait_for_state(node, "active")


def test_it_is_given_up_when_the_budget_is_spent(make_site, script):
    script.when("one", failing(SILENT))
    site = make_site(registry=script.registry(), bmc_outage_budget=1)
    node = deploying(site)
    failed = site.wait_for_state(node, "deploy failed")
    assert re.search(r"no route; that was borne for [1-9]\d* s \(", failed.last_error)
    assert script.calls.count("one") > 1


def test_what_is_told_is_how_long_it_was_borne_and_not_the_budget(make_site, script):
    for_long = errors.BmcLeftAlone(node="n", address="b", reason="login", retry_after_s=3000)
    script.when("one", in_turn(SILENT, for_long))
    site = make_site(registry=script.registry(), bmc_outage_budget=2000)
    failed = site.wait_for_state(deploying(site), "deploy failed")
    lasted_s = int(re.search(r"login; that was borne for (\d+) s \(", failed.last_error)[1])
    assert lasted_s < 1000


def test_a_bmc_that_is_left_alone_for_longer_than_is_left_is_not_waited_for(make_site, script):
    for_long = errors.BmcLeftAlone(node="n", address="b", reason="login", retry_after_s=3000)
    script.when("one", failing(for_long))
    site = make_site(registry=script.registry(), **BUDGET)
    site.wait_for_state(deploying(site), "deploy failed")
    assert script.calls.count("one") == 1


def test_waiting_is_no_answer(make_site, script):
    ends = []

    def act(task):
        ends.append(run_of(site, node)["deadline_at"])
        if len(ends) == 9:
            return None
        if len(ends) % 2:
            raise SILENT
        return Again(after_s=0.01, reason="waits")

    script.when("one", act)
    site = make_site(registry=script.registry(), **BUDGET)
    node = site.enrol(provision_state="available")
    site.deploy(node)
    site.wait_for_state(node, "active")
    assert len(ends) == 9
    assert len(set(ends[1:])) == 1, "the budget was granted anew"


def test_a_driver_that_bears_silence_itself_has_no_endless_budget(make_site, monkeypatch):
    def mute(*args, **more):
        raise tool.Failed("no answer")

    monkeypatch.setattr(tool, "run", mute)
    monkeypatch.setattr(ipmi_power, "_POLL_S", 0.02)
    conf = replace(
        Conf(),
        default=Default(enabled_hardware_types=("ipmi",)),
        ipmi=Ipmi(min_command_interval=0, command_retry_timeout=1),
        bmc=BmcOptions(breaker_failures=1000),
    )
    site = make_site(registry=registry.load(conf), bmc_outage_budget=2)
    node = site.enrol(driver="ipmi", provision_state="manageable", driver_info=LEAST)
    step = {"interface": "power", "step": "power_on", "args": {}}
    site.provision(node, "clean", steps=[step], disable_ramdisk=True)
    failed = site.wait_for_state(node, "clean failed")
    assert "no answer; that was borne for " in failed.last_error


def test_an_answer_begins_the_budget_anew(make_site, script):
    ends, script.is_heard = [], True

    def act(task):
        ends.append(run_of(site, node)["deadline_at"])
        if len(ends) == 1:
            raise SILENT
        if len(ends) == 2:
            return Again(after_s=0.01, reason="works")
        return None

    script.when("one", act)
    site = make_site(registry=script.registry(), **BUDGET)
    node = site.enrol(provision_state="available")
    site.deploy(node)
    site.wait_for_state(node, "active")
    assert ends[0] is None
    assert ends[1] is not None
    assert ends[2] is None


def test_a_conductor_that_takes_over_grants_no_new_budget(make_site, script):
    script.when("one", failing(SILENT))
    site = make_site(registry=script.registry(), **BUDGET)
    node = deploying(site)
    wait_for(lambda: run_of(site, node)["deadline_at"], "the budget to begin")
    ends = run_of(site, node)["deadline_at"]
    again = site.restarted(**BUDGET)
    tries = len(script.calls)
    wait_for(lambda: len(script.calls) > tries, "the heir to try")
    wait_for(lambda: run_of(again, node)["state"] == "again", "the heir to wait")
    assert run_of(again, node)["deadline_at"] == ends
    script.when("one", lambda task: None)
    again.wait_for_state(node, "active")
    again.close()


def test_a_refusal_and_a_step_that_may_not_be_repeated_fail_at_once(make_site, script):
    script.when("one", failing(errors.BmcRefused(node="n", address="bmc", reason="no")))
    site = make_site(registry=script.registry(), **BUDGET)
    site.wait_for_state(deploying(site), "deploy failed")
    once = Script()
    once.add("deploy", "one", failing(SILENT), resumable=False)
    other = make_site(registry=once.registry(), **BUDGET)
    other.wait_for_state(deploying(other), "deploy failed")
    assert (script.calls.count("one"), once.calls.count("one")) == (1, 1)


def test_who_waits_in_person_is_told_at_once(make_site, script):
    script.when("get_power_state", failing(SILENT))
    site = make_site(registry=script.registry(), **BUDGET)
    node = site.enrol()
    site.provision(node, "manage")
    assert "no route" in site.wait_for_state(node, "enroll").last_error
    assert script.calls.count("get_power_state") == 1


def test_an_order_insists_in_its_first_turn_alone(make_site, script):
    insisted = []

    def act(task):
        insisted.append(task.insists)
        return None if len(insisted) > 2 else Again(after_s=0.01, reason="works")

    script.when("prepare", act)
    site = make_site(registry=script.registry(), **BUDGET)
    site.wait_for_state(deploying(site), "active")
    assert insisted == [True, False, False]


def test_what_was_read_is_kept_for_one_turn(make_site, script):
    kept = []

    def act(task):
        kept.append(dict(task.reads))
        task.reads["/redfish/v1"] = "root"
        return None if len(kept) > 2 else Again(after_s=0.01, reason="works")

    script.when("one", act)
    site = make_site(registry=script.registry())
    site.wait_for_state(deploying(site), "active")
    assert kept == [{}, {}, {}]
