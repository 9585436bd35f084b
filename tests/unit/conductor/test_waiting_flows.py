"""Flows that wait for an agent or an operator: calls, aborts, time-outs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor.periodics import timeouts
from bloomery.db import rows
from bloomery.db.engine import Meter
from bloomery.drivers.base import DriverTask, Heartbeat
from bloomery.model.request import IN_LOG
from bloomery.outcome import DONE, Hold, WaitForCall
from tests.kit.machines.scripted import Script, failing, in_turn
from tests.kit.servers.site import Site
from tests.kit.waiting import wait_for

BOOTS = WaitForCall(reason="the agent boots")
LONG_AGO = datetime.now(UTC) - timedelta(days=1)


class Waiting:
    """A node whose flow waits in the first of two steps."""

    def __init__(self, make_site: Callable[..., Site], phase: str, said: Any, **facts: Any) -> None:
        self.script = Script()
        self.script.add(phase, "one", in_turn(said, None), **facts)
        self.script.add(phase, "two")
        self.site = make_site(registry=self.script.registry())
        self.node = BEGIN[phase](self.site)

    def beat(self) -> str:
        return self.site.agent_calls(self.node)

    def order(self, action: str) -> str:
        return self.site.provision(self.node, action)

    def states(self) -> set[str]:
        return {run["state"] for run in self.site.runs(self.node)}


def begin_deploy(site: Site) -> str:
    node = site.enrol(provision_state="available")
    site.deploy(node)
    site.wait_for_state(node, "wait call-back", "deploy hold")
    return node


def begin_clean(site: Site) -> str:
    node = site.enrol(provision_state="manageable")
    steps = [{"interface": "deploy", "step": "one"}, {"interface": "deploy", "step": "two"}]
    site.provision(node, "clean", steps=steps, disable_ramdisk=False)
    site.wait_for_state(node, "clean wait", "clean hold")
    return node


def begin_service(site: Site) -> str:
    node = site.enrol(provision_state="active")
    steps = [{"interface": "deploy", "step": "one"}, {"interface": "deploy", "step": "two"}]
    site.provision(node, "service", steps=steps, disable_ramdisk=False)
    site.wait_for_state(node, "service wait", "service hold")
    return node


BEGIN = {"deploy": begin_deploy, "clean": begin_clean, "service": begin_service}
ENDS_IN = {"deploy": "active", "clean": "manageable", "service": "active"}
FAILS_IN = {"deploy": "deploy failed", "clean": "clean failed", "service": "service failed"}
PHASES = pytest.mark.parametrize("phase", list(BEGIN))


@PHASES
def test_a_call_counts_once(make_site, phase: str):
    waiting = Waiting(make_site, phase, BOOTS)
    waiting.beat()
    waiting.site.wait_for_state(waiting.node, ENDS_IN[phase])
    before = waiting.site.node(waiting.node).provision_state
    waiting.beat()
    assert waiting.site.node(waiting.node).provision_state == before
    assert waiting.script.calls.count("two") == 1


def test_what_an_agent_lets_go_on_is_logged_in_the_name_of_who_asked_for_it(make_site):
    names = []
    waiting = Waiting(make_site, "deploy", BOOTS)
    waiting.script.when("two", lambda task: names.append(IN_LOG.get().request_id))
    waiting.beat()
    waiting.site.wait_for_state(waiting.node, "active")
    assert names == [waiting.site.runs(waiting.node)[0]["request_id"]]


def test_a_call_that_finds_the_node_busy_is_told_at_once(make_site):
    waiting = Waiting(make_site, "deploy", BOOTS)
    with waiting.site.acquire(waiting.node), pytest.raises(errors.NodeLocked):
        waiting.beat()
    waiting.beat()
    waiting.site.wait_for_state(waiting.node, "active")


def test_a_call_to_a_node_in_maintenance_is_noted_and_no_more(make_site):
    waiting = Waiting(make_site, "deploy", BOOTS)
    waiting.site.order("set_maintenance", waiting.node, True, "hands off")
    waiting.beat()
    found = waiting.site.node(waiting.node)
    assert found.provision_state == "wait call-back"
    assert found.driver_internal_info["agent_last_heartbeat"]


def test_an_agent_that_reports_a_failure_fails_the_flow(make_site, monkeypatch):
    waiting = Waiting(make_site, "deploy", BOOTS)

    def refuse(self: Any, task: DriverTask, beat: Heartbeat) -> Any:
        raise errors.BmcRefused(node="n", address="agent", reason="no such image")

    monkeypatch.setattr(
        type(waiting.site.runtime.registry.interfaces["deploy"]["fake"]), "on_heartbeat", refuse
    )
    waiting.beat()
    assert "no such image" in waiting.site.wait_for_state(waiting.node, "deploy failed").last_error
    assert waiting.states() == {"done", "failed", "skipped"}


def test_an_agent_that_is_not_done_refreshes_the_time_out(make_site, monkeypatch):
    waiting = Waiting(make_site, "deploy", BOOTS)
    deploy = type(waiting.site.runtime.registry.interfaces["deploy"]["fake"])
    monkeypatch.setattr(deploy, "on_heartbeat", lambda *_: BOOTS)
    waiting.site.set(waiting.node, provision_updated_at=LONG_AGO)
    waiting.beat()
    found = waiting.site.node(waiting.node)
    assert found.provision_state == "wait call-back"
    assert found.provision_updated_at > LONG_AGO
    monkeypatch.setattr(deploy, "on_heartbeat", lambda *_: DONE)
    waiting.beat()
    waiting.site.wait_for_state(waiting.node, "active")


def test_a_call_that_changes_nothing_takes_two_commits(make_site, monkeypatch):
    """The lock, and what the agent said with the lock's end: 10,000 machines call each 30 s."""
    waiting = Waiting(make_site, "deploy", BOOTS)
    waiting.site.service.periodics.stop()
    waiting.site.service._heart.stop()
    deploy = type(waiting.site.runtime.registry.interfaces["deploy"]["fake"])
    monkeypatch.setattr(deploy, "on_heartbeat", lambda *_: BOOTS)
    meter = Meter(waiting.site.db)
    waiting.beat()
    assert meter.commits == 2
    assert waiting.site.is_free(waiting.node)


