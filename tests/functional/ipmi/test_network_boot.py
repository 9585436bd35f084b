"""A machine with an IPMI BMC boots an agent from the network, and is cleaned and deployed by it.

Its iPXE or GRUB asks the API as a real one does, and does as the scripts say; BMC and ipmitool are
real.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery import boot_files
from bloomery.conductor import states
from bloomery.conf import Conf
from bloomery.conf.agent import Pxe
from bloomery.drivers import registry
from bloomery.lab.ipmi import IpmiMachine
from tests.functional.ipmi.conftest import API
from tests.kit.machines.agent import Agent
from tests.kit.machines.agent_server import AgentServer
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

MAC = "52:54:00:00:00:77"
ENTRIES = {"ipxe": "/boot.ipxe", "pxe": "/grub.cfg"}
OWN_WORDS = {
    "ipxe": ["initrd=ramdisk", "BOOTIF=01-${mac:hexhyp}"], "pxe": ["BOOTIF=01-52-54-00-00-00-77"],
}  # fmt: skip
LINKS = {"ipxe": "/pxelinux.cfg/52-54-00-00-00-77", "pxe": f"/pxelinux.cfg/{MAC}"}
INSTANCE = {
    "image_source": "http://images.test/os.raw", "image_disk_format": "raw",
    "image_os_hash_algo": "sha256", "image_os_hash_value": "ab" * 32,
}  # fmt: skip


@pytest.fixture
def stage(network_stage: Stage) -> Stage:
    return network_stage


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AgentServer]:
    (tmp_path / "agent").mkdir()
    with AgentServer(tmp_path / "agent") as server:
        yield server


class Netboot:
    """A machine that is switched on: it does what iPXE was told, and its agent what it is told."""

    def __init__(
        self, stage: Stage, machine: IpmiMachine, server: AgentServer, boots_by: str
    ) -> None:
        self.stage, self.machine, self.server = stage, machine, server
        self.boots_by = boots_by
        self.agent = Agent(stage.api, [MAC])
        self.runs: str | None = None  # what was booted
        self.command_line = ""

    def boot(self) -> None:
        """Boot what the BMC and the scripts say."""
        self.runs = "disk"
        if self.machine.boot_device == "pxe" and self._run_scripts():
            self.runs = "agent"
            self.server.boot()
            self.agent.boot(self.command_line)

    def _run_scripts(self) -> bool:
        entry = self.stage.api.get(ENTRIES[self.boots_by])
        variable = {"ipxe": b"${mac:hexhyp}", "pxe": b"$net_default_mac"}[self.boots_by]
        assert (entry.status, b"pxelinux.cfg/" + variable in entry.body) == (200, True)
        script = self.stage.api.get(LINKS[self.boots_by])
        if script.status == 404:
            return False
        lines = [shlex.split(line.strip().removeprefix("if ").removesuffix("; then"))
                 for line in script.body.decode().splitlines()]  # fmt: skip
        (_, url, *line), initrd, boot = [words for words in lines if words != ["fi"]][-3:]
        assert boot == ["boot"]
        assert (self._fetch(url), self._fetch(initrd[-1])) == (b"the kernel", b"the ramdisk")
        self.command_line = " ".join(line)
        return True

    def _fetch(self, url: str) -> bytes:
        answer = self.stage.api.get(url.removeprefix(API))
        assert answer.status == 200, url
        return answer.body

    def live(self, node: str) -> None:
        """Do what comes next: boot, call, or end the command that runs."""
        if not self.machine.is_on:
            self.runs = None
            return
        if self.runs is None:
            self.boot()
        if self.runs == "disk":
            return
        if self.server.token is None:
            self.agent.look_up()
            self.server.token = self.agent.token
        elif self.server.running is not None and self.server.told[-1] == "standby.power_off":
            (self.machine.folder / "power").write_text("0")
            return
        self.server.finish()
        if self.stage.site.node(node).provision_state in states.WAIT_STATES:
            self.agent.call(callback_url=self.server.url, agent_verify_ca=self.server.certificate)

    def live_until(self, node: str, *ends: str) -> dict[str, Any]:
        """Live until the node rests in one of these states."""

        def arrived() -> bool:
            row = self.stage.site.node(node)
            if row.reservation is None and row.provision_state in ends:
                return True
            waits = row.provision_state in states.WAIT_STATES and row.reservation is None
            if waits or not self.machine.is_on or self.server.told[-1:] == ["standby.power_off"]:
                self.live(node)
            return False

        wait_for(arrived, f"{node} to be {' or '.join(ends)}", timeout_s=20)
        self.stage.wait_until_free(node)
        return self.stage.show(node)


@pytest.fixture(params=["ipxe", "pxe"])
def boots_by(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def netboot(stage: Stage, machine: IpmiMachine, server: AgentServer, boots_by: str) -> Netboot:
    return Netboot(stage, machine, server, boots_by)


@pytest.fixture
def node(stage: Stage, machine: IpmiMachine, boots_by: str) -> str:
    node = stage.enrol(
        driver="ipmi", driver_info=machine.driver_info, boot_interface=boots_by,
        deploy_interface="direct", inspect_interface="agent", instance_info=INSTANCE,
    )  # fmt: skip
    stage.api.post("/v1/ports", {"node_uuid": node, "address": MAC})
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    return node


def left(tmp_path: Path) -> list[Path]:
    root = str(tmp_path / "http")
    return [*boot_files.list_files(root), *boot_files.list_links(root)]


@pytest.mark.sampled
def test_a_machine_is_cleaned_and_deployed_over_the_network(
    stage: Stage, node: str, machine: IpmiMachine, netboot: Netboot, tmp_path: Path
) -> None:
    stage.ask(node, "provide")
    shown = netboot.live_until(node, "available", "clean failed")
    assert (shown["provision_state"], shown["last_error"]) == ("available", None)
    assert netboot.command_line.split() == [
        "nofb", "vga=normal", f"ipa-api-url={API}", f"ipa-agent-token={netboot.server.token}",
        *OWN_WORDS[netboot.boots_by],
    ]  # fmt: skip
    assert (machine.is_on, left(tmp_path)) == (False, [])
    netboot.server.told.clear()
    stage.ask(node, "active")
    shown = netboot.live_until(node, "active", "deploy failed")
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    assert netboot.server.told == [
        "boot", "deploy.get_deploy_steps", "standby.prepare_image", "image.install_bootloader",
        "standby.power_off",
    ]  # fmt: skip
    assert (machine.is_on, machine.boot_device == "pxe", left(tmp_path)) == (True, False, [])


@pytest.mark.sampled
def test_a_machine_that_has_nothing_to_boot_from_the_network_boots_its_disk(
    stage: Stage, node: str, machine: IpmiMachine, netboot: Netboot
) -> None:
    stage.ask(node, "provide")
    netboot.live_until(node, "available")
    (machine.folder / "bootdev").write_text("pxe")
    netboot.boot()
    assert netboot.runs == "disk"


def test_an_unknown_machine_is_sent_to_the_fallback_script(stage: Stage, options: Conf) -> None:
    assert stage.api.get("/boot.ipxe").status == 404
    fallback = Pxe(ipxe_fallback_script="http://web.test/discover.ipxe")
    registry.load(dataclasses.replace(options, pxe=fallback))
    script = stage.api.get("/boot.ipxe").body.decode()
    own, _, other, *_ = script.splitlines()[1:]
    assert own.endswith("pxelinux.cfg/${mac:hexhyp} || goto fallback")
    assert other.endswith("http://web.test/discover.ipxe || goto disk")
    assert stage.api.get("/pxelinux.cfg/52-54-00-00-00-99").status == 404


@pytest.mark.sampled
def test_an_agent_inspects_and_is_taken_away_with_an_abort(
    stage: Stage, node: str, netboot: Netboot, tmp_path: Path
) -> None:
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    netboot.boot()
    assert netboot.runs == "agent"
    assert f"ipa-inspection-callback-url={API}/v1/continue_inspection" in netboot.command_line
    netboot.agent.expect(netboot.agent.try_to_look_up(), 200)
    stage.ask(node, "abort")
    stage.wait_for(node, "inspect failed")
    assert left(tmp_path) == []


@pytest.mark.sampled
def test_a_stranger_who_looks_the_machine_up_first_gets_no_token(
    stage: Stage, node: str, netboot: Netboot
) -> None:
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    stranger = Agent(stage.api, [MAC])
    stranger.look_up()
    assert (stranger.token, stranger.call().status) == ("******", 400)
    netboot.boot()
    netboot.agent.look_up()
    assert netboot.agent.call(callback_url="https://127.0.0.1:9999").status == 202
    stage.ask(node, "abort")
    stage.wait_for(node, "inspect failed")
    assert "agent_secret_token" not in stage.show(node)["driver_internal_info"]


@pytest.mark.sampled
def test_a_script_is_for_the_networks_of_agents(stage: Stage, node: str, boots_by: str) -> None:
    """It has the agent's token, and whoever knows the MAC address knows its name."""
    stage.ask(node, "inspect")
    stage.wait_for(node, "inspect wait")
    link, entry = LINKS[boots_by], ENTRIES[boots_by]
    assert stage.api.get(link).status == 200
    stage.api.address = "198.51.100.9"
    assert (stage.api.get(link).status, stage.api.get(entry).status) == (404, 200)
    stage.ask(node, "abort")
    stage.wait_for(node, "inspect failed")


