"""BMCs that go and come back while a machine is deployed or taken back."""

from __future__ import annotations

import dataclasses

import pytest

from bloomery.drivers import registry
from tests.functional.redfish import conftest
from tests.functional.redfish.conftest import available
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for


@pytest.fixture
def stage(make_site):
    """A BMC is left alone for a second, and a step bears a minute of silence."""
    ours = conftest.conf()
    bmc = dataclasses.replace(ours.bmc, breaker_failures=2, breaker_pause=1)
    loaded = registry.load(dataclasses.replace(ours, bmc=bmc))
    made = Stage(make_site(registry=loaded, bmc_outage_budget=60))
    yield made
    assert made.nothing_is_left(), "a reservation is left"


def outage(stage, machine, node, verb):
    """Let the BMC go, ask for ``verb``, and return why the node waits."""
    machine.bmc.faults.add(kind="reset", times=-1)
    stage.ask(node, verb)

    def waits():
        told = stage.why(node)
        return told if "does not answer" in str((told["step"] or {}).get("reason")) else None

    return wait_for(waits, "the step to wait for the BMC")


def test_a_deployment_waits_for_its_bmc(stage, machine) -> None:
    node = available(stage, machine)
    told = outage(stage, machine, node, "active")
    assert told["step"]["deadline_at"] is not None
    assert told["next_action"].startswith("look at the BMC (")
    wait_for(lambda: stage.why(node)["contact"]["bmc"]["left_alone"], "the breaker to open")
    machine.bmc.faults.clear()
    assert stage.wait_for(node, "active")["last_error"] is None
    assert machine.system.power == "On"


def test_an_undeployment_waits_for_its_bmc(stage, machine) -> None:
    node = available(stage, machine)
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    outage(stage, machine, node, "deleted")
    wait_for(lambda: stage.why(node)["contact"]["bmc"]["left_alone"], "the breaker to open")
    machine.bmc.faults.clear()
    assert stage.wait_for(node, "available")["last_error"] is None
