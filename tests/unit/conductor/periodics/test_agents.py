"""The periodic of drivers: fake agents call for nodes that wait, and for no others."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
import sqlalchemy as sa

from bloomery import clock
from bloomery.conductor import states, tasks
from bloomery.conductor.periodics import agents
from bloomery.db import rows
from bloomery.db.engine import Meter
from bloomery.drivers import base
from bloomery.drivers.fake import behaviour
from tests.kit.servers.stories import Stage, full_pool


@pytest.fixture
def stage(make_site):
    return Stage(make_site())


def wait_for_agent(stage, after_s):
    """Return a node that waits; the conductor's own periodic does not end that meanwhile."""
    stage.site.service.periodics.stop()
    node = stage.bring_to("available", {"wait": {"deploy.deploy": after_s}})
    stage.ask(node, "active")
    stage.wait_for(node, "wait call-back")
    return node


def call(stage):
    agents.make(stage.site.runtime)()
    stage.nothing_is_left()


def test_agent_calls_when_its_time_has_come(stage):
    node = wait_for_agent(stage, 3600)
    call(stage)
    assert stage.standing(node)[0] == "wait call-back"
    since = rows.now() - timedelta(seconds=3601)
    stage.site.set(node, provision_updated_at=since)
    call(stage)
    shown = stage.show(node)
    assert shown["provision_state"] == "active"
    assert stage.why(node)["contact"]["agent"]["last_heartbeat"] is not None


def test_who_waits_on_is_looked_at_once(stage, monkeypatch):
    """Until its time comes, or its row changes; the next process looks anew."""
    stage.site.service.periodics.stop()
    nodes = [wait_for_agent(stage, after_s) for after_s in (-1, 3600, 7200)]
    looks, ask = [], agents.make(stage.site.runtime)
    look = tasks.shared
    monkeypatch.setattr(
        tasks, "shared", lambda context, node: looks.append(node) or look(context, node)
    )
    for _ in range(3):
        ask()
    assert sorted(looks) == sorted(nodes)
    stage.site.set(nodes[0], updated_at=rows.now())
    ask()
    assert looks[3:] == [nodes[0]]
    passed = clock.now() + timedelta(seconds=3601)
    monkeypatch.setattr(clock, "now", lambda: passed)
    ask()
    stage.nothing_is_left()
    assert looks[4:] == [nodes[1]]
    assert stage.standing(nodes[1])[0] == "active"
    agents.make(stage.site.runtime)()
    assert sorted(looks[5:]) == sorted([nodes[0], nodes[2]])


def test_what_waits_on_costs_a_query_a_second(stage):
    stage.site.service.periodics.stop()
    for _ in range(3):
        wait_for_agent(stage, 3600)
    ask = agents.make(stage.site.runtime)
    ask()
    meter = Meter(stage.site.db)
    ask()
    assert len([statement for statement in meter.statements if "FROM nodes" in statement]) == 1


def test_an_odd_row_is_tried_again_after_a_while_or_when_it_is_mended(stage, monkeypatch):
    node = wait_for_agent(stage, 0.001)
    sound = stage.site.node(node).driver_info
    stage.site.set(node, driver_info="[1")
    ask, looks, look = agents.make(stage.site.runtime), [], tasks.shared
    monkeypatch.setattr(
        tasks, "shared", lambda context, node: looks.append(node) or look(context, node)
    )
    for _ in range(2):
        ask()
    assert looks == [node]
    stage.site.set(node, driver_info=rows.dump(sound), updated_at=rows.now())
    ask()
    stage.nothing_is_left()
    assert stage.standing(node)[0] == "active"


def test_agent_that_was_told_never_to_call_does_not(stage):
    node = wait_for_agent(stage, -1)
    stage.site.set(node, provision_updated_at=rows.now() - timedelta(days=400))
    call(stage)
    assert stage.standing(node)[0] == "wait call-back"
    assert stage.why(node)["contact"]["agent"] is None


