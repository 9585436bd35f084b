"""A machine without a BMC: an operator starts its agent, and the agent restarts it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery import boot_files
from bloomery.conductor import states
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.db import rows
from tests.kit.machines.agent import Agent
from tests.kit.machines.agent_server import AgentServer
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

MAC = "52:54:00:00:00:78"
TOLD = "agent_told_to_restart"
INSTANCE = {"image_source": "http://images.test/os.raw", "image_checksum": "ab" * 32}


@pytest.fixture
def options(options: Conf) -> Conf:
    types = {"enabled_hardware_types": ("manual-management",)}
    return dataclasses.replace(
        options,
        default=Default(**types, enabled_power_interfaces=("agent",)),
        deploy=dataclasses.replace(options.deploy, fast_track=True),
    )


@pytest.fixture
def stage(network_stage: Stage) -> Stage:
    return network_stage


class Operator:
    """Whoever stands at the machine, and the agent that runs on it."""

    def __init__(self, stage: Stage, server: AgentServer) -> None:
        self.stage, self.server, self.agent = stage, server, Agent(stage.api, [MAC])

    def boot(self) -> None:
        """Start the agent with the command line of its script."""
        script = self.stage.api.get(f"/pxelinux.cfg/{boot_files.ipxe_link(MAC)}")
        self.server.boot()
        self.agent.boot(script.body.decode())
        self.agent.look_up()
        self.server.token = self.agent.token

    def live_until(self, node: str, *ends: str) -> dict[str, Any]:
        """Let the agent call and end its commands until the node rests in one of these states."""

        def arrived() -> bool:
            row = self.stage.site.node(node)
            if row.reservation is None and row.provision_state in states.WAIT_STATES:
                self.server.finish()
                self.agent.call(
                    callback_url=self.server.url, agent_verify_ca=self.server.certificate
                )
            return row.reservation is None and row.provision_state in ends

        wait_for(arrived, f"{node} to be {' or '.join(ends)}", timeout_s=20)
        self.stage.wait_until_free(node)
        return self.stage.show(node)


@pytest.fixture
def operator(stage: Stage, tmp_path: Path) -> Iterator[Operator]:
    (tmp_path / "agent").mkdir()
    with AgentServer(tmp_path / "agent") as server:
        yield Operator(stage, server)


@pytest.fixture
def node(stage: Stage) -> str:
    node = stage.enrol(
        driver="manual-management", power_interface="agent", deploy_interface="direct",
        rescue_interface="agent", instance_info=INSTANCE,
    )  # fmt: skip
    stage.api.post("/v1/ports", {"node_uuid": node, "address": MAC})
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    return node


@pytest.fixture
def cleaned(stage: Stage, node: str, operator: Operator) -> str:
    """A node whose agent runs on after cleaning."""
    stage.ask(node, "provide")
    stage.wait_for(node, "clean wait")
    why = stage.api.get(f"/ext/v1/nodes/{node}/why").json
    assert "an operator restarts the machine into the agent's ramdisk" in str(why)
    operator.boot()
    shown = operator.live_until(node, "available", "clean failed")
    assert (shown["provision_state"], shown["last_error"]) == ("available", None)
    operator.server.told.clear()
    return node


def test_the_agent_restarts_the_machine_into_its_instance(stage, cleaned, operator):
    stage.ask(cleaned, "active")
    shown = operator.live_until(cleaned, "active", "deploy failed")
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    assert operator.server.told == [
        "deploy.get_deploy_steps", "standby.prepare_image", "image.install_bootloader",
        "standby.run_image",
    ]  # fmt: skip
    assert shown["power_state"] == "power on"
    assert "agent_secret_token" not in shown["driver_internal_info"]


def test_an_agent_that_has_restarted_before_a_crash_is_not_missed(stage, cleaned, operator):
    info = stage.site.node(cleaned).driver_internal_info
    stage.site.set(cleaned, driver_internal_info=rows.dump(info | {TOLD: True}))
    stage.ask(cleaned, "manage")
    stage.wait_for(cleaned, "manageable")
    operator.server.end()
    shown = stage.power(cleaned, "rebooting")
    assert (shown["last_error"], TOLD in shown["driver_internal_info"]) == (None, False)
    assert "agent_url" not in shown["driver_internal_info"]


def test_an_agent_that_does_not_answer_is_told(stage, cleaned, operator):
    stage.ask(cleaned, "manage")
    stage.wait_for(cleaned, "manageable")
    operator.server.end()
    shown = stage.power(cleaned, "rebooting")
    assert "cannot reach the agent" in shown["last_error"]
    assert TOLD not in shown["driver_internal_info"]


def test_an_undeployed_machine_waits_for_the_operator_again(stage, cleaned, operator):
    stage.ask(cleaned, "active")
    operator.live_until(cleaned, "active", "deploy failed")
    stage.ask(cleaned, "deleted")
    stage.wait_for(cleaned, "clean wait")
    operator.boot()
    shown = operator.live_until(cleaned, "available", "clean failed")
    assert (shown["provision_state"], shown["last_error"]) == ("available", None)


def test_after_a_failed_deployment_the_operator_starts_a_new_agent(stage, cleaned, operator):
    operator.server.fails["prepare_image"] = "no such image"
    stage.ask(cleaned, "active")
    shown = operator.live_until(cleaned, "active", "deploy failed")
    assert shown["provision_state"] == "deploy failed"
    assert "standby.run_image" not in operator.server.told
    operator.server.fails.clear()
    stage.ask(cleaned, "active")
    stage.wait_for(cleaned, "wait call-back")
    operator.boot()
    assert operator.live_until(cleaned, "active")["last_error"] is None


def test_a_restart_on_request_needs_an_agent(stage, cleaned, operator):
    stage.ask(cleaned, "manage")
    stage.wait_for(cleaned, "manageable")
    refused = stage.try_power(cleaned, "power off")
    assert refused.status == 400
    assert "it supports rebooting, soft rebooting" in str(refused.json)
    shown = stage.power(cleaned, "rebooting")
    assert (operator.server.told, shown["last_error"]) == (["standby.run_image"], None)
    shown = stage.power(cleaned, "soft rebooting")
    assert "restart the machine by hand" in shown["last_error"]


def test_the_operator_restarts_the_instance_after_a_rescue(stage, cleaned, operator):
    stage.ask(cleaned, "active")
    operator.live_until(cleaned, "active", "deploy failed")
    operator.server.told.clear()
    stage.ask(cleaned, "rescue", rescue_password="open sesame")
    stage.wait_for(cleaned, "rescue wait")
    operator.boot()
    assert operator.live_until(cleaned, "rescue", "rescue failed")["last_error"] is None
    stage.ask(cleaned, "unrescue")
    stage.wait_for(cleaned, "active")
    assert operator.server.told == ["boot", "rescue.finalize_rescue"]


def test_power_by_agents_needs_fast_track(stage, node):
    stage.patch(node, **{"driver_info.fast_track": "false"})
    shown = stage.api.get(f"/v1/nodes/{node}/validate").json["power"]
    assert shown["result"] is False
    assert "set [deploy]fast_track, or driver_info/fast_track" in shown["reason"]
