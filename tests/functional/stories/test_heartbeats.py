"""Agents that call again and again while their steps go on: what that costs, and what is kept."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bloomery import errors
from bloomery.conductor import heartbeats
from bloomery.conductor.periodics import timeouts
from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.db import rows
from bloomery.db.engine import Meter
from bloomery.model.node import Node
from bloomery.outcome import DONE, WaitForCall
from tests.kit.machines.agent import Agent
from tests.kit.waiting import wait_for

WRITES = WaitForCall(reason="the agent writes an image")
WAITS = {"wait": {"deploy.deploy": -1}}  # for an agent that no driver plays
LIMIT_S = 1800


@pytest.fixture
def stage(make_stage, tmp_path):
    stage = make_stage(deploy_callback_timeout=LIMIT_S)
    stage.configure("agent", certificates_path=str(tmp_path / "certificates"))
    return stage


@pytest.fixture
def says(stage, monkeypatch):
    """Let the driver answer each call so; at first that its step waits on."""

    def answer(outcome):
        def on_heartbeat(_self, task, _heartbeat):
            if isinstance(outcome, Exception):
                raise outcome
            return outcome(task) if callable(outcome) else outcome

        deploy = type(stage.site.runtime.registry.interfaces["deploy"]["fake"])
        monkeypatch.setattr(deploy, "on_heartbeat", on_heartbeat)

    answer(WRITES)
    return answer


def waiting_agent(stage):
    """Return the agent of a node that waits for it; its first call has been written."""
    node = stage.bring_to("available", fake=WAITS)
    stage.ask(node, "active")
    stage.wait_for(node, "wait call-back")
    agent = Agent(stage.api)
    agent.look_up(node_uuid=node)
    assert agent.call().status == 202
    return agent


@pytest.fixture
def agent(stage, says):
    return waiting_agent(stage)


@pytest.fixture
def still(stage):
    """Nobody flushes but the test."""
    stage.site.service.periodics.stop()
    stage.site.runtime.timers.stop()
    stage.site.service._heart.stop()


def row(stage, agent):
    return stage.site.node(agent.node["uuid"])


def last_call(stage, agent):
    return row(stage, agent).driver_internal_info["agent_last_heartbeat"]


def call(agent, **changes):
    assert agent.call(**changes).status == 202


def age(stage, agent, **how_long):
    stage.site.set(agent.node["uuid"], provision_updated_at=rows.now() - timedelta(**how_long))


def test_calls_that_say_nothing_new_are_written_together(stage, says):
    agents = [waiting_agent(stage) for _ in range(3)]
    stage.site.service.periodics.stop()
    stage.site.runtime.timers.stop()
    stage.site.service._heart.stop()
    before = [(last_call(stage, agent), row(stage, agent)) for agent in agents]
    meter = Meter(stage.site.db)
    for agent in agents * 2:
        call(agent)
    assert (meter.commits, len(meter.statements)) == (0, 2 * len(agents) * 2)
    meter.reset()
    stage.site.runtime.heartbeats.flush()
    assert (meter.commits, len(meter.statements)) == (1, 1)
    for agent, (called_at, node) in zip(agents, before, strict=True):
        assert last_call(stage, agent) > called_at
        assert row(stage, agent).provision_updated_at > node.provision_updated_at
        assert row(stage, agent).lock_generation == node.lock_generation


@pytest.mark.parametrize(
    ("age_s", "is_written"),
    [(0, False), (LIMIT_S / 6 - 60, False), (LIMIT_S / 6 + 1, True), (LIMIT_S / 3 - 60, True)],
)
def test_a_row_is_written_at_a_sixth_of_the_time_out(stage, agent, still, age_s, is_written):
    """``why`` has the last heartbeat at once, from the conductor."""
    at = rows.now() - timedelta(seconds=age_s)
    info = row(stage, agent).driver_internal_info | {"agent_last_heartbeat": at.isoformat()}
    stage.site.set(
        agent.node["uuid"], driver_internal_info=rows.dump(info), provision_updated_at=at
    )
    call(agent)
    stage.site.runtime.heartbeats.flush(only_due=True)
    assert (last_call(stage, agent) > at.isoformat()) == is_written
    why = stage.api.get(f"/ext/v1/nodes/{agent.node['uuid']}/why").json
    heard_at = why["contact"]["agent"]["last_heartbeat"]
    assert heard_at > at.isoformat()
    stage.site.runtime.heartbeats.flush()
    assert last_call(stage, agent) == heard_at


def test_a_due_heartbeat_is_written_by_a_worker(stage, agent):
    age(stage, agent, seconds=LIMIT_S / 6 + 1)
    before = last_call(stage, agent)
    call(agent)
    wait_for(lambda: last_call(stage, agent) > before, "the flush")


@pytest.mark.usefixtures("still")
def test_heartbeats_are_no_commit_until_they_are_due(stage, agent):
    meter = Meter(stage.site.db)
    for _ in range(10):
        call(agent)
        stage.site.runtime.heartbeats.flush(only_due=True)
    assert (meter.commits, len(meter.statements)) == (0, 20)
    age(stage, agent, seconds=LIMIT_S / 6 + 1)
    meter.reset()
    call(agent)
    stage.site.runtime.heartbeats.flush(only_due=True)
    assert (meter.commits, len(meter.statements)) == (1, 3)


@pytest.mark.parametrize(
    ("values", "options", "expected_s"),
    [
        ({"provision_state": "wait call-back"}, {}, LIMIT_S / 6),
        ({"provision_state": "clean wait"}, {"clean_callback_timeout": 600}, 100),
        ({"provision_state": "clean wait"}, {"clean_callback_timeout": 0}, 50),
        ({"provision_state": "wait call-back", "power_interface": "agent"}, {}, 50),
        ({"provision_state": "wait call-back", "driver_info": {"fast_track": True}}, {}, 50),
        ({"provision_state": "available"}, {}, 50),
    ],
)
def test_the_pace_is_a_sixth_of_what_counts_from_a_heartbeat(values, options, expected_s):
    conf = Conf(conductor=Conductor(deploy_callback_timeout=LIMIT_S, **options))
    node = Node(uuid="n", driver="fake-hardware", created_at=rows.now(), **values)
    assert heartbeats.pace_s(node, conf) == expected_s


def test_a_stop_writes_what_was_kept(stage, agent, still):
    before = last_call(stage, agent)
    call(agent)
    assert last_call(stage, agent) == before
    stage.site.service.stop()
    assert last_call(stage, agent) > before


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("changes", [{"agent_version": "11.0.1"}, {"agent_status": "end"}])
def test_what_is_new_is_written_before_the_answer(stage, agent, changes):
    agent.version = "1.72"
    before = last_call(stage, agent)
    call(agent, **changes)
    assert last_call(stage, agent) > before
    assert row(stage, agent).driver_internal_info.items() >= changes.items()


def test_a_call_that_ends_a_step_is_acted_upon_at_once(stage, agent, says):
    says(DONE)
    call(agent)
    stage.wait_for(agent.node["uuid"], "active")


def test_a_call_that_reports_a_failure_is_acted_upon_at_once(stage, agent, says):
    says(errors.BmcRefused(node="n", address="agent", reason="no such image"))
    call(agent)
    assert "no such image" in stage.wait_for(agent.node["uuid"], "deploy failed")["last_error"]


@pytest.mark.usefixtures("still")
def test_what_a_driver_sets_at_a_call_is_kept(stage, agent, says):
    def count(task):
        info = task.node.driver_internal_info
        info["calls"] = info.get("calls", 0) + 1
        return WRITES

    says(count)
    call(agent)
    call(agent)
    assert row(stage, agent).driver_internal_info["calls"] == 2


@pytest.mark.usefixtures("still")
def test_a_driver_that_asks_for_the_lock_gets_it(stage, agent, says):
    def save(task):
        task.assert_exclusive()
        return WRITES

    says(save)
    before = last_call(stage, agent)
    call(agent)
    assert last_call(stage, agent) > before


@pytest.mark.usefixtures("still")
def test_a_flush_leaves_nodes_alone_that_were_locked_since(stage, agent):
    call(agent)
    with stage.site.acquire(agent.node["uuid"]) as task:
        stage.site.runtime.heartbeats.flush()
        task.node.driver_internal_info["step"] = 1
        task.save()
    call(agent)
    stage.site.set(agent.node["uuid"], lock_generation=row(stage, agent).lock_generation + 1)
    before = row(stage, agent)
    stage.site.runtime.heartbeats.flush()
    assert row(stage, agent) == before
    assert before.driver_internal_info["step"] == 1


@pytest.mark.usefixtures("still")
def test_a_flush_does_not_set_a_call_back_that_another_conductor_has_written(stage, agent):
    call(agent)
    later = rows.now() + timedelta(minutes=1)
    stage.site.set(agent.node["uuid"], updated_at=later, provision_updated_at=later)
    stage.site.runtime.heartbeats.flush()
    assert row(stage, agent).provision_updated_at == later


@pytest.mark.usefixtures("still")
def test_calls_that_a_database_refuses_are_written_later(stage, agent, monkeypatch):
    before = last_call(stage, agent)
    call(agent)

    def refuse(_work):
        raise errors.DatabaseBusy(reason="it is away")

    kept = stage.site.runtime.heartbeats
    with monkeypatch.context() as away:
        away.setattr(stage.site.db, "transact", refuse)
        kept.flush()
    kept.flush()
    assert last_call(stage, agent) > before


# ------------------------------------------------------------------- a process that is killed


class Overdue(timeouts.Watch):
    """The first look of whoever takes a node over, so much later."""

    def __init__(self, later_s: float) -> None:
        super().__init__(wall=lambda: rows.now() + timedelta(seconds=later_s))


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("interval_s", [10, LIMIT_S / 3 - 10, LIMIT_S / 3 + 10, LIMIT_S - 10])
def test_who_comes_after_a_kill_fails_no_flow_whose_agent_calls(stage, agent, interval_s):
    """The call is answered, the process dies, and nothing times out until the next is due."""
    age(stage, agent, seconds=interval_s)  # so long ago was the call before
    before = last_call(stage, agent)
    call(agent)
    assert (last_call(stage, agent) == before) == (interval_s < LIMIT_S / 3)
    heir, node = stage.site.restarted(), agent.node["uuid"]
    timeouts.run(heir.runtime, Overdue(interval_s))
    assert heir.node(node).provision_state == "wait call-back"
    timeouts.run(heir.runtime, Overdue(LIMIT_S + 1))
    heir.wait_for_state(node, "deploy failed")
    heir.close()


@pytest.mark.usefixtures("still")
def test_a_kill_would_fail_a_flow_if_any_call_could_be_kept(stage, agent, monkeypatch):
    """What the test above relies on: a call is written at once where little time is left."""
    monkeypatch.setattr(heartbeats, "may_be_deferred", lambda *_: True)
    age(stage, agent, seconds=LIMIT_S - 10)
    call(agent)
    heir = stage.site.restarted()
    timeouts.run(heir.runtime, Overdue(LIMIT_S - 10))
    heir.wait_for_state(agent.node["uuid"], "deploy failed")
    heir.close()