def test_a_clock_that_is_set_forward_does_not_make_the_agent_call(stage, monkeypatch):
    node = wait_for_agent(stage, 3600)
    call(stage)
    monkeypatch.setattr(behaviour, "_wall", lambda: rows.now() + timedelta(days=1))
    call(stage)
    assert stage.standing(node)[0] == "wait call-back"


def test_a_clock_that_is_set_back_does_not_keep_the_agent_from_calling(stage, monkeypatch):
    node = wait_for_agent(stage, 3600)
    call(stage)
    passed = clock.now() + timedelta(seconds=3601)
    monkeypatch.setattr(clock, "now", lambda: passed)
    monkeypatch.setattr(behaviour, "_wall", lambda: rows.now() - timedelta(days=1))
    call(stage)
    assert stage.show(node)["provision_state"] == "active"


def waiting_for_ever(stage):
    """Two nodes that wait; the one that is asked first is returned first."""
    nodes = [wait_for_agent(stage, 0.001), wait_for_agent(stage, 0.001)]
    context = tasks.background_context(stage.site.runtime)
    asked = []
    for node in nodes:
        with tasks.shared(context, node) as task:
            asked.append((task.node.id, node))
    return [node for _, node in sorted(asked)]


@pytest.mark.parametrize(
    "odd", [{"deploy.deploy": "soon"}, {"deploy": None}, {"deploy": []}, ["x"], 7, {"a": 1e300}],
    ids=str,
)  # fmt: skip
def test_an_odd_behaviour_is_of_its_own_node_alone(stage, odd):
    first, second = waiting_for_ever(stage)
    stage.site.set(first, driver_info=rows.dump({"fake": {"wait": odd}}))
    call(stage)
    assert stage.standing(second)[0] == "active"


def test_a_node_that_breaks_the_look_is_named_and_passed_over(stage, monkeypatch, caplog):
    first, second = waiting_for_ever(stage)
    look = behaviour.agent_call

    def broken(task):
        if task.node.uuid == first:
            raise RuntimeError("odd row, password=hunter2")
        return look(task)

    periodics = [
        ("fake", base.Periodic(states=("wait call-back",), look=broken)),
        ("fake", base.Periodic(states=("wait call-back",), look=broken)),
    ]
    agents.run(stage.site.runtime, periodics)
    stage.nothing_is_left()
    assert stage.standing(second)[0] == "active"
    assert stage.standing(first)[0] == "wait call-back"
    records = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert len(records) == 2
    assert all(first in record and "RuntimeError" in record for record in records)
    assert "hunter2" not in caplog.text


def test_a_database_that_is_gone_ends_the_pass(stage):
    """It is no row's fault: the period tries again, and the job tells that it failed."""
    first, _ = waiting_for_ever(stage)
    asked = []

    def gone(task):
        asked.append(task.node.uuid)
        raise sa.exc.OperationalError("SELECT", {}, Exception("server closed the connection"))

    with pytest.raises(sa.exc.OperationalError):
        agents.run(
            stage.site.runtime, [("fake", base.Periodic(states=("wait call-back",), look=gone))],
        )  # fmt: skip
    assert asked == [first]


@pytest.mark.parametrize("values", [{"maintenance": True}, {"reservation": "somebody"}])
def test_busy_nodes_and_maintenance_are_left_alone(stage, values):
    node = wait_for_agent(stage, 0.001)
    stage.site.set(node, **values)
    agents.make(stage.site.runtime)()
    assert stage.standing(node)[0] == "wait call-back"
    stage.site.set(node, reservation=None)


def test_full_pool_leaves_the_call_to_the_next_pass(make_site):
    stage = Stage(make_site(workers_pool_size=3))
    node = wait_for_agent(stage, 0.001)
    with full_pool(stage.site):
        agents.make(stage.site.runtime)()
    assert stage.standing(node)[0] == "wait call-back"
    stage.let_agents_call(node, "active")


@pytest.mark.parametrize("state", sorted(states.WAIT_STATES))
def test_node_that_waits_without_a_flow_is_left_to_its_time_out(stage, state):
    node = stage.enrol()
    stage.site.set(node, provision_state=state, provision_updated_at=rows.now())
    call(stage)
    assert stage.standing(node)[0] == state
