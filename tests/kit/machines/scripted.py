"""Hardware that does what a test wrote down: steps by name, each a function of the held node.

script = Script()
script.deploy("write", lambda held: DONE)
site = make_site(registry=script.registry())
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from bloomery.conf import Conf
from bloomery.drivers import base, registry, steps
from bloomery.drivers.fake.hardware import FakeDeploy, FakePower
from bloomery.drivers.registry import Registry
from bloomery.model.step import Step
from bloomery.outcome import DONE, Outcome
from tests.kit.servers import site

Act = Callable[[base.DriverTask], Outcome | None]


class Script:
    """What the hardware does, and what it was asked to do, in order."""

    def __init__(self, *, has_agents: bool = False) -> None:
        self.has_agents = has_agents
        self.steps: dict[str, list[Step]] = {phase: [] for phase in steps.PHASES}
        self.acts: dict[str, Act] = {}
        self.calls: list[str] = []
        self.is_heard = False  # does the power interface know of an answer of the BMC?
        self._mutex = threading.Lock()

    def add(self, phase: str, name: str, act: Act | None = None, **facts: Any) -> None:
        """Offer a step; those that were added first run first."""
        said: dict[str, Any] = {"priority": 90 - len(self.steps[phase]), "resumable": True} | facts
        self.steps[phase].append(Step(interface="deploy", step=name, **said))
        if act is not None:
            self.acts[name] = act

    def when(self, name: str, act: Act) -> None:
        """Say what a step, or ``prepare`` and its like, does."""
        self.acts[name] = act

    def play(self, task: base.DriverTask, name: str) -> Outcome | None:
        with self._mutex:
            self.calls.append(name)
        act = self.acts.get(name)
        return act(task) if act else None

    def registry(self, conf: Conf | None = None) -> Registry:
        """The fake hardware's interfaces, with this script for deploy and power."""
        conf = conf or site.conf()
        found = registry.load(conf)
        interfaces: Mapping[str, Any] = found.interfaces | {
            "deploy": {"fake": ScriptedDeploy(conf, self)},
            "power": {"fake": ScriptedPower(conf, self)},
        }
        return Registry(found.types, interfaces, dict.fromkeys(interfaces))


class ScriptedDeploy(FakeDeploy):
    def __init__(self, conf: Conf, script: Script) -> None:
        super().__init__(conf)
        self.script, self.name = script, "fake"

    def periodics(self) -> tuple[base.Periodic, ...]:
        """No fake agent calls: the test does, unless the script has agents."""
        return tuple(super().periodics()) if self.script.has_agents else ()

    def steps(self, phase: str) -> tuple[Step, ...]:
        return tuple(self.script.steps[phase])

    def run_step(self, task: base.DriverTask, step: Step) -> Outcome:
        return self.script.play(task, step.step) or DONE

    def act(self, task: base.DriverTask, method: str) -> Outcome | None:
        return self.script.play(task, method)


class ScriptedPower(FakePower):
    def __init__(self, conf: Conf, script: Script) -> None:
        super().__init__(conf)
        self.script, self.name = script, "fake"

    def get_power_state(self, task: base.DriverTask) -> str | None:
        self.script.play(task, "get_power_state")
        return task.node.power_state

    def has_answered(self, task: base.DriverTask, since: datetime) -> bool:
        return self.script.is_heard


def failing(exc: BaseException) -> Act:
    """A step that raises ``exc`` each time."""

    def act(task: base.DriverTask) -> None:
        raise exc

    return act


def in_turn(*said: Outcome | BaseException | None) -> Act:
    """A step that says one thing after the other, and the last one from then on."""
    left = list(said)

    def act(task: base.DriverTask) -> Outcome | None:
        now = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(now, BaseException):
            raise now
        return now

    return act
