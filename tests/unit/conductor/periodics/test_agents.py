"""The periodic of drivers: fake agents call for nodes that wait, and for no others."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bloomery.conductor import states
from bloomery.conductor.periodics import agents
from bloomery.db import rows
from tests.kit.stories import Stage, full_pool


@pytest.fixture
def stage(make_site):
    return Stage(make_site())


def wait_for_agent(stage, after_s):
    node = stage.bring_to("available", {"wait": {"deploy.deploy": after_s}})
    stage.ask(node, "active")
    stage.wait_for(node, "wait call-back")
    return node


def call(stage):
    agents.make(stage.site.house)()
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


def test_agent_that_was_told_never_to_call_does_not(stage):
    node = wait_for_agent(stage, -1)
    stage.site.set(node, provision_updated_at=rows.now() - timedelta(days=400))
    call(stage)
    assert stage.standing(node)[0] == "wait call-back"
    assert stage.why(node)["contact"]["agent"] is None


@pytest.mark.parametrize("values", [{"maintenance": True}, {"reservation": "somebody"}])
def test_busy_nodes_and_maintenance_are_left_alone(stage, values):
    node = wait_for_agent(stage, 0.001)
    stage.site.set(node, **values)
    agents.make(stage.site.house)()
    assert stage.standing(node)[0] == "wait call-back"
    stage.site.set(node, reservation=None)


def test_full_pool_leaves_the_call_to_the_next_pass(make_site):
    stage = Stage(make_site(workers_pool_size=3))
    node = wait_for_agent(stage, 0.001)
    with full_pool(stage.site):
        agents.make(stage.site.house)()
    assert stage.standing(node)[0] == "wait call-back"
    stage.let_agents_call(node, "active")


@pytest.mark.parametrize("state", sorted(states.WAIT_STATES))
def test_node_that_waits_without_a_flow_is_left_to_its_time_out(stage, state):
    node = stage.enrol()
    stage.site.set(node, provision_state=state, provision_updated_at=rows.now())
    call(stage)
    assert stage.standing(node)[0] == state
