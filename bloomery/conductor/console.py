"""The console of a node: switched on request, stopped before the node is given up.

A request is a flow of one step.  Who stops or restores a console on the way to something else
tells of it with ``stop`` and ``restore``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

from bloomery import errors, secrets
from bloomery.conductor import notification_utils
from bloomery.conductor.runner import Flow, Phase, Transition
from bloomery.conductor.task_manager import TaskManager, Write
from bloomery.model.step import Step, StepRun, internal_step

Tell = Callable[[Write], None]


def steps(enabled: bool) -> list[Step]:
    """Return the step that switches the console on or off."""
    args = {"enabled": enabled}
    return [internal_step("console", "switch", args)]


def show(task: TaskManager) -> dict[str, str] | None:
    """Return where the console is reached; None while it is off."""
    if not task.node.console_enabled:
        return None
    task.driver.console.validate(task)
    return task.driver.console.get_console(task)


# --------------------------------------------------------------------- on the way elsewhere


def stop(task: TaskManager, action: str, tell: Tell | None = None) -> None:
    """Stop the console and tell of it as ``action``; ``tell``: where not as rows at once."""
    _tell_around(task, action, _stop, tell or task.save)


def restore(task: TaskManager) -> None:
    """Start the console anew: whoever ran it is gone."""
    _tell_around(task, "console_restore", _start, task.save)


def _tell_around(
    task: TaskManager, action: str, work: Callable[[TaskManager], None], tell: Tell
) -> None:
    tell(notification_utils.emit_console_notification(task, action, "start"))
    try:
        work(task)
    except Exception as exc:
        task.node.last_error = secrets.brief(exc)
        tell(notification_utils.emit_console_notification(task, action, "error"))
        raise
    tell(notification_utils.emit_console_notification(task, action, "end"))


def _start(task: TaskManager) -> None:
    task.driver.console.start_console(task)
    task.node.console_enabled = True


def _stop(task: TaskManager) -> None:
    """An interface that has no consoles has none to stop: that may not keep the node."""
    with contextlib.suppress(errors.UnsupportedDriverExtension):
        task.driver.console.stop_console(task)
    task.node.console_enabled = False


# --------------------------------------------------------------------------------- on request


def notification(task: TaskManager, status: str) -> Write:
    """Return the write of the event ``baremetal.node.console_set.<status>``."""
    return notification_utils.emit_console_notification(task, "console_set", status)


def _switch(task: TaskManager, enabled: bool) -> None:
    (_start if enabled else _stop)(task)


def _finish(task: TaskManager) -> Transition:
    return Transition(event=None, writes=[notification(task, "end")])


def _fail(task: TaskManager, run: StepRun, sentence: str) -> Transition:
    task.node.last_error = sentence
    entry = task.remember(sentence, event_type="console", failed=True)
    return Transition(event=None, writes=[notification(task, "error"), entry])


def undo(exc: Exception, flow: Flow) -> None:
    """No worker came: the console is as it was, and the node says why."""
    task = flow.task
    task.node.last_error = secrets.brief(exc)
    entry = task.remember(task.node.last_error, event_type="console", failed=True)
    task.save(flow.cancelled, entry, notification(task, "error"))


PHASE: Final = Phase(
    name="console", own_steps={"switch": _switch}, finish=_finish, fail=_fail, urgent=True
)
