"""Abort: stop what waits or is held, and take away what it had prepared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from bloomery import errors
from bloomery.conductor import clean, deploy, inspect, internal_info, rescue, runner, servicing
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager, Write
from bloomery.conductor.workers import Slot
from bloomery.db import rows, steps
from bloomery.model.step import Run, StepRun, find_parked


class Abort(NamedTuple):
    """How to abort in one state: the events to fire, and what a worker takes away then."""

    events: tuple[str, ...]
    take_away: Callable[[TaskManager], None]
    of: str | None  # whose traces in driver_internal_info are wiped
    shows: str | None  # the node's field that shows the step


def _stop_rescue(task: TaskManager) -> None:
    """A node that keeps half of a rescue needs an operator."""
    rescue.forget_password(task.node)
    problem = rescue.clean_up(task)
    if problem:
        task.node.maintenance, task.node.fault = True, "rescue abort failure"
        task.node.maintenance_reason = problem


TABLE: Final[dict[State, Abort]] = {
    State.CLEANWAIT: Abort(("abort",), clean.tear_down, "clean", "clean_step"),
    State.CLEANHOLD: Abort(("abort",), clean.tear_down, "clean", "clean_step"),
    State.DEPLOYWAIT: Abort(("abort",), deploy.clean_up, "deploy", "deploy_step"),
    State.DEPLOYHOLD: Abort(("abort",), deploy.clean_up, "deploy", "deploy_step"),
    State.INSPECTWAIT: Abort(("abort",), inspect.stop, None, None),
    State.RESCUEWAIT: Abort(("abort",), _stop_rescue, None, None),
    State.SERVICEWAIT: Abort(("fail", "abort"), servicing.tear_down, "service", "service_step"),
    State.SERVICEHOLD: Abort(("fail", "abort"), servicing.tear_down, "service", "service_step"),
    State.SERVICEFAIL: Abort(("abort",), servicing.tear_down, "service", "service_step"),
}


def ask(task: TaskManager, slot: Slot) -> None:
    """Abort, or mark a step that may not be cut off: then the flow ends after it."""
    node = task.node
    how = TABLE[State(str(node.provision_state))]
    if node.provision_state == State.SERVICEFAIL and node.maintenance:
        raise errors.Conflict(
            reason=f"cannot abort the service of node {node.uuid} in maintenance: "
            "end maintenance first",
        )
    with task.runtime.db.read() as conn:
        runs = steps.list_open(conn, node.uuid)
    run = find_parked(runs)
    if run is not None and not run.step.internal and not _may_stop(run):
        _mark(task, how)
        return
    _abort(task, slot, how, runs)


def _may_stop(run: StepRun) -> bool:
    return run.step.abortable or run.state == Run.HELD


def _mark(task: TaskManager, how: Abort) -> None:
    if how.shows is not None:
        setattr(task.node, how.shows, getattr(task.node, how.shows) | {"abort_after": True})
        task.save()


def _abort(task: TaskManager, slot: Slot, how: Abort, runs: list[StepRun]) -> None:
    sentence = _sentence(task, find_parked(runs))
    ended = _end_rows(runs, sentence)
    for event in how.events[:-1]:
        task.process_event(event, last_error=sentence, journal=ended)
        ended = []
    task.process_event(
        how.events[-1],
        callback=slot.spawn,
        call_args=(_take_away, task, how),
        target_state=runner.kept_target(task),
        last_error=sentence,
        journal=ended,
    )


def _sentence(task: TaskManager, run: StepRun | None) -> str:
    step = f" at step {run.step.name}" if run is not None and not run.step.internal else ""
    return f"Node {task.node.uuid}: aborted on request in {task.node.provision_state}{step}"


def _end_rows(runs: list[StepRun], sentence: str) -> list[Write]:
    """Close the rows of the flow: it does not go on."""
    run = find_parked(runs)
    if run is None:
        return []
    values = {"state": Run.FAILED, "finished_at": rows.now(), "error": sentence}
    return [
        lambda conn: steps.change(conn, run.flow, run.position, values),
        lambda conn: steps.skip_rest(conn, run.flow),
    ]


def _take_away(task: TaskManager, how: Abort) -> None:
    how.take_away(task)
    internal_info.wipe(task.node, *([how.of] if how.of else []))
    if how.shows is not None:
        setattr(task.node, how.shows, {})
    task.save()
