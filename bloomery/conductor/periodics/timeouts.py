"""Fail the flows of nodes that waited too long for a heartbeat or an inventory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from bloomery.conductor import flows, runner, states, task_manager, tasks
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.states import State
from bloomery.db import nodes, rows, steps
from bloomery.model.step import find_parked

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class Wait(NamedTuple):
    """A node waits from ``began`` until ``ends``, in wall-clock times as rows hold them."""

    node: str
    began: datetime
    ends: datetime


class Watch:
    """Deadlines on the monotonic clock, because the wall clock may be set during a wait.

    The wall clock is read once per wait.  From then on a wait lasts no longer than its full
    time-out.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], datetime] = rows.now,
    ) -> None:
        self._clock, self._wall = clock, wall
        self._ends: dict[str, dict[Wait, float]] = {}

    def overdue(self, kind: str, waits: Sequence[Wait]) -> list[str]:
        """Return the nodes whose time is up; ``waits`` are all current waits of this kind."""
        earlier, now, wall = self._ends.get(kind, {}), self._clock(), self._wall()
        ends = {
            wait: earlier[wait]
            if wait in earlier
            else now + (wait.ends - max(wall, wait.began)).total_seconds()
            for wait in waits
        }
        self._ends[kind] = ends
        return [wait.node for wait in waits if ends[wait] < now]


def run(runtime: ConductorRuntime, watch: Watch | None = None) -> None:
    """Fail every overdue flow of ours, the oldest first, at most so many per state and run."""
    watch, options = watch or Watch(), runtime.conf.conductor
    for state, limit in states.WAIT_LIMITS.items():
        limit_s, timed_out = getattr(options, limit.option), 0
        if not limit_s:
            continue
        why = f"no call came within {limit_s} s ([conductor]{limit.option})"
        for uuid in list_overdue(runtime, watch, state, limit.since, timedelta(seconds=limit_s)):
            timed_out += _time_out(runtime, uuid, why)  # skipped nodes do not count
            if timed_out == options.periodic_max_workers:
                break
    shares = runtime.list_shares()
    with runtime.db.read() as conn:
        deadlines = steps.list_deadlines(conn, shares)
    ours = set(runtime.list_served(key for key, _, _ in deadlines))
    waits = [
        Wait(key.uuid, began or _LONG_AGO, ends) for key, ends, began in deadlines
        if key.uuid in ours
    ]  # fmt: skip
    for uuid in watch.overdue("step", waits):
        _time_out(runtime, uuid, "the step's own time limit passed")


def list_overdue(
    runtime: ConductorRuntime, watch: Watch, state: State, since: str, lasts: timedelta
) -> list[str]:
    """Return our nodes whose wait in ``state`` lasts longer, by the time in column ``since``."""
    shares = runtime.list_shares()
    with runtime.db.read() as conn:
        waiting = nodes.list_waiting(conn, shares, state, since)
    ours = set(runtime.list_served(key for key, _ in waiting))
    waits = [Wait(key.uuid, began, began + lasts) for key, began in waiting if key.uuid in ours]
    return watch.overdue(state, waits)


def _time_out(runtime: ConductorRuntime, uuid: str, why: str) -> bool:
    """Fail the waiting flow, or the node itself where it has none; return whether it was failed.

    A reserved node or one in maintenance is skipped.
    """
    context = tasks.background_context(runtime)
    with (
        tasks.skipping(uuid),
        runtime.workers.slot() as slot,
        task_manager.acquire(context, uuid, purpose="time-out", retry=False) as task,
    ):
        runs, state = flows.open_runs(task), task.node.provision_state
        if state in states.WAIT_STATES and not task.node.maintenance:
            run = find_parked(runs)
            place = f" at step {run.step.name}" if run else ""
            reason = f" ({run.reason})" if run and run.reason else ""
            sentence = f"timed out in {state}{place}{reason}: {why}"
            if runs:
                flow = flows.load(task, runs)
                task.spawn_after(runner.launch_failure, slot, flow, sentence, may_pass=True)
            else:
                target = runner.kept_target(task)
                task.process_event("fail", target_state=target, last_error=sentence)
            return True
    return False
