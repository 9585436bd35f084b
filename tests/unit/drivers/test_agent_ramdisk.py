"""How a machine gets from what it runs to its agent."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bloomery.conductor.states import Power
from bloomery.conf import Conf
from bloomery.drivers.agent import inspect, ramdisk
from bloomery.outcome import Again, Outcome, WaitForCall
from tests.kit.machines.driver_task import FakeTask

TOKEN = "agent_secret_token"


class Machine:
    """Takes a turn to switch off, in which what it runs looks its node up."""

    only_restarts = False
    saves: int | None = None  # of the task, before the machine was switched on

    def __init__(self) -> None:
        self.networks: list[str] = []

    def set_power_state(self, task: FakeTask, state: Power) -> Outcome | None:
        if state == Power.OFF and not task.turn:
            task.node.driver_internal_info[TOKEN] = "of whoever runs there"
            return Again(after_s=1.0, reason="switches off")
        if state == Power.ON:
            self.saves = task.saves
        return None

    def prepare_ramdisk(self, task: FakeTask, params: object) -> None:
        """Its agent boots as soon as it is on."""

    def connect(self, task: FakeTask, role: str) -> None:
        self.networks.append(role)

    def validate_inspection(self, task: FakeTask) -> None:
        """It could."""


@pytest.mark.parametrize("in_band", [False, True], ids=["deploy", "inspect"])
def test_what_ran_before_keeps_no_token(in_band: bool) -> None:
    task, machine = FakeTask({}), Machine()
    task.driver = SimpleNamespace(power=machine, boot=machine, network=machine)
    agent = inspect.AgentInspect(Conf())

    def turn() -> Outcome:
        return agent.inspect_hardware(task) if in_band else ramdisk.boot(task, {}, "cleaning")

    assert isinstance(turn(), Again)
    task.turn = 1
    assert isinstance(turn(), WaitForCall)
    assert TOKEN not in task.node.driver_internal_info
    assert machine.networks == ["inspection" if in_band else "cleaning"]
    assert machine.saves == 1, "an agent that looks up at once would lose its token"
