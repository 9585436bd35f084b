"""Fast track: a flow uses the agent that the flow before it has left running."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bloomery.db import rows
from tests.functional.redfish.agents.conftest import AGENT, Ramdisk
from tests.kit.waiting import wait_for

pytestmark = pytest.mark.usefixtures("quiet")
SESSION = {"agent_url", "agent_secret_token", "agent_verify_ca"}
DEPLOYED = [
    "deploy.get_deploy_steps", "standby.prepare_image", "image.install_bootloader",
    "standby.power_off",
]  # fmt: skip


@pytest.fixture
def quiet(stage):
    stage.site.service.periodics.stop()


@pytest.fixture
def fast(stage, node):
    """A manageable node with fast track."""
    stage.patch(node, **{"driver_info.fast_track": "true"})
    return node


@pytest.fixture
def cleaned(stage, fast, ramdisk):
    """An available node whose agent runs on after cleaning."""
    stage.ask(fast, "provide")
    shown = ramdisk.live_until(fast, "available", "clean failed")
    assert (shown["provision_state"], shown["last_error"]) == ("available", None)
    ramdisk.begin()
    return fast


def age(stage, node: str, seconds: int) -> None:
    """Make the agent's last heartbeat so old."""
    info = stage.site.node(node).driver_internal_info
    at = rows.now() - timedelta(seconds=seconds)
    changed = info | {"agent_last_heartbeat": at.isoformat()}
    stage.site.set(node, driver_internal_info=rows.dump(changed))


def deploy(stage, node: str, ramdisk: Ramdisk) -> None:
    stage.ask(node, "active")
    shown = ramdisk.live_until(node, "active", "deploy failed")
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    assert not SESSION & shown["driver_internal_info"].keys()


def test_cleaning_leaves_the_agent_running_for_the_deployment(stage, cleaned, machine, ramdisk):
    shown = stage.show(cleaned)
    assert (shown["power_state"], machine.system.power) == ("power on", "On")
    assert shown["driver_internal_info"].keys() >= SESSION
    assert ramdisk.call().status == 202
    deploy(stage, cleaned, ramdisk)
    assert ramdisk.server.told == DEPLOYED
    assert ramdisk.switches == ["Off", "On"]
    assert machine.system.media == {"Cd": None}
    assert machine.system.booted["target"] == "Hdd"


def changes(requests: list[str]) -> list[str]:
    """Return the requests for media and boot order; those for power depend on its speed."""
    return [each for each in requests if each.startswith("PATCH ") or "InsertMedia" in each]


def test_a_deployment_saves_a_boot_and_its_requests(stage, cleaned, machine, ramdisk, asked):
    asked.clear()
    deploy(stage, cleaned, ramdisk)
    reused = changes(asked)
    stage.patch(cleaned, **{"driver_info.fast_track": "false"})
    stage.site.set(cleaned, provision_state="available")
    ramdisk.begin()
    asked.clear()
    deploy(stage, cleaned, ramdisk)
    assert ramdisk.switches == ["Off", "On", "Off", "On"]
    assert (len(reused), len(changes(asked))) == (1, 3)


def test_inspection_cleaning_and_deployment_boot_the_agent_once(stage, fast, ramdisk):
    stage.ask(fast, "provide")
    ramdisk.live_until(fast, "available", "clean failed")
    stage.ask(fast, "manage")
    stage.wait_for(fast, "manageable")
    ramdisk.server.inventory = ramdisk.agent.inventory(memory={"physical_mb": 4096})
    ramdisk.begin()
    stage.patch(fast, inspect_interface="agent")
    stage.ask(fast, "inspect")
    shown = stage.wait_for(fast, "manageable")
    assert (shown["last_error"], shown["power_state"]) == (None, "power on")
    stored = stage.api.get(f"/v1/nodes/{fast}/inventory").json["inventory"]
    assert stored["memory"] == {"physical_mb": 4096}
    stage.ask(fast, "provide")
    ramdisk.live_until(fast, "available", "clean failed")
    deploy(stage, fast, ramdisk)
    assert ramdisk.server.told == [
        "poll.get_hardware_info", "clean.get_clean_steps", "clean.execute_clean_step",
        "poll.get_hardware_info", *DEPLOYED,
    ]  # fmt: skip
    assert ramdisk.switches == ["Off", "On"]


