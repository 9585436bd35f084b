"""Forget a node: end all work on it, and remove its record; power and disks stay as they are.

The order takes the node over from whoever holds it: the holder's next write, to the database or to
the BMC, fails with LockLost.  The same transaction ends the node's flow and begins a flow of its
own, so that a conductor that dies meanwhile leaves no half: another one goes on with the removal.
Console and virtual media are closed as far as the BMC answers; the event says what was left open.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import allocations, cleanup, console, runner
from bloomery.conductor.phase import Phase, Transition, records_failure
from bloomery.conductor.row_updates import CrudEvent
from bloomery.conductor.runtime import Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.db import nodes
from bloomery.db import steps as step_rows
from bloomery.model.rules import nodes as rules
from bloomery.model.step import internal_step
from bloomery.outcome import Again, Done, Outcome

_PURPOSE: Final = "forget"
_REST_S: Final = 1.5  # in which the former holder notices: it trusts its last look for a second


def forget(context: Context, node_uuid: str, force: bool) -> None:
    """Take the node over and start a flow that removes it; ``force``: with its instance."""
    held: list[str | None] = []

    def check(node: Any) -> None:
        rules.check_forgettable(node, force=force)
        held.append(node.reservation)

    with (
        context.runtime.workers.slot() as slot,
        TaskManager(
            context, node_uuid, purpose=_PURPOSE, takes_over=check, load_driver=False, insists=True
        ) as task,
    ):
        give_up = partial(step_rows.give_up, node_uuid=node_uuid)
        step = internal_step("management", "close", {"waits": held[-1] is not None})
        runner.start(task, slot, FORGET, step, first=[give_up])
        timers = context.runtime.timers  # a flow that pauses learns now that it has lost the node
        timers.bring_forward(runner.start_attempt, lambda flow: flow.task.node_id == node_uuid)


def _close(task: TaskManager, waits: bool) -> Outcome:
    """Close console and virtual media as far as the BMC answers."""
    if waits and not task.turn:
        return Again(after_s=_REST_S, reason="the work that was under way ends")
    problem = cleanup.tidy(task, TaskManager.load_driver)
    if problem is not None:
        return Done(result={"left_open": [f"console and media, as its driver fails: {problem}"]})
    left_open = []
    if task.node.console_enabled:
        problem = cleanup.tidy(task, partial(console.stop, action="console_set"))
        left_open += [f"its console: {problem}"] if problem else []
    problem = cleanup.tidy_in_turns(task, _eject)
    left_open += [f"its virtual media: {problem}"] if problem else []
    return Done(result={"left_open": left_open})


def _eject(task: TaskManager) -> Outcome | None:
    with contextlib.suppress(errors.UnsupportedDriverExtension):
        return task.driver.management.detach_virtual_media(task)
    return None


def _finish(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    uuid, left_open = task.node.uuid, list(result.get("left_open", ()))
    if left_open:
        task.log("forgotten, and left open: %s", "; ".join(left_open))
    event = CrudEvent(
        task.context, "node", uuid, "delete", {"is_forgotten": True, "left_open": left_open}
    )
    event.snapshot_deletion(task.node)
    release_allocation = allocations.release(task.context, task.node)

    def remove(conn: sa.Connection) -> None:
        release_allocation(conn)
        nodes.delete(conn, uuid)
        event(conn)

    cleanup.drop_certificate(task.runtime, uuid)
    return Transition(event=None, writes=[remove])


FORGET: Final = Phase(
    name="forget", own_steps={"close": _close}, finish=_finish, fail=records_failure("forget")
)
