"""A boot that the network loses is tried once more, in each flow that boots an agent."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.conductor.periodics import boot_retries, timeouts
from bloomery.lab.ipmi import IpmiMachine
from tests.functional.ipmi.test_network_boot import INSTANCE, MAC, Netboot
from tests.kit.machines.agent import Agent
from tests.kit.machines.agent_server import AgentServer
from tests.kit.servers.stories import Stage

BURN = [{"interface": "deploy", "step": "burnin_cpu"}]
FLOWS = {  # verb: its arguments, the state before it, its wait, its end, its time-out
    "provide": ({}, "manageable", "clean wait", "available", "clean_callback_timeout"),
    "active": ({}, "available", "wait call-back", "active", "deploy_callback_timeout"),
    "service": (
        {"service_steps": BURN}, "active", "service wait", "active", "service_callback_timeout",
    ),
    "rescue": (
        {"rescue_password": "secret"}, "active", "rescue wait", "rescue", "rescue_callback_timeout",
    ),
    "inspect": ({}, "manageable", "inspect wait", "manageable", "inspect_wait_timeout"),
}  # fmt: skip
INVENTORY = {
    "interfaces": [{"name": "eth0", "mac_address": MAC}], "cpu": {"count": 4}, "disks": [],
    "memory": {},
}  # fmt: skip
NOTE = "the machine was restarted once ([pxe]boot_retry_timeout)"
RETRY_S, LATE_S = 600, 700


@dataclasses.dataclass
class LostBoot:
    """A node that has waited for ``LATE_S``, for an agent whose boot the network has lost."""

    stage: Stage
    node: str
    machine: IpmiMachine
    netboot: Netboot
    verb: str

    def boots(self) -> int:
        return (self.machine.folder / "boots").read_text().count("\n")

    def retry(self) -> int:
        """Let the periodic run; return how often it restarted the machine."""
        before = self.boots()
        boot_retries.run(self.stage.site.runtime, timeouts.Watch())
        self.stage.wait_for(self.node, FLOWS[self.verb][2])
        return self.boots() - before

    def boot(self) -> None:
        """Let the network lose nothing: the machine boots its agent."""
        self.netboot.server.token, self.netboot.agent = None, Agent(self.stage.api, [MAC])
        self.netboot.boot()

    def end(self) -> dict[str, Any]:
        """Let the agent do what the flow asks of it."""
        if self.verb == "inspect":
            document = {"inventory": INVENTORY, "plugin_data": {}}
            assert self.stage.api.post("/v1/continue_inspection", document).status == 202
        return self.netboot.live_until(self.node, FLOWS[self.verb][3], f"{self.verb} failed")


@pytest.fixture(params=FLOWS)
def verb(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lost(
    network_stage: Stage, machine: IpmiMachine, tmp_path: Path, verb: str
) -> Iterator[LostBoot]:
    stage = network_stage
    stage.configure("pxe", boot_retry_timeout=RETRY_S)
    (tmp_path / "agent").mkdir()
    with AgentServer(tmp_path / "agent") as server:
        node = stage.enrol(
            driver="ipmi", driver_info=machine.driver_info, boot_interface="ipxe",
            deploy_interface="direct", inspect_interface="agent", rescue_interface="agent",
            instance_info=INSTANCE,
        )  # fmt: skip
        stage.api.post("/v1/ports", {"node_uuid": node, "address": MAC})
        lost = LostBoot(stage, node, machine, Netboot(stage, machine, server, "ipxe"), verb)
        _bring_to_its_wait(lost)
        yield lost


def _bring_to_its_wait(lost: LostBoot) -> None:
    stage, node, (arguments, begins_in, waits_in, *_) = lost.stage, lost.node, FLOWS[lost.verb]
    for way, state in (("manage", "manageable"), ("provide", "available"), ("active", "active")):
        stage.ask(node, way)
        lost.netboot.live_until(node, state)
        if state == begins_in:
            break
    stage.ask(node, lost.verb, **arguments)
    stage.wait_for(node, waits_in)
    (lost.machine.folder / "bootdev").write_text("none")  # as after a boot
    stage.let_time_pass(node, LATE_S)


@pytest.mark.sampled
def test_a_lost_boot_is_retried_and_the_flow_ends_well(lost: LostBoot) -> None:
    token = lost.stage.site.node(lost.node).driver_internal_info["agent_secret_token"]
    assert (lost.retry(), lost.machine.boot_device) == (1, "pxe")
    row = lost.stage.site.node(lost.node)
    assert row.driver_internal_info["agent_secret_token"] != token
    assert NOTE in lost.stage.why(lost.node)["step"]["reason"]
    [entry] = [row for row in lost.stage.site.history(lost.node) if "is restarted" in row["event"]]
    assert f"within {RETRY_S} s ([pxe]boot_retry_timeout)" in entry["event"]
    assert lost.retry() == 0, "the new boot had no time"
    lost.boot()
    shown = lost.end()
    assert (shown["provision_state"], shown["last_error"]) == (FLOWS[lost.verb][3], None)
    assert "agent_boot_retries" not in shown["driver_internal_info"]


@pytest.mark.sampled
@pytest.mark.parametrize("verb", ["active", "inspect"], indirect=True)
def test_a_second_lost_boot_ends_at_the_time_out_of_the_first_wait(lost: LostBoot) -> None:
    option = FLOWS[lost.verb][4]
    deadline = lost.stage.why(lost.node)["step"]["deadline_at"]
    lost.retry()
    assert lost.stage.why(lost.node)["step"]["deadline_at"] == deadline
    lost.stage.let_time_pass(lost.node, 1800 - LATE_S)
    shown = lost.stage.show(lost.node)
    assert shown["provision_state"].endswith("failed")
    assert NOTE in shown["last_error"]
    assert f"within 1800 s ([conductor]{option})" in shown["last_error"]


@pytest.mark.parametrize("verb", ["inspect"], indirect=True)
def test_an_agent_that_has_found_its_node_is_not_restarted(lost: LostBoot) -> None:
    """Its heartbeat may be late."""
    (lost.machine.folder / "bootdev").write_text("pxe")
    lost.boot()
    lost.netboot.agent.look_up()
    assert lost.retry() == 0


@pytest.mark.parametrize("verb", ["provide"], indirect=True)
def test_an_agent_that_calls_is_not_restarted(lost: LostBoot) -> None:
    (lost.machine.folder / "bootdev").write_text("pxe")
    lost.boot()
    lost.netboot.live(lost.node)
    lost.stage.wait_until_free(lost.node)
    before = lost.boots()
    lost.stage.let_time_pass(lost.node, LATE_S)
    boot_retries.run(lost.stage.site.runtime, timeouts.Watch())
    lost.stage.wait_until_free(lost.node)
    assert lost.boots() == before
