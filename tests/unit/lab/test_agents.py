"""An emulated agent beside an API that a test plays, on a clock that a test turns."""

from __future__ import annotations

import hashlib
import io
import random
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from bloomery.drivers.agent_boot import image
from bloomery.lab.agents import Answer, EmulatedAgent, Profile
from bloomery.lab.system import Spec, System
from bloomery.lab.timers import Timers

NODE = {"node": {"uuid": "n-1"}, "config": {"agent_token": "t0k3n", "heartbeat_timeout": 300}}
ISO = "http://images.test/agent.iso"


class World:
    """A machine, its agent, and the API: ``lookup`` and ``heartbeat`` are its next statuses."""

    def __init__(self, **profile: object) -> None:
        self.now, self.calls = 0.0, []
        self.lookup, self.heartbeat, self.token = 200, 202, "t0k3n"
        self.timers = Timers(lambda work: work(), lambda: self.now)
        self.ports: dict[str, object] = {}
        server = SimpleNamespace(certificate="PEM", open=self._open, close=self._close)
        crew = SimpleNamespace(timers=self.timers, server=server)
        stopping = SimpleNamespace(is_set=lambda: False, wait=lambda _s: None)
        self.system = System(Spec(uuid="u", name="sim-0", macs=("52:54:01:00:00:00",)), stopping)
        chosen = Profile(**{"api": "http://api.test", "boot_s": 5, "write_s": 60} | profile)
        self.agent = EmulatedAgent(self.system, chosen, crew, random.Random(1))
        self.agent._agent.api = self

    def _open(self, agent: object) -> str:
        self.ports["https://127.0.0.1:1"] = agent
        return "https://127.0.0.1:1"

    def _close(self, url: str) -> None:
        self.ports.pop(url, None)

    def get(self, path: str, *, version: str) -> Answer:
        self.calls.append(path)
        config = NODE["config"] | {"agent_token": self.token}
        return Answer(self.lookup, NODE | {"config": config})

    def post(self, path: str, body: dict[str, object], *, version: str) -> Answer:
        self.calls.append(path)
        return Answer(self.heartbeat, {})

    def boot(self, image: str | None = ISO) -> None:
        self.system.booted = {"target": "Cd", "image": image}
        self.system.start()
        self.system.changed()

    def turn(self, seconds: float) -> None:
        self.now += seconds
        self.timers.run_due()

    @property
    def beats(self) -> int:
        return self.calls.count("/v1/heartbeat/n-1")


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    world.boot()
    return world


def test_an_agent_boots_looks_up_and_calls(world):
    world.turn(4.9)
    assert (world.agent.state, world.calls) == ("booting", [])
    world.turn(0.2)
    world.turn(0)
    assert world.calls == ["/v1/lookup?addresses=52:54:01:00:00:00", "/v1/heartbeat/n-1"]
    assert (world.agent.state, world.agent.token, len(world.ports)) == ("waiting", "t0k3n", 1)
    world.turn(89)
    assert world.beats == 1
    world.turn(91)
    assert world.beats == 2


@pytest.mark.parametrize("image", [None, "http://images.test/rescue.iso"])
def test_a_machine_without_the_agents_image_has_no_agent(image):
    world = World(image="agent.iso")
    world.boot(image)
    world.turn(600)
    assert (world.agent.state, world.calls) == ("off", [])


def test_a_lookup_is_repeated_until_the_agent_gives_up(world):
    world.lookup = 404
    for _ in range(400):
        world.turn(1)
    assert (world.agent.state, len(world.calls)) == ("lost", 9)


def test_a_heartbeat_that_is_refused_is_repeated_soon(world):
    world.heartbeat = 409
    world.turn(5)
    world.turn(0)
    world.turn(1.5)
    assert world.beats == 2


