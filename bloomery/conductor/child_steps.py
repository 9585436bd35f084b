"""A step of a node's flow that runs on a node below it.

Its row belongs to the flow of the parent, one row for each child, so that a conductor that takes
the flow up knows which children are done.  The child is held for its step alone, and as long as
its BMC works (``Again``); the lock travels with the parent's task.  The child moves to no other
provision state.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from bloomery import errors
from bloomery.conductor import notification_utils, steps, task_manager
from bloomery.conductor.states import Power
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.writes import EncodedWrite
from bloomery.model.step import Step
from bloomery.outcome import DONE, Again, Done, Hold, Outcome, WaitForCall

_TARGETS: Final = {"power_on": Power.ON, "power_off": Power.OFF, "reboot": Power.REBOOT}


def run(task: TaskManager, step: Step) -> Outcome:
    """Take one turn of ``step``, its arguments readable, on ``step.child``.

    Raises NodeLocked, NodeNotFound of the child, StepFailure where it would wait or hold.
    """
    child = _task_of_child(task, step)
    child.turn, child.insists, child.reads = task.turn, task.insists, {}
    outcome = _call(child, step)
    if isinstance(outcome, Again):
        _save(child)
        return outcome
    if isinstance(outcome, Hold | WaitForCall):
        _refuse_waiting(task, step, outcome)
    result = outcome.result if isinstance(outcome, Done) else {}
    _save(child, *steps.store_result(child, result), *_power_events(child, step), release=True)
    task.release_child()
    return DONE


def _task_of_child(task: TaskManager, step: Step) -> TaskManager:
    """Return the child's task: the one of the turn before, or a new one that waited its turn."""
    if task.child is None or task.child.node_id != step.child:
        task.release_child()
        context = dataclasses.replace(task.context, in_place=True)
        purpose = f"step {step.name} of parent node {task.node.uuid}"
        task.child = task_manager.acquire(context, str(step.child), purpose=purpose)
    return task.child


def _call(child: TaskManager, step: Step) -> Outcome:
    if step.step in steps.ON_CHILDREN:
        return steps.RESERVED[step.step](child)
    return child.driver.interface(step.interface).run_step(child, step)


def _power_events(child: TaskManager, step: Step) -> list[EncodedWrite]:
    """The events of a power change, written together once it is done."""
    if step.step not in _TARGETS:
        return []
    emit = notification_utils.emit_power_set_notification
    target = _TARGETS[step.step]
    return [emit(child.context, child.node, status, target) for status in ("start", "end")]


def _refuse_waiting(task: TaskManager, step: Step, outcome: Hold | WaitForCall) -> None:
    """A child stands in no state that could wait; the operator may let the flow go on instead."""
    option = "permit_child_node_step_async_result"
    if isinstance(outcome, WaitForCall) and getattr(task.runtime.conf.conductor, option):
        return
    verb = "wait" if isinstance(outcome, WaitForCall) else "hold"
    raise errors.StepFailure(
        reason=f"the step wants to {verb} ({outcome.reason}), which no child node can; "
        f"[conductor]{option} lets the flow go on without waiting",
    )


def _save(child: TaskManager, *journal: EncodedWrite, release: bool = False) -> None:
    """Write what the step did to the child.  The parent's lock is another one, and may live on."""
    try:
        child.save(*journal, release=release)
    except errors.LockLost as lost:
        raise errors.StepFailure(reason=str(lost)) from lost
