"""A BMC that a test makes up: it answers in the place of ipmitool, on a clock of the test's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from bloomery.conf import Conf
from bloomery.conf.drivers import Ipmi
from bloomery.drivers.ipmi import bmc, hardware, tool
from bloomery.drivers.ipmi.bmc import RateLimit
from tests.kit.machines.driver_task import FakeTask

LEAST = {"ipmi_address": "bmc.example.org", "ipmi_cipher_suite": 3}


class Clock:
    """Time passes when somebody waits, and when ``passes`` says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


class MadeUp:
    """Answers commands as ``answers`` says: a text, or what ipmitool fails with; else success."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.asked: list[str] = []
        self.suites: list[int | None] = []
        self.patience: list[tool.Patience] = []
        self.limits_s: list[float | None] = []
        self.answers: dict[str, str | tool.Failed | list[str | tool.Failed]] = {}
        self.power = "off"
        self.takes_s = 0.0

    def run(self, info, words, *, patience, suite=None, within_s=None, secret=None) -> str:
        said = " ".join(words)
        self.asked.append(said)
        self.suites.append(suite)
        self.patience.append(patience)
        self.limits_s.append(within_s)
        self.clock.now += self.takes_s
        answer = self.answers.get(said, "")
        if isinstance(answer, list):
            answer = answer.pop(0) if answer else ""
        if isinstance(answer, tool.Failed):
            raise answer
        if said in ("power on", "power off"):
            self.power = said.split()[1]
        return answer or (f"Chassis Power is {self.power}\n" if said == "power status" else "")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def made_up(monkeypatch, clock) -> MadeUp:
    found = MadeUp(clock)
    monkeypatch.setattr(bmc.tool, "run", found.run)
    return found


@pytest.fixture
def make_bmc(made_up, clock) -> Callable[..., bmc.IpmiBmc]:
    """Make a BMC; options of [ipmi] and keys of driver_info are told apart by their names."""
    rate_limit = RateLimit(clock, clock.pause)
    kept = []

    def make(task: FakeTask | None = None, **said: object) -> bmc.IpmiBmc:
        options = {k: v for k, v in said.items() if not k.startswith("ipmi_")}
        keys = {k: v for k, v in said.items() if k.startswith("ipmi_")}
        conf = dataclasses.replace(Conf(), ipmi=Ipmi(**options))
        kept.append(hardware.IpmitoolInterface(conf))
        return bmc.IpmiBmc(conf, task or FakeTask(LEAST | keys), rate_limit)

    return make
