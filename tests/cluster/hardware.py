"""Machines of the cluster: each has a BMC that is slow, and that notes who wrote to it.

A write leaves the conductor when its lease has been checked, and takes effect some time later: by
then its conductor may be dead, or another one may be at work.  The BMC knows the generation of the
lock under which each write was sent: one that takes effect after a newer lock has written is a
write that the fence did not stop.  The same order of a conductor that was killed and begins anew is
borne: a resumable step is by contract one that its BMC may be told again while it still obeys, as
after an answer that never came.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers import base, registry
from bloomery.drivers.base import WRITE_BUDGET_S, DriverTask
from bloomery.drivers.fake.hardware import FakeDeploy, FakeInspect, FakePower
from bloomery.drivers.registry import Registry
from bloomery.model.step import Step
from bloomery.outcome import DONE, Again, Outcome, WaitForCall
from tests.cluster.virtual import Process, Scheduler

_USUAL_S: Final = 2.0  # that a BMC takes for an answer
_SLOW: Final = 0.1  # of its answers take up to the whole budget
_REFUSES: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One order to a BMC: what, by whom, and under which lock."""

    node: str
    order: str
    host: str
    generation: int


class Bmcs:
    """The BMCs of all machines; ``on_fault`` is told what must not happen."""

    def __init__(self, scheduler: Scheduler, on_fault: Callable[[str], None]) -> None:
        self._scheduler, self._on_fault = scheduler, on_fault
        self._process = Process("bmcs")
        self._sent: dict[str, Write] = {}  # of each node, the one of the newest lock
        self.refuses = True
        self.takes_its_time = False  # each answer takes the whole budget, and comes with the effect
        self.count = 0

    def write(self, task: DriverTask, order: str) -> None:
        """Send an order, and wait for the answer.  Raises LockLost, BmcRefused."""
        scheduler = self._scheduler
        scheduler.switch(f"before bmc {order}")
        task.assert_lease()
        write = self._write_of(task, order)
        answer_s = self._answer_s()
        self._send(write, answer_s if self.takes_its_time else scheduler.lots.uniform(0, answer_s))
        scheduler.wait(answer_s, f"bmc {order}")
        scheduler.switch(f"after bmc {order}")
        if self.refuses and scheduler.lots.random() < _REFUSES:
            raise errors.BmcRefused(node=write.node, address="bmc", reason=f"no {order} now")

    def read(self) -> None:
        """Ask something, and wait for the answer."""
        self._scheduler.wait(self._answer_s(), "bmc read")

    def _answer_s(self) -> float:
        lots = self._scheduler.lots
        if self.takes_its_time:
            return WRITE_BUDGET_S
        return lots.uniform(0, WRITE_BUDGET_S if lots.random() < _SLOW else _USUAL_S)

    @staticmethod
    def _write_of(task: DriverTask, order: str) -> Write:
        holder: Any = task
        guard = holder._guard
        return Write(
            node=task.node.uuid, order=order, host=guard.holder, generation=guard.generation
        )

    def _send(self, write: Write, takes_effect_s: float) -> None:
        newest = self._sent.get(write.node)
        if newest is not None and newest.generation > write.generation:
            self._on_fault(f"{write} was sent after {newest}")
        else:
            self._sent[write.node] = write
        self.count += 1
        self._scheduler.note(f"sent {write}")
        self._scheduler.spawn(
            self._process, lambda: self._take_effect(write), write.order, takes_effect_s
        )

    def _take_effect(self, write: Write) -> None:
        newest = self._sent[write.node]
        is_repeated = (newest.host, newest.order) == (write.host, write.order)  # after a kill -9
        if newest.generation > write.generation and not is_repeated:
            self._on_fault(f"{write} took effect after {newest} was sent")


STEPS: Final = {
    "deploy": (
        Step(interface="deploy", step="write", priority=90, resumable=True),
        Step(interface="deploy", step="boot", priority=80, resumable=True, abortable=True),
    ),
    "clean": (
        Step(interface="deploy", step="erase", priority=90, resumable=True),
        Step(interface="deploy", step="flash", priority=80, resumable=False),
    ),
    "service": (Step(interface="deploy", step="update", resumable=True),),
}


class ClusterDeploy(FakeDeploy):
    """Writes, takes turns, waits for an agent; one step may not be repeated."""

    def __init__(self, conf: Conf, bmcs: Bmcs, scheduler: Scheduler) -> None:
        super().__init__(conf)
        self.name, self._bmcs, self._lots = "fake", bmcs, scheduler.lots

    def periodics(self) -> tuple[base.Periodic, ...]:
        """The agents of the cluster call by themselves."""
        return ()

    def steps(self, phase: str) -> tuple[Step, ...]:
        return STEPS.get(phase, ())

    def run_step(self, task: DriverTask, step: Step) -> Outcome:
        if task.turn == 0:
            self._bmcs.write(task, step.step)
            if step.step == "boot":
                return WaitForCall(reason="the agent boots", then="next")
            if self._lots.random() < 0.5:
                return Again(after_s=self._lots.uniform(1, 15), reason="it takes its time")
        return DONE

    def act(self, task: DriverTask, method: str, limit_s: float | None = None) -> Outcome | None:
        return None


class ClusterPower(FakePower):
    """Reading takes a while, and writing too."""

    def __init__(self, conf: Conf, bmcs: Bmcs) -> None:
        super().__init__(conf)
        self.name, self._bmcs = "fake", bmcs

    def get_power_state(self, task: DriverTask) -> str | None:
        self._bmcs.read()
        return task.node.power_state

    def set_power_state(
        self, task: DriverTask, state: str, timeout_s: float | None = None
    ) -> Outcome:
        self._bmcs.write(task, state)
        return super().set_power_state(task, state, timeout_s)

    def reboot(self, task: DriverTask, timeout_s: float | None = None) -> Outcome:
        self._bmcs.write(task, "reboot")
        return super().reboot(task, timeout_s)


class ClusterInspect(FakeInspect):
    def __init__(self, conf: Conf, bmcs: Bmcs) -> None:
        super().__init__(conf)
        self.name, self._bmcs = "fake", bmcs

    def inspect_hardware(self, task: DriverTask) -> Outcome | None:
        self._bmcs.read()
        return DONE


def make_registry(conf: Conf, bmcs: Bmcs, scheduler: Scheduler) -> Registry:
    """The fake hardware type, its machines behind these BMCs."""
    loaded = registry.load(conf)
    interfaces = loaded.interfaces | {
        "deploy": {"fake": ClusterDeploy(conf, bmcs, scheduler)},
        "power": {"fake": ClusterPower(conf, bmcs)},
        "inspect": {"fake": ClusterInspect(conf, bmcs)},
    }
    return Registry(loaded.types, interfaces, dict.fromkeys(interfaces))