@pytest.mark.sampled
def test_an_agent_that_fails_leaves_nothing_to_boot(
    stage: Stage, node: str, machine: IpmiMachine, netboot: Netboot, tmp_path: Path
) -> None:
    stage.ask(node, "provide")
    netboot.live_until(node, "available")
    netboot.server.fails["prepare_image"] = "no room on the disk"
    stage.ask(node, "active")
    shown = netboot.live_until(node, "active", "deploy failed")
    assert "no room on the disk" in shown["last_error"]
    assert (machine.is_on, left(tmp_path)) == (False, [])


def test_a_node_that_names_neither_has_nothing_that_boots(
    stage: Stage, machine: IpmiMachine
) -> None:
    node = stage.enrol(driver="ipmi", driver_info=machine.driver_info)
    shown = stage.show(node)
    assert (shown["boot_interface"], shown["deploy_interface"]) == ("no-boot", "no-deploy")


def test_validation_names_the_port_that_is_missing(stage: Stage, machine: IpmiMachine) -> None:
    node = stage.enrol(
        driver="ipmi", driver_info=machine.driver_info, boot_interface="ipxe",
        deploy_interface="direct",
    )  # fmt: skip
    answer = stage.api.get(f"/v1/nodes/{node}/validate").json
    assert (answer["boot"]["result"], "pxe_enabled" in answer["boot"]["reason"]) == (False, True)
