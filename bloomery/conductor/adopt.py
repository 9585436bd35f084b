"""Adopt: take over a machine that runs its user's system already, without touching it."""

from __future__ import annotations

from typing import Final

from bloomery.conductor import console
from bloomery.conductor.runner import Phase, Transition
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.step import Step, StepRun, internal_step

_TAKE_OVER: Final = internal_step("deploy", "adopt")


def steps(task: TaskManager) -> list[Step]:
    return [_TAKE_OVER]


def _adopt(task: TaskManager) -> None:
    driver, node = task.driver, task.node
    driver.power.validate(task)
    driver.boot.validate(task)
    driver.deploy.take_over(task)
    if node.console_enabled:
        console.restore(task)
    node.power_state = driver.power.get_power_state(task) or node.power_state
    node.conductor_affinity = task.runtime.host


def _finish(task: TaskManager) -> Transition:
    return Transition(event="done")


def _fail(task: TaskManager, run: StepRun, sentence: str) -> Transition:
    task.node.power_state = None
    return Transition(event="fail", last_error=sentence)


PHASE: Final = Phase(name="adopt", own_steps={"adopt": _adopt}, finish=_finish, fail=_fail)
