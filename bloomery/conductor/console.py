"""The console of a node: switched on request, stopped before the node is given up.

A request is a flow of one step.  Flows that stop or restore a console on the way emit its events
with ``stop`` and ``restore``.  A console lives as long as the conductor that started it:
``driver_internal_info`` says which life of which conductor that is, or why it did not start.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conductor import notification_utils, runner, writes
from bloomery.conductor.phase import FlowFailure, Phase, Transition
from bloomery.conductor.runner import Flow
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.conductor.writes import EncodedWrite
from bloomery.model.step import internal_step

EmitEvent = Callable[[EncodedWrite], None]
INFO: Final = "console"  # in driver_internal_info: {conductor, incarnation, error}


def show(task: TaskManager) -> dict[str, str] | None:
    """Return where the console is reached; None while it is off."""
    if not task.node.console_enabled:
        return None
    task.driver.console.validate(task)
    return task.driver.console.get_console(task)


# --------------------------------------------------------------------- on the way elsewhere


def stop(task: TaskManager, action: str, emit_event: EmitEvent | None = None) -> None:
    """Stop the console, with events of ``action``; ``emit_event``: where rows come later."""
    _run_with_events(task, action, _stop, emit_event or task.save)


def restore(task: TaskManager) -> None:
    """Start the console anew: whoever ran it is gone."""
    _run_with_events(task, "console_restore", _start, task.save)


def take_over(task: TaskManager) -> None:
    """Start a console whose conductor is gone; if that fails it stays wished for, and says why.

    Nothing where it is off, or was begun in this life of this conductor.
    """
    node = task.node
    if not node.console_enabled or is_of_this_life(task.runtime, node.driver_internal_info):
        return
    try:
        restore(task)
    except Exception as exc:  # noqa: BLE001  whatever a driver raises is told, and ends no other
        sentence = f"cannot restart the console: {secrets.brief(exc)}"
        node.last_error = sentence
        node.driver_internal_info[INFO] = _life(task.runtime) | {"error": sentence}
        task.save(_failure_entry(task, sentence))


def is_of_this_life(runtime: ConductorRuntime, internal_info: Mapping[str, Any]) -> bool:
    """Was the console started, or tried, since this conductor registered last?"""
    begun = internal_info.get(INFO) or {}
    return bool(begun) and begun.items() >= _life(runtime).items()


def _life(runtime: ConductorRuntime) -> dict[str, Any]:
    return {"conductor": runtime.host, "incarnation": runtime.lease.incarnation}


def _run_with_events(
    task: TaskManager, action: str, work: Callable[[TaskManager], None], emit_event: EmitEvent
) -> None:
    event = functools.partial(
        notification_utils.emit_console_notification, task.context, task.node, action
    )
    emit_event(event("start"))
    try:
        work(task)
    except Exception as exc:
        task.node.last_error = secrets.brief(exc)
        emit_event(event("error"))
        raise
    emit_event(event("end"))


def _start(task: TaskManager) -> None:
    task.driver.console.start_console(task)
    task.node.console_enabled = True
    task.node.driver_internal_info[INFO] = _life(task.runtime)


def _stop(task: TaskManager) -> None:
    """An interface that has no consoles has none to stop: that may not keep the node."""
    with contextlib.suppress(errors.UnsupportedDriverExtension):
        task.driver.console.stop_console(task)
    task.node.console_enabled = False
    task.node.driver_internal_info.pop(INFO, None)


# --------------------------------------------------------------------------------- on request


def start_switch(task: TaskManager, slot: Slot, enabled: bool) -> None:
    """Let a flow begin that switches the console on or off; nothing where it is so already."""
    task.driver.console.validate(task)
    has_failed = "error" in task.node.driver_internal_info.get(INFO, ())
    if task.node.console_enabled == enabled and not has_failed:
        return
    task.node.last_error = None
    step = internal_step("console", "switch", {"enabled": enabled})
    runner.start(task, slot, CONSOLE, step, _undo, _notification(task, "start"))


def _notification(task: TaskManager, status: str) -> EncodedWrite:
    """Return the write of the event ``baremetal.node.console_set.<status>``."""
    return notification_utils.emit_console_notification(
        task.context, task.node, "console_set", status
    )


def _switch(task: TaskManager, enabled: bool) -> None:
    (_start if enabled else _stop)(task)


def _finish(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    return Transition(event=None, writes=[_notification(task, "end")])


def _fail(task: TaskManager, failure: FlowFailure) -> Transition:
    return Transition(event=None, writes=_give_up(task, failure.sentence))


def _undo(exc: Exception, flow: Flow) -> None:
    """No worker came: the console is as it was, and the node says why."""
    flow.task.save(flow.cancelled, *_give_up(flow.task, secrets.brief(exc)))


def _give_up(task: TaskManager, sentence: str) -> list[EncodedWrite]:
    task.node.last_error = sentence
    return [_notification(task, "error"), _failure_entry(task, sentence)]


def _failure_entry(task: TaskManager, sentence: str) -> EncodedWrite:
    return writes.history_entry(
        task.context, task.node, sentence, event_type="console", failed=True
    )


CONSOLE: Final = Phase(
    name="console", own_steps={"switch": _switch}, finish=_finish, fail=_fail, urgent=True
)
