"""Nodes that waited too long for a call: their flow fails, and says so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from bloomery.conductor import recovery, runner, states, task_manager
from bloomery.conductor.house import House
from bloomery.conductor.periodics import looking
from bloomery.conductor.states import Limit, State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.db import nodes, rows, steps


def make(house: House) -> Callable[[], None]:
    return partial(run, house)


def run(house: House) -> None:
    """Fail every flow whose time is up, the oldest first, so many per state and pass."""
    for state, limit in states.WAIT_LIMITS.items():
        limit_s = getattr(house.conf.conductor, limit.option)
        if limit_s:
            _fail_overdue(house, state, limit, limit_s)
    with house.db.read() as conn:
        missed = steps.list_past_deadline(conn, rows.now())
    for uuid in missed:
        _time_out(house, uuid, "the step's own time limit passed")


def _fail_overdue(house: House, state: State, limit: Limit, limit_s: int) -> None:
    before = rows.now() - timedelta(seconds=limit_s)
    most = house.conf.conductor.periodic_max_workers
    with house.db.read() as conn:
        overdue = nodes.list_idle_since(conn, state, limit.since, before, most)
    for uuid in overdue:
        _time_out(house, uuid, f"no call came within {limit_s} s ([conductor]{limit.option})")


def _time_out(house: House, uuid: str, why: str) -> None:
    context = looking.context_of(house)
    with (
        looking.skipping(uuid),
        house.workers.slot() as slot,
        task_manager.acquire(context, uuid, purpose="time-out", retry=False) as task,
    ):
        if task.node.provision_state in states.WAIT_STATES and not task.node.maintenance:
            _fail(task, slot, f"Node {uuid}: timed out in {task.node.provision_state}: {why}")


def _fail(task: TaskManager, slot: Slot, sentence: str) -> None:
    """Fail the flow that waits; a node that waits without one fails by itself."""
    with task.house.db.read() as conn:
        runs = steps.list_open(conn, task.node.uuid)
    if runs:
        flow = runner.reopen(task, recovery.PHASES[runs[0].phase], runs)
        task.spawn_after(runner.launch_failure, slot, flow, sentence)
    else:
        task.process_event("fail", target_state=runner.kept_target(task), last_error=sentence)
