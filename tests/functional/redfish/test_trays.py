"""A tray: two hosts behind one BMC share its budget, and one that is pulled leaves the other be."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery.conductor.periodics.power_recovery import PowerRecovery
from bloomery.conductor.periodics.power_sync import PowerSync
from bloomery.drivers.bmc.gateway import Gateway
from bloomery.lab.rack import Machine
from bloomery.model.node import POWER_FAILURE
from tests.functional.redfish.conftest import manageable
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

PULLED = {"kind": "status", "status": 404, "path": "/Systems/System_1", "times": -1}


@pytest.fixture
def tray(stage: Stage, make_rack: Any) -> tuple[list[Machine], list[str]]:
    """Two machines behind one BMC, and their nodes, whose power one failure gives up."""
    stage.site.service.periodics.stop()
    stage.configure("conductor", power_state_sync_max_retries=0)
    machines = make_rack(2, model="nvidia-gb200").machines
    return machines, [manageable(stage, machine) for machine in machines]


def gateway_of(stage: Stage) -> Gateway:
    gateway: Gateway = stage.site.runtime.registry.interfaces["power"]["redfish"].access.gateway
    return gateway


def run(job: Any) -> None:
    job.run()
    wait_for(lambda: job.is_idle, "the BMCs to be asked")


def why(stage: Stage, node: str) -> dict[str, Any]:
    answer: dict[str, Any] = stage.api.get(f"/ext/v1/nodes/{node}/why").json
    return answer


def test_hosts_behind_one_bmc_share_its_login_and_its_record(stage, tray) -> None:
    machines, _ = tray
    [state] = gateway_of(stage).bmcs()
    assert machines[0].bmc is machines[1].bmc
    assert (state.address, state.sessions) == (machines[0].address, 1)
    assert machines[0].bmc.counted()["logins"] == 1


def test_while_calls_to_one_host_have_all_slots_the_other_waits(stage, tray) -> None:
    machines, _ = tray
    [state] = gateway_of(stage).bmcs()
    sync = PowerSync(stage.site.runtime)
    run(sync)
    asked = machines[0].bmc.requests
    taken = 0
    while state.slots.enter(write=False, timeout_s=0):
        taken += 1
    run(sync)
    assert (machines[0].bmc.requests, sync.suspects()) == (asked, 0), "left to the next pass"
    for _ in range(taken):
        state.slots.leave(write=False)
    run(sync)
    assert machines[0].bmc.requests > asked


def test_a_host_that_is_pulled_is_said_and_the_other_goes_on(stage, tray) -> None:
    machines, (stays, pulled) = tray
    machines[0].bmc.faults.add(**PULLED)
    sync, recovery = PowerSync(stage.site.runtime), PowerRecovery(stage.site.runtime)
    run(sync)
    assert stage.show(pulled)["fault"] == POWER_FAILURE
    assert "does not show its system: HTTP 404" in stage.show(pulled)["maintenance_reason"]
    assert (stage.show(stays)["fault"], why(stage, stays)["cause_code"]) == (None, None)
    assert stage.power(stays, "power on")["power_state"] == "power on"
    explained = why(stage, pulled)
    assert explained["cause_code"] == "system_absent"
    assert "and does not show its system /redfish/v1/Systems/System_1 since" in explained["cause"]
    assert "maintenance ends by itself" in explained["next_action"]
    run(recovery)
    assert why(stage, pulled)["since"] == explained["since"], "it was pulled once"
    machines[0].bmc.faults.clear()
    run(PowerRecovery(stage.site.runtime))
    assert (stage.show(pulled)["fault"], why(stage, pulled)["cause_code"]) == (None, None)


def test_an_order_to_a_host_that_was_pulled_says_so(stage, tray) -> None:
    machines, (_, pulled) = tray
    machines[0].bmc.faults.add(**PULLED)
    answer = stage.api.get(f"/v1/nodes/{pulled}/management/boot_device")
    assert answer.status == 400
    assert "see whether its tray is in place" in answer.said
    explained = why(stage, pulled)
    assert (explained["cause_code"], explained["maintenance"]) == ("system_absent", None)
    assert "maintenance" not in explained["next_action"]


def test_a_bmc_that_is_mute_is_said_of_each_host(stage, tray) -> None:
    machines, nodes = tray
    machines[0].bmc.faults.add(kind="reset", times=-1)
    run(PowerSync(stage.site.runtime))
    for node in nodes:
        assert stage.show(node)["fault"] == POWER_FAILURE
        assert why(stage, node)["cause_code"] == "power_failure"
        assert "the BMC does not answer" in why(stage, node)["cause"]