def test_a_step_may_set_a_shorter_time_of_its_own(make_site):
    waiting = Waiting(make_site, "deploy", WaitForCall(reason="boots", timeout_s=0.001))
    timeouts.run(waiting.site.runtime)
    failed = waiting.site.wait_for_state(waiting.node, "deploy failed")
    assert "own time limit" in failed.last_error


@pytest.mark.parametrize("hours", [-1, 1], ids=["back", "forward"])
def test_a_clock_that_is_set_does_not_change_a_step_s_own_time(make_site, hours: int):
    waiting = Waiting(make_site, "deploy", WaitForCall(reason="boots", timeout_s=300))
    own_s, wall = [0.0], [rows.now()]
    watch = timeouts.Watch(clock=lambda: own_s[0], wall=lambda: wall[0])
    timeouts.run(waiting.site.runtime, watch)
    wall[0] += timedelta(hours=hours)
    own_s[0] += 290
    timeouts.run(waiting.site.runtime, watch)
    assert waiting.site.node(waiting.node).provision_state == "wait call-back"
    own_s[0] += 20
    timeouts.run(waiting.site.runtime, watch)
    failed = waiting.site.wait_for_state(waiting.node, "deploy failed")
    assert "own time limit" in failed.last_error


def test_after_a_restart_a_step_s_own_time_is_no_longer_than_it_was(make_site):
    waiting = Waiting(make_site, "deploy", WaitForCall(reason="boots", timeout_s=300))
    own_s, wall = [0.0], rows.now() - timedelta(hours=1)
    watch = timeouts.Watch(clock=lambda: own_s[0], wall=lambda: wall)
    timeouts.run(waiting.site.runtime, watch)
    own_s[0] += 301
    timeouts.run(waiting.site.runtime, watch)
    waiting.site.wait_for_state(waiting.node, "deploy failed")


@PHASES
@pytest.mark.parametrize("said", [BOOTS, Hold(reason="look")], ids=["wait", "hold"])
def test_an_abort_ends_the_flow_and_takes_away_what_was_prepared(make_site, phase: str, said: Any):
    waiting = Waiting(make_site, phase, said, abortable=True)
    asked = waiting.order("abort")
    ends_in = "active" if phase == "service" else FAILS_IN[phase]
    waiting.site.wait_for_state(waiting.node, ends_in)
    wait_for(lambda: waiting.site.is_free(waiting.node), "the end of what the abort does")
    aborted = waiting.site.node(waiting.node)
    assert waiting.states() <= {"done", "failed", "skipped"}
    assert "two" not in waiting.script.calls
    away = {"deploy": "clean_up", "clean": "tear_down_cleaning"}.get(phase)
    if away:
        assert away in waiting.script.calls
        assert "abort" in aborted.last_error
    assert asked in {entry["request_id"] for entry in waiting.site.history(waiting.node)}
    assert (aborted.clean_step, aborted.deploy_step, aborted.service_step) == ({}, {}, {})


def test_a_take_away_that_fails_still_lets_the_node_go(make_site):
    waiting = Waiting(make_site, "deploy", BOOTS, abortable=True)
    waiting.script.when("clean_up", failing(LookupError("no such image")))
    waiting.order("abort")
    waiting.site.wait_for_state(waiting.node, "deploy failed")