def test_an_inspecting_agent_runs_on_and_cleans(stage, fast, machine, ramdisk):
    stage.patch(fast, inspect_interface="agent")
    stage.ask(fast, "inspect")
    stage.wait_for(fast, "inspect wait")
    ramdisk.agent.expect(ramdisk.agent.try_to_hand_in(), 202)
    ramdisk.server.boot()
    ramdisk.server.token = ramdisk.agent.config["agent_token"]
    ramdisk.boots = 1
    shown = stage.wait_for(fast, "manageable")
    assert (shown["power_state"], machine.system.media) == ("power on", {"Cd": AGENT})
    left = {"lookup_bmc_addresses", "inspector_manage_boot"}
    assert not left & shown["driver_internal_info"].keys()
    assert ramdisk.call().status == 202
    ramdisk.begin()
    stage.ask(fast, "provide")
    ramdisk.live_until(fast, "available", "clean failed")
    assert ramdisk.server.told == [
        "clean.get_clean_steps", "clean.execute_clean_step", "poll.get_hardware_info",
    ]  # fmt: skip
    assert ramdisk.switches == []


def test_the_first_heartbeat_during_an_inspection_is_repeated(stage, fast, ramdisk):
    """An agent that is answered 409 calls again within seconds."""
    stage.patch(fast, inspect_interface="agent")
    stage.ask(fast, "inspect")
    stage.wait_for(fast, "inspect wait")
    ramdisk.agent.look_up()
    stage.site.set(fast, provision_state="inspecting", reservation="host-b")
    assert ramdisk.call().status == 409
    stage.site.set(fast, provision_state="manageable", reservation=None)
    assert ramdisk.call().status == 202


# ---------------------------------------------------------------------- what must boot all the same


def test_an_agent_that_has_called_too_long_ago_is_not_used(stage, cleaned, ramdisk):
    age(stage, cleaned, 301)
    deploy(stage, cleaned, ramdisk)
    assert ramdisk.server.told == ["boot", *DEPLOYED]


def test_an_agent_that_called_in_time_is_used(stage, cleaned, ramdisk):
    age(stage, cleaned, 290)
    deploy(stage, cleaned, ramdisk)
    assert ramdisk.server.told == DEPLOYED


def test_an_agent_of_another_boot_is_not_used(stage, cleaned, ramdisk):
    """It does not know the token of the session."""
    ramdisk.server.token = "another"
    deploy(stage, cleaned, ramdisk)
    assert ramdisk.server.told == ["boot", *DEPLOYED]


def test_a_busy_agent_is_not_used(stage, cleaned, ramdisk):
    ramdisk.server.take("standby.prepare_image", {})
    ramdisk.begin()
    deploy(stage, cleaned, ramdisk)
    assert ramdisk.server.told == ["boot", *DEPLOYED]


def test_the_agent_of_a_machine_that_is_off_is_not_used(stage, cleaned, machine, ramdisk):
    machine.system.reset("ForceOff")
    wait_for(lambda: not machine.system.is_on, "the machine to be off")
    deploy(stage, cleaned, ramdisk)
    assert ramdisk.server.told == ["boot", *DEPLOYED]


def test_a_power_change_ends_the_agents_session(stage, cleaned, ramdisk):
    stage.api.put(f"/v1/nodes/{cleaned}/states/power", {"target": "rebooting"})
    stage.wait_until_free(cleaned)
    assert "agent_url" not in stage.show(cleaned)["driver_internal_info"]
    deploy(stage, cleaned, ramdisk)
    assert ramdisk.server.told == ["boot", *DEPLOYED]


def test_a_step_that_asks_for_a_reboot_gets_it(stage, fast, ramdisk):
    (erase,) = [s for s in ramdisk.server.steps["clean"] if s["step"] == "erase_devices_metadata"]
    erase["reboot_requested"] = True
    for _ in range(2):
        stage.ask(fast, "provide")
        ramdisk.live_until(fast, "available", "clean failed")
        stage.ask(fast, "manage")
        stage.wait_for(fast, "manageable")
    assert ramdisk.server.told.count("boot") == 3


def test_a_cleaning_that_fails_leaves_no_agent(stage, fast, machine, ramdisk):
    ramdisk.server.fails["execute_clean_step"] = "no such disk"
    stage.ask(fast, "provide")
    shown = ramdisk.live_until(fast, "clean failed", "available")
    assert shown["provision_state"] == "clean failed"
    assert (machine.system.power, machine.system.media) == ("Off", {"Cd": None})
    assert not SESSION & shown["driver_internal_info"].keys()


def test_the_node_may_refuse_what_the_option_asks_for(stage, node, ramdisk):
    stage.configure("deploy", fast_track=True)
    stage.patch(node, **{"driver_info.fast_track": "false"})
    stage.ask(node, "provide")
    shown = ramdisk.live_until(node, "available", "clean failed")
    assert shown["power_state"] == "power off"
    assert not SESSION & shown["driver_internal_info"].keys()
