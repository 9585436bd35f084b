"""Inspect: find out what a node is made of."""

from __future__ import annotations

from typing import Final

from bloomery.conductor import cleanup, internal_info
from bloomery.conductor.runner import Phase, Transition
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.step import Run, Step, StepRun, internal_step
from bloomery.outcome import Outcome

_INSPECT: Final = internal_step("inspect", "inspect_hardware")


def check(task: TaskManager) -> None:
    """Raise unless the node's driver could inspect it."""
    task.driver.power.validate(task)
    task.driver.inspect.validate(task)


def steps(task: TaskManager) -> list[Step]:
    return [_INSPECT]


def begin(task: TaskManager) -> None:
    internal_info.wipe(task.node)


def stop(task: TaskManager) -> None:
    """Take away what waits for the agent's findings."""
    cleanup.tidy(task, task.driver.inspect.abort)


def _inspect(task: TaskManager) -> Outcome | None:
    return task.driver.inspect.inspect_hardware(task)


def _finish(task: TaskManager) -> Transition:
    return Transition(event="done")


def _fail(task: TaskManager, run: StepRun, sentence: str) -> Transition:
    if run.state == Run.WAITING:
        stop(task)
    internal_info.wipe(task.node)
    return Transition(event="fail", last_error=sentence)


PHASE: Final = Phase(
    name="inspect",
    own_steps={"inspect_hardware": _inspect},
    finish=_finish,
    fail=_fail,
)
