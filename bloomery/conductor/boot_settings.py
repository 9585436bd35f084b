"""Boot mode and secure boot on request: a flow of one step, as a machine may need a restart."""

from __future__ import annotations

from typing import Any, Final

from bloomery import secrets
from bloomery.conductor.runner import Flow, Phase, Transition
from bloomery.conductor.task_manager import TaskManager
from bloomery.model.step import Step, StepRun, internal_step
from bloomery.outcome import Outcome

_SETTERS: Final = {"boot_mode": "set_boot_mode", "secure_boot": "set_secure_boot_state"}


def steps(field: str, value: Any) -> list[Step]:
    """Return the step that brings the node's ``boot_mode`` or ``secure_boot`` to ``value``."""
    args = {"field": field, "value": value}
    return [internal_step("management", "set", args)]


def _set(task: TaskManager, field: str, value: Any) -> Outcome | None:
    task.notes["set"] = field, value
    if task.turn == 0:
        task.node.last_error = None  # as power does: the history keeps it
        if getattr(task.node, field) == value:
            return None
    said: Outcome | None = getattr(task.driver.management, _SETTERS[field])(task, value)
    return said


def _finish(task: TaskManager) -> Transition:
    setattr(task.node, *task.notes["set"])
    return Transition(event=None)


def _fail(task: TaskManager, run: StepRun, sentence: str) -> Transition:
    task.node.last_error = sentence
    return Transition(event=None, writes=[task.remember(sentence, event_type="boot", failed=True)])


def undo(exc: Exception, flow: Flow) -> None:
    """No worker came: nothing was set, and the node says why."""
    node = flow.task.node
    node.last_error = secrets.brief(exc)
    flow.task.save(
        flow.cancelled, flow.task.remember(node.last_error, event_type="boot", failed=True),
    )  # fmt: skip


PHASE: Final = Phase(
    name="boot_settings", own_steps={"set": _set}, finish=_finish, fail=_fail, urgent=True
)
