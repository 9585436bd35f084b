"""A step of a node's flow that runs on a child node.

The parent's flow has one row for each child, so that a successor knows which children are done. The
task holds the child during its step only, and while its BMC works (``Again``).  The parent's task
carries the child's lock.  The child's provision state stays.
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
    """Run one attempt of ``step`` on ``step.child``; the arguments are readable.

    Raises the child's NodeLocked and NodeNotFound, and StepFailure where the child would wait or
    hold.
    """
    if task.child is None or task.child.node_id != step.child:
        task.release_child()
        context = dataclasses.replace(task.context, in_place=True)
        purpose = f"step {step.name} of parent node {task.node.uuid}"
        task.child = task_manager.acquire(context, str(step.child), purpose=purpose)
    child = task.child  # of this attempt, or of the one before
    child.turn, child.insists, child.reads = task.turn, task.insists, {}
    if step.step in steps.ON_CHILDREN:
        outcome: Outcome = steps.RESERVED[step.step](child)
    else:
        outcome = child.driver.interface(step.interface).run_step(child, step)
    if isinstance(outcome, Again):
        _save(child)
        return outcome
    option = "permit_child_node_step_async_result"
    may_go_on = isinstance(outcome, WaitForCall) and getattr(task.runtime.conf.conductor, option)
    if isinstance(outcome, Hold | WaitForCall) and not may_go_on:
        verb = "wait" if isinstance(outcome, WaitForCall) else "hold"
        raise errors.StepFailure(
            reason=f"the step wants to {verb} ({outcome.reason}), which no child node can; "
            f"[conductor]{option} lets the flow go on without waiting",
        )
    result = outcome.result if isinstance(outcome, Done) else {}
    events = []
    if target := _TARGETS.get(step.step):
        emit = notification_utils.emit_power_set_notification
        events = [emit(child.context, child.node, status, target) for status in ("start", "end")]
    _save(child, *steps.store_result(child, result), *events, release=True)
    task.release_child()
    return DONE


def _save(child: TaskManager, *journal: EncodedWrite, release: bool = False) -> None:
    """Write the changes of the child; a lost lock of the child fails the step, not the parent."""
    try:
        child.save(*journal, release=release)
    except errors.LockLost as lost:
        raise errors.StepFailure(reason=str(lost)) from lost
