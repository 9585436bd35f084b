"""The console of a node: stopped before the node is given up, restored when it is taken over."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from bloomery import errors, secrets
from bloomery.conductor import announce
from bloomery.conductor.task_manager import TaskManager, Write

Tell = Callable[[Write], None]


def stop(task: TaskManager, action: str, tell: Tell | None = None) -> None:
    """Stop the console and tell of it as ``action``; ``tell``: where not as rows at once."""
    _tell_around(task, action, _stop, tell or task.save)


def restore(task: TaskManager) -> None:
    """Start the console anew: whoever ran it is gone."""
    _tell_around(task, "console_restore", _start, task.save)


def _tell_around(
    task: TaskManager, action: str, work: Callable[[TaskManager], None], tell: Tell
) -> None:
    tell(announce.emit_console_notification(task, action, "start"))
    try:
        work(task)
    except Exception as exc:
        task.node.last_error = secrets.brief(exc)
        tell(announce.emit_console_notification(task, action, "error"))
        raise
    tell(announce.emit_console_notification(task, action, "end"))


def _start(task: TaskManager) -> None:
    task.driver.console.start_console(task)
    task.node.console_enabled = True


def _stop(task: TaskManager) -> None:
    """An interface that has no consoles has none to stop: that may not keep the node."""
    with contextlib.suppress(errors.UnsupportedDriverExtension):
        task.driver.console.stop_console(task)
    task.node.console_enabled = False
