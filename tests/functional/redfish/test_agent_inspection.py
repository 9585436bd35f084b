"""An agent inspects a machine that its BMC boots by virtual media."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import timedelta

import pytest

from bloomery.conductor.periodics import boot_retries, timeouts
from bloomery.db import rows
from bloomery.drivers import registry
from bloomery.lab.rack import Machine
from tests.functional.redfish.conftest import BUDGET_S, conf, manageable
from tests.kit.machines.agent import Agent
from tests.kit.servers.stories import Stage

AGENT = "http://images.test/agent.iso"
MAC = "52:54:00:00:00:77"


@pytest.fixture
def stage(make_site) -> Iterator[Stage]:
    plain = conf()
    default = dataclasses.replace(plain.default, enabled_inspect_interfaces=("agent", "redfish"))
    loaded = registry.load(dataclasses.replace(plain, default=default))
    made = Stage(make_site(registry=loaded, bmc_outage_budget=int(BUDGET_S)))
    yield made
    assert made.nothing_is_left(), "a reservation is left"


def waiting(stage: Stage, machine: Machine) -> str:
    """Return a node whose machine has booted its agent."""
    node = manageable(stage, machine, deploy_iso=AGENT)
    stage.patch(node, inspect_interface="agent")
    stage.api.post("/v1/ports", {"node_uuid": node, "address": MAC})
    stage.ask(node, "inspect")
    assert stage.wait_for(node, "inspect wait")["power_state"] == "power on"
    return node


def test_the_agents_image_is_booted_and_taken_away_again(stage: Stage, machine: Machine) -> None:
    node = waiting(stage, machine)
    assert machine.system.media == {"Cd": AGENT}
    happened = machine.system.happened
    assert happened.index(f"media inserted: {AGENT}") < happened.index("reset On")
    agent = Agent(stage.api, [MAC])
    agent.expect(agent.try_to_hand_in(), 202)
    assert agent.config["agent_skip_bmc_detect"] is True
    shown = stage.wait_for(node, "manageable")
    assert shown["last_error"] is None
    assert shown["power_state"] == "power off"
    assert machine.system.media == {"Cd": None}


def test_a_boot_that_virtual_media_lose_is_tried_again(stage: Stage, machine: Machine) -> None:
    node = waiting(stage, machine)
    stage.configure("pxe", boot_retry_timeout=600)
    long_ago = rows.now() - timedelta(seconds=700)
    for column in ("provision_updated_at", "inspection_started_at"):
        stage.site.set(node, **{column: long_ago})
    machine.system.eject()
    boot_retries.run(stage.site.runtime, timeouts.Watch())
    stage.wait_for(node, "inspect wait")
    assert machine.system.media == {"Cd": AGENT}
    boots = [event for event in machine.system.happened if event.startswith("boots from")]
    assert boots == ["boots from Cd in UEFI mode"] * 2
    stage.ask(node, "abort")
    stage.wait_for(node, "inspect failed")


def test_abort_takes_it_away_too(stage: Stage, machine: Machine) -> None:
    node = waiting(stage, machine)
    stage.ask(node, "abort")
    stage.wait_for(node, "inspect failed")
    assert machine.system.media == {"Cd": None}


def test_a_node_without_an_agents_image_is_not_inspected(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    stage.patch(node, inspect_interface="agent")
    answer = stage.try_to(node, "inspect")
    assert (answer.status, "deploy_iso" in answer.said) == (400, True)
    assert stage.standing(node) == ("manageable", None)


@pytest.mark.parametrize(
    "address", ["http://[x", "http:///a.iso", "ftp://admin:geheim@images.test/a", 7], ids=str
)
def test_an_image_that_no_bmc_could_fetch_is_refused(
    stage: Stage, machine: Machine, address: object
) -> None:
    node = manageable(stage, machine, deploy_iso=address)
    stage.patch(node, inspect_interface="agent")
    answer = stage.try_to(node, "inspect")
    assert (answer.status, "deploy_iso must be an http" in answer.said) == (400, True)
    assert "geheim" not in answer.said
