"""Machines whose BMC boots them into an agent, which calls and takes commands over HTTPS."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from bloomery.conductor import states
from bloomery.conf import Conf
from bloomery.conf.agent import Agent as AgentOptions
from bloomery.conf.agent import Deploy, Pxe
from bloomery.drivers import registry
from bloomery.lab.rack import Machine
from tests.fakes.client import Answer
from tests.functional.redfish.conftest import BUDGET_S, conf, manageable
from tests.kit.machines.agent import Agent
from tests.kit.machines.agent_server import AgentServer
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

AGENT = "http://images.test/agent.iso"
IMAGE = "http://images.test/os.qcow2"
MAC = "52:54:00:00:00:77"
DIGEST = "ab" * 32
INSTANCE = {
    "image_source": IMAGE, "image_disk_format": "qcow2", "image_os_hash_algo": "sha256",
    "image_os_hash_value": DIGEST,
}  # fmt: skip

DEPLOYS = ("ramdisk", "direct", "custom-agent", "bootc", "autodetect")


class Ramdisk:
    """The agent of one machine: it boots with it, looks up, calls, and does what it is told."""

    def __init__(self, stage: Stage, machine: Machine, server: AgentServer) -> None:
        self.stage, self.machine, self.server = stage, machine, server
        self.agent = Agent(stage.api, [MAC])
        self.boots = 0  # of the machine, so far
        self._begins_at = 0

    def live(self) -> None:
        """Do what an agent does next, if its machine runs it and its node waits."""
        boots = self.machine.system.happened.count("power is On")
        image = self.machine.system.booted.get("image")
        if not self.runs(image) or self.machine.system.power != "On":
            return
        if boots != self.boots:
            self.boots = boots
            self.server.boot()
            self.begin_boot(str(image))
            self.agent.look_up()
            self.server.token = self.agent.token
        elif self.server.running is not None and self.server.told[-1:] == ["standby.power_off"]:
            self.machine.system.reset("ForceOff")
            return
        self.server.finish()
        self.call()

    def runs(self, image: str | None) -> bool:
        """Return whether the image that the machine has booted is the agent's."""
        return image == AGENT

    def begin_boot(self, image: str) -> None:
        """Read the kernel's command line, of which a ready image has none."""
        self.agent.boot("")

    def begin(self) -> None:
        """Count commands and changes of power from here on."""
        self.server.told.clear()
        self._begins_at = len(self.machine.system.happened)

    @property
    def switches(self) -> list[str]:
        """The changes of power in order."""
        happened = self.machine.system.happened[self._begins_at :]
        states = [what.removeprefix("power is ") for what in happened if "power is" in what]
        return [state for state, _ in itertools.groupby(states)]

    def call(self) -> Answer:
        """Send a heartbeat."""
        shown = {"callback_url": self.server.url, "agent_verify_ca": self.server.certificate}
        return self.agent.call(**shown)

    def live_until(self, node: str, *ends: str) -> dict[str, Any]:
        """Live until the node rests in one of these states."""

        def arrived() -> bool:
            now = self.stage.site.node(node)
            if now.reservation is None and now.provision_state in ends:
                return True
            waits = now.provision_state in states.WAIT_STATES and now.reservation is None
            if waits or self.server.told[-1:] == ["standby.power_off"]:
                self.live()
            return False

        wait_for(arrived, f"{node} to be {' or '.join(ends)}", timeout_s=20)
        self.stage.wait_until_free(node)
        return self.stage.show(node)

    def live_until_it_writes(self, node: str) -> None:
        """Live until the agent writes the image, which does not end by itself."""
        self.server.endless.add("prepare_image")

        def writes() -> bool:
            if self.server.running is None:
                self.live()
            return self.server.running is not None

        wait_for(writes, "the agent to write", timeout_s=20)
        self.stage.wait_for(node, "wait call-back")


@pytest.fixture
def server(tmp_path) -> Iterator[AgentServer]:
    folder = tmp_path / "agent"
    folder.mkdir()
    with AgentServer(folder) as made:
        yield made


@pytest.fixture
def settings(tmp_path) -> Conf:
    """The options of the interfaces."""
    plain = conf()
    return dataclasses.replace(
        plain,
        default=dataclasses.replace(
            plain.default, enabled_deploy_interfaces=DEPLOYS,
            enabled_inspect_interfaces=("redfish", "agent"),
        ),
        agent=AgentOptions(
            certificates_path=str(tmp_path / "certificates"),
            command_timeout=3, post_deploy_get_power_state_retry_interval=0,
            enable_bios_bootloader_install=True,
        ),
        deploy=Deploy(
            erase_devices_priority=0, http_root=str(tmp_path / "http"), http_url="http://web.test"
        ),
        pxe=Pxe(instance_master_path=str(tmp_path / "image-cache")),
        conductor=dataclasses.replace(
            plain.conductor, file_url_allowed_paths=(str(tmp_path / "images"),)
        ),
    )  # fmt: skip


@pytest.fixture
def stage(make_site, tmp_path, settings) -> Iterator[Stage]:
    stage = Stage(make_site(registry=registry.load(settings), bmc_outage_budget=int(BUDGET_S)))
    stage.configure("agent", certificates_path=str(tmp_path / "certificates"))
    yield stage
    assert stage.nothing_is_left(), "a reservation is left"


@pytest.fixture
def ramdisk(stage: Stage, machine: Machine, server: AgentServer) -> Ramdisk:
    return Ramdisk(stage, machine, server)


@pytest.fixture
def node(stage: Stage, machine: Machine) -> str:
    """A node that may be cleaned and deployed by an agent."""
    node = manageable(stage, machine, deploy_iso=AGENT)
    stage.patch(node, deploy_interface="direct", instance_info=INSTANCE)
    stage.api.post("/v1/ports", {"node_uuid": node, "address": MAC})
    return node


@pytest.fixture
def available(stage: Stage, node: str) -> str:
    """One that was cleaned, for all that its row says."""
    stage.site.set(node, provision_state="available")
    return node
