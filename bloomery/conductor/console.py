"""The console of a node: switched on request, stopped before the node is given up.

A request is a flow of one step.  Other flows call ``stop`` and ``restore``, which emit events.  A
console ends with the conductor that started it; ``driver_internal_info`` stores which incarnation
of which conductor did, or why the start failed.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conductor import notification_utils, runner, task_manager, tasks, writes
from bloomery.conductor.phase import FlowFailure, Phase, Transition
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.writes import EncodedWrite
from bloomery.db import nodes
from bloomery.drivers import base
from bloomery.model.step import internal_step

EmitEvent = Callable[[EncodedWrite], None]
INFO: Final = "console"  # in driver_internal_info: {conductor, incarnation, error}


# --------------------------------------------------------------------- on the way elsewhere


def stop(task: TaskManager, action: str, emit_event: EmitEvent | None = None) -> None:
    """Stop the console and emit the events of ``action``, by default in their own transactions."""
    _run_with_events(task, action, _stop, emit_event or task.save)


def restore(task: TaskManager) -> None:
    """Start the console again after its conductor ended."""
    _run_with_events(task, "console_restore", _start, task.save)


def take_over(task: TaskManager) -> None:
    """Start a console whose conductor is gone; a failure leaves it enabled, with the reason.

    Does nothing where the console is off, or this incarnation has started it or tried.
    """
    node = task.node
    if not node.console_enabled or is_of_this_life(task.runtime, node.driver_internal_info):
        return
    try:
        restore(task)
    except Exception as exc:  # noqa: BLE001  the failure of one console stops no other
        sentence = f"cannot restart the console: {secrets.brief(exc)}"
        node.driver_internal_info[INFO] = _life(task.runtime) | {"error": sentence}
        task.save(writes.failure_entry(task.context, node, sentence, "console"))


def take_over_all(runtime: ConductorRuntime) -> None:
    """Release consoles that another conductor has started, and take over those of our nodes."""
    with runtime.db.read() as conn:
        consoles = nodes.list_consoles(conn)
    orphans = [key for key, info in consoles if not is_of_this_life(runtime, info)]
    for interface in runtime.registry.interfaces["console"].values():
        assert isinstance(interface, base.Console)
        interface.release([key.uuid for key in orphans])

    def work(uuid: str) -> None:
        with tasks.skipping(uuid):
            context = tasks.background_context(runtime)
            with task_manager.acquire(context, uuid, purpose="console", retry=False) as task:
                take_over(task)

    most = runtime.conf.conductor.periodic_max_workers
    runtime.workers.each(runtime.list_served(orphans), work, most=most)


def is_of_this_life(runtime: ConductorRuntime, internal_info: Mapping[str, Any]) -> bool:
    """Return whether this incarnation of the conductor started the console or tried to."""
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
    with contextlib.suppress(errors.UnsupportedDriverExtension):
        task.driver.console.stop_console(task)
    task.node.console_enabled = False
    task.node.driver_internal_info.pop(INFO, None)


# --------------------------------------------------------------------------------- on request


def set_console_mode(context: Context, node_uuid: str, enabled: bool) -> None:
    """Start a flow that switches the console, unless it is in that state already."""
    with tasks.order(context, node_uuid, "console") as (task, slot):
        task.driver.console.validate(task)
        has_failed = "error" in task.node.driver_internal_info.get(INFO, ())
        if task.node.console_enabled == enabled and not has_failed:
            return
        step = internal_step("console", "switch", {"enabled": enabled})
        runner.start(task, slot, CONSOLE, step, _notification(task, "start"))


def get_console_information(context: Context, node_uuid: str) -> dict[str, Any] | None:
    with tasks.shared(context, node_uuid) as task:
        if not task.node.console_enabled:
            return None
        task.driver.console.validate(task)
        return task.driver.console.get_console(task)


def _notification(task: TaskManager, status: str) -> EncodedWrite:
    return notification_utils.emit_console_notification(
        task.context, task.node, "console_set", status
    )


def _switch(task: TaskManager, enabled: bool) -> None:
    (_start if enabled else _stop)(task)


def _finish(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    return Transition(event=None, writes=[_notification(task, "end")])


def _fail(task: TaskManager, failure: FlowFailure) -> Transition:
    entry = writes.failure_entry(task.context, task.node, failure.sentence, "console")
    return Transition(event=None, writes=[_notification(task, "error"), entry])


CONSOLE: Final = Phase(
    name="console", own_steps={"switch": _switch}, finish=_finish, fail=_fail, urgent=True
)
