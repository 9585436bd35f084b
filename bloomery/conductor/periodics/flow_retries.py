"""Try cleanings and inspections again that failed for a cause that may pass.

The failure has noted on the node when (``cleanup.plan_retry``).  A cleaning begins again by way of
manageable, as an operator would order it; after a crash in between, the note remains.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from bloomery import clock, errors, secrets
from bloomery.conductor import task_manager, tasks, verbs, writes
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.verbs import FlowVerb
from bloomery.conductor.workers import Slot
from bloomery.db import nodes
from bloomery.db import steps as step_rows
from bloomery.model.node import FLOW_RETRY
from bloomery.model.request import ProvisionArguments
from bloomery.model.rules import nodes as rules
from bloomery.model.step import Step

LOG = logging.getLogger(__name__)

_FAULT: Final = "clean failure"
_STATES: Final = (State.CLEANFAIL, State.INSPECTFAIL, State.MANAGEABLE)


def run(runtime: ConductorRuntime) -> None:
    """Begin the due retries of our nodes, the longest due first."""
    with runtime.db.read() as conn:
        noted = nodes.list_with_info(conn, runtime.list_shares(), FLOW_RETRY, _STATES)
    due = [(info[FLOW_RETRY].get("due_at") or "", key) for key, info in noted]
    for uuid in runtime.list_served(key for at, key in sorted(due) if _has_passed(at)):
        with tasks.skipping(uuid):
            _retry(runtime, uuid)


def _retry(runtime: ConductorRuntime, uuid: str) -> None:
    """Begin the flow anew, later where the limit of cleanings is reached, or never if refused.

    Errors leave the block of the task, so that no flow starts whose move was not written.
    """
    context = tasks.background_context(runtime)
    try:
        with (
            runtime.workers.slot(allow_reserved=False) as slot,
            task_manager.acquire(context, uuid, purpose="retry", retry=False) as task,
        ):
            _move(task, slot)
    except errors.ConcurrentActionLimit as full:
        LOG.info("node %s: its cleaning waits: %s", uuid, full)
    except errors.Invalid as exc:
        with task_manager.acquire(context, uuid, purpose="retry", retry=False) as task:
            task.node.driver_internal_info.pop(FLOW_RETRY, None)
            text = f"It is not tried again: {secrets.brief(exc)}"
            task.save(writes.history_entry(context, task.node, text, event_type="retry"))


def _has_passed(due_at: str) -> bool:
    return bool(due_at) and datetime.fromisoformat(due_at) <= clock.now()


def _move(task: TaskManager, slot: Slot) -> None:
    """Order the flow, unless an operator has taken the node over."""
    node, info = task.node, task.node.driver_internal_info
    note: dict[str, Any] = info.get(FLOW_RETRY) or {}
    is_ours = not node.maintenance or node.fault == _FAULT
    moved = node.provision_state == State.MANAGEABLE
    if not _has_passed(note.get("due_at") or "") or not is_ours or bool(note.get("event")) != moved:
        return
    if not moved:
        text = f"It is tried again by itself: retry {note['attempt']} of {note['of']}"
        task.save(writes.history_entry(task.context, node, text, event_type="retry"))
    if node.provision_state == State.INSPECTFAIL:
        _begin(task, slot, "inspect", note)
        return
    if not moved:
        is_manual = node.target_provision_state == State.MANAGEABLE
        note["event"] = "clean" if is_manual else "provide"
        rules.end_fault(node, _FAULT)
        task.process_event("manage")
    _begin(task, slot, note["event"], note)


def _begin(task: TaskManager, slot: Slot, event: str, note: Mapping[str, Any]) -> None:
    """Start the flow as the attempt of ``note``; a manual cleaning has the steps that failed."""
    verb = verbs.TABLE[event]
    assert isinstance(verb, FlowVerb)
    begin = verb.begin

    def begin_counted(task: TaskManager, arguments: ProvisionArguments) -> None:
        begin(task, arguments)
        counted = {"attempt": note["attempt"], "of": note["of"]}
        task.node.driver_internal_info[FLOW_RETRY] = counted

    def same_steps(task: TaskManager, _arguments: ProvisionArguments) -> list[Step]:
        with task.runtime.db.read() as conn:
            return [run.step for run in step_rows.list_newest(conn, task.node.uuid, "clean")]

    verb = replace(verb, begin=begin_counted)
    if event == "clean":
        verb = replace(verb, steps=same_steps)
    arguments = ProvisionArguments(disable_ramdisk=bool(note.get("disable_ramdisk")))
    verbs.start_flow(task, slot, event, verb, arguments, ())