def test_a_write_takes_its_time_and_is_reported_at_once(world):
    world.turn(5)
    status, command = world.agent.take("standby.prepare_image", {"image_info": {}})
    assert (status, command["command_status"], world.agent.state) == (200, "RUNNING", "working")
    assert world.agent.take("standby.sync", {})[0] == 409
    world.turn(59)
    assert world.agent.running is not None
    before = world.beats
    world.turn(1)
    world.turn(0)
    assert (command["command_status"], world.beats) == ("SUCCEEDED", before + 1)


def test_a_report_keeps_its_distance_from_the_last_heartbeat(world):
    world.turn(5)
    world.turn(0)
    world.agent.take("image.install_bootloader", {})
    world.turn(1)
    assert (world.agent.running, world.beats) == (None, 1)
    world.turn(3.9)
    assert world.beats == 1
    world.turn(0.2)
    assert world.beats == 2


def test_a_share_of_the_writes_fails():
    world = World(fails=1.0)
    world.boot()
    world.turn(5)
    _, command = world.agent.take("standby.prepare_image", {})
    world.turn(60)
    assert command["command_status"] == "FAILED"
    assert "as its scenario orders" in command["command_error"]["message"]
    _, command = world.agent.take("standby.get_partition_uuids", {})
    assert command["command_status"] == "SUCCEEDED"


def test_power_off_from_within_ends_the_agent(world):
    world.turn(5)
    orders: list[str] = []
    world.system.reset = orders.append
    world.agent.take("standby.power_off", {})
    world.turn(0)
    assert orders == ["ForceOff"]


def test_an_agent_ends_with_its_machine(world):
    world.turn(5)
    world.agent.take("standby.prepare_image", {})
    world.system.stop()
    world.system.changed()
    assert (world.agent.state, world.agent.commands, world.ports) == ("off", [], {})
    calls = len(world.calls)
    world.turn(600)
    assert len(world.calls) == calls


PARAMETERS = b"linux /vmlinuz ipa-agent-token=on-the-cd_1 boot_method=vmedia\n"
CDS = {
    "at its beginning": (PARAMETERS, "on-the-cd_1"),
    "where two reads meet": (b" " * ((1 << 20) - 30) + PARAMETERS + b" " * 100, "on-the-cd_1"),
    "nowhere": (b" " * 3000, None),
    "cut off": (PARAMETERS[:30], None),
}


@pytest.mark.parametrize(("content", "token"), CDS.values(), ids=CDS)
def test_a_token_that_no_lookup_gives_is_read_from_the_cd(monkeypatch, content, token):
    opened = []

    def urlopen(url: str, timeout: float) -> io.BytesIO:
        opened.append(url)
        return io.BytesIO(content)

    monkeypatch.setattr("bloomery.lab.agents.urllib.request.urlopen", urlopen)
    world = World()
    world.token = "******"
    world.boot()
    world.turn(5)
    assert opened == [ISO]
    assert world.agent.token == token
    assert world.agent.state == ("lost" if token is None else "waiting")
    reason = "agent: lookup gave no token, and the CD has none"
    assert (reason in world.system.happened) == (token is None)


def test_an_agent_with_a_tpm_measures_the_cd_that_it_has_booted(monkeypatch):
    contents = image.Contents(
        kernel=io.BytesIO(b"kernel"), ramdisk=io.BytesIO(b"ramdisk"),
        bootloader=io.BytesIO(b"esp"), isolinux=None, grub_config="/EFI/BOOT/grub.cfg",
        command_line="console=ttyS0", files={},
    )  # fmt: skip
    out = io.BytesIO()
    image.write(contents, out)
    cds = [out.getvalue(), b"no CD"]
    monkeypatch.setattr("urllib.request.urlopen", lambda *_a, **_k: io.BytesIO(cds.pop(0)))
    world = World(tpm=True)
    world.boot()
    world.turn(5.0)
    measured = {digest for _, _, digest, _ in world.agent.tpm.events}
    assert {hashlib.sha256(each).digest() for each in (b"kernel", b"ramdisk")} <= measured
    world.boot()
    world.turn(5.0)
    assert world.agent.tpm.events == []
    assert any("its TPM cannot measure the CD" in what for what in world.system.happened)
