"""The phases by name, and the calls that resume or end a parked flow: heartbeat, unhold, abort."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from bloomery import errors, secrets
from bloomery.conductor import (
    cleaning,
    cleanup,
    console,
    deployments,
    enrollment,
    power,
    removal,
    rescue,
    runner,
    servicing,
    states,
    task_manager,
    vendor_passthru,
    virtual_media,
)
from bloomery.conductor.phase import FlowFailure, Phase, Transition
from bloomery.conductor.runner import Flow
from bloomery.conductor.runtime import Context
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.conductor.writes import Write
from bloomery.db import rows
from bloomery.db import steps as step_rows
from bloomery.drivers.base import Heartbeat
from bloomery.model.rules import agents
from bloomery.model.rules import nodes as rules
from bloomery.model.step import ABORTED, Run, StepRun, find_parked, internal_step
from bloomery.outcome import Done, Outcome


def open_runs(task: TaskManager) -> list[StepRun]:
    """Return the rows of the node's unfinished flow, if any, in order."""
    with task.runtime.db.read() as conn:
        return step_rows.list_open(conn, task.node.uuid)


def load(task: TaskManager, runs: list[StepRun]) -> Flow:
    """Return the flow of ``runs``, which are not empty."""
    return runner.load(task, PHASES[runs[0].phase], runs)


# ------------------------------------------------------------------------- an agent calls


def heartbeat(context: Context, node_uuid: str, heartbeat: Heartbeat) -> None:
    """Record a heartbeat that a driver reports, and resume the flow that waits for it.

    Raises NodeLocked at once where the node is busy.  Raises NoFreeConductorWorker: heartbeats do
    not use the reserved workers.
    """
    with (
        context.runtime.workers.slot(allow_reserved=False) as slot,
        task_manager.acquire(context, node_uuid, purpose="heartbeat", retry=False) as task,
    ):
        note_agent(task, heartbeat)
        state = task.node.provision_state
        awaits_inventory = state == State.INSPECTWAIT and task.driver.inspect.in_band
        is_waiting = state in states.WAIT_STATES and not task.node.maintenance
        if is_waiting and not awaits_inventory:
            go_on(task, slot, heartbeat)
        else:
            task.save(release=True)


def note_agent(task: TaskManager, heartbeat: Heartbeat) -> None:
    """Store what the heartbeat says of the agent; values that it leaves out stay."""
    info = task.node.driver_internal_info
    info |= facts(heartbeat)
    info[agents.LAST_HEARTBEAT] = rows.now().isoformat()
    info.pop(agents.BOOT_RETRIES, None)


def facts(heartbeat: Heartbeat) -> dict[str, str]:
    """Return the values of a heartbeat under their keys of driver_internal_info."""
    message = heartbeat.status_message
    values = {
        "agent_url": heartbeat.callback_url or None,
        "agent_version": heartbeat.agent_version,
        "agent_status": heartbeat.status,
        "agent_status_message": message and agents.bounded(message),
    }
    return {name: value for name, value in values.items() if value is not None}


def go_on(task: TaskManager, slot: Slot, heartbeat: Heartbeat) -> None:
    """Resume the waiting flow as the driver answers the heartbeat."""
    runs = open_runs(task)
    if find_parked(runs) is None:
        task.save(release=True)
        return
    flow = load(task, runs)
    if heartbeat.status == agents.FAILED:
        message = agents.bounded(heartbeat.status_message or "it says no more")
        sentence = f"the agent reports an error: {message}"
        task.spawn_after(runner.launch_failure, slot, flow, str(secrets.mask(sentence)))
        return
    try:
        outcome = ask_driver(task, heartbeat)
    except (errors.ApiThreadsBusy, errors.LockLost):
        raise
    except errors.Failure as exc:
        task.spawn_after(runner.launch_failure, slot, flow, secrets.brief(exc))
        return
    if isinstance(outcome, Done):
        runner.resume(task, slot, "resume", flow)
    else:
        task.node.provision_updated_at = rows.now()  # restarts the time-out
        task.save(release=True)


def ask_driver(task: TaskManager, heartbeat: Heartbeat) -> Outcome | None:
    """Return the driver's outcome for a heartbeat; asking an agent blocks the thread.

    Raises ApiThreadsBusy where too many threads wait, and the driver's errors.
    """
    deploy = task.driver.deploy
    if not deploy.asks_agents:
        return deploy.on_heartbeat(task, heartbeat)
    with task.runtime.waiting_place(f"ask the agent of node {task.node.uuid}"):
        return deploy.on_heartbeat(task, heartbeat)


# ----------------------------------------------------------------------------------- unhold


def unhold(task: TaskManager, slot: Slot) -> None:
    """Resume a held flow: at the agent's next heartbeat, or at once where no agent runs."""
    held_in, target = task.node.provision_state, runner.kept_target(task)
    runs = open_runs(task)
    if not runs:
        task.process_event("unhold", target_state=target)
        return
    flow = load(task, runs)
    reason = "unheld: goes on when the agent calls"
    awaits = flow.mark(flow.open_run, Run.WAITING, reason=reason, resume_then="next")
    task.process_event("unhold", target_state=target, journal=[awaits])
    has_no_agent = bool(task.node.driver_internal_info.get("cleaning_disable_ramdisk"))
    if held_in == State.SERVICEHOLD or has_no_agent:
        runner.resume(task, slot, "resume", flow)


# ------------------------------------------------------------------------------------ abort


class Abort(NamedTuple):
    """How to abort in one state: the events to fire, and the clean-up that a worker does.

    ``ends_in``: the states of the node afterwards, until another order comes.
    """

    ends_in: tuple[State, ...]
    events: tuple[str, ...]
    clean_up: Callable[[TaskManager], object]
    flow: str | None = None  # whose traces in driver_internal_info are wiped
    shows: str | None = None  # the node's field that shows the step


def _stop_rescue(task: TaskManager) -> None:
    """Undo a rescue; a failure puts the node into maintenance."""
    rescue.forget_password(task.node)
    problem = rescue.clean_up(task)
    if problem:
        rules.begin_fault(task.node, "rescue abort failure", problem)


_SERVICE: Final = Abort(
    (State.SERVICEFAIL, State.ACTIVE), ("fail", "abort"), servicing.tear_down, "service",
    "service_step",
)  # fmt: skip
_CLEAN: Final = Abort(
    (State.CLEANFAIL,), ("abort",), cleaning.tear_down, "clean", "clean_step"
)  # fmt: skip
_DEPLOY: Final = Abort(
    (State.DEPLOYFAIL,), ("abort",), deployments.clean_up, "deploy", "deploy_step"
)  # fmt: skip
ABORTS: Final[dict[State, Abort]] = {
    State.CLEANWAIT: _CLEAN,
    State.CLEANHOLD: _CLEAN,
    State.DEPLOYWAIT: _DEPLOY,
    State.DEPLOYHOLD: _DEPLOY,
    State.INSPECTWAIT: Abort((State.INSPECTFAIL,), ("abort",), enrollment.abort_inspect),
    State.RESCUEWAIT: Abort((State.RESCUEFAIL,), ("abort",), _stop_rescue),
    State.SERVICEWAIT: _SERVICE,
    State.SERVICEHOLD: _SERVICE,
    State.SERVICEFAIL: _SERVICE._replace(events=("abort",)),
}


def abort(task: TaskManager, slot: Slot) -> None:
    """Abort the flow at once, or after the current step if that is not abortable.

    One transaction ends the waiting flow and starts its clean-up flow.
    """
    node, state = task.node, task.node.provision_state
    row = ABORTS[State(str(state))]
    run = find_parked(open_runs(task))
    user_step = run.step if run is not None and not run.step.internal else None
    if user_step and run and not (user_step.abortable or run.state == Run.HELD):
        if row.shows is not None:
            setattr(node, row.shows, getattr(node, row.shows) | {"abort_after": True})
            task.save()
        return
    sentence = f"{ABORTED} in {state}" + (f" at step {user_step.name}" if user_step else "")
    clean_up = internal_step("deploy", "clean_up", {"state": state, "reason": sentence})
    flow = runner.plan(task, ABORT, [clean_up])
    journal: list[Write] = [*flow.opening]
    if run is not None:
        values = {"state": Run.FAILED, "finished_at": rows.now(), "error": sentence}
        journal = [
            partial(step_rows.change, flow=run.flow, position=run.position, values=values),
            partial(step_rows.skip_rest, flow=run.flow),
            *journal,
        ]
    for event in row.events[:-1]:
        task.process_event(event, last_error=sentence, journal=journal)
        journal = []
    task.process_event(
        row.events[-1],
        callback=runner.launch,
        call_args=(slot, flow),
        target_state=runner.kept_target(task),
        last_error=sentence,
        journal=journal,
    )


def _clean_up(task: TaskManager, state: str, reason: str) -> None:
    """Remove what the flow aborted in ``state`` has left.

    After a crash another flow may own the node; then nothing is done.
    """
    row = ABORTS[State(state)]
    if task.node.provision_state in row.ends_in:
        row.clean_up(task)
    _forget_flow(task, row, reason)


def _forget_flow(task: TaskManager, row: Abort, reason: str) -> None:
    """Remove the flow's keys from the node, and set ``last_error`` to the reason."""
    if task.node.provision_state not in row.ends_in:
        return
    cleanup.wipe_internal_info(task, *([row.flow] if row.flow else []))
    if row.shows is not None:
        setattr(task.node, row.shows, {})
    task.node.last_error = reason


def _finish_abort(task: TaskManager, result: Mapping[str, Any]) -> Transition:
    """Fire the second event of a service abort whose conductor died between the two events."""
    is_half = task.node.provision_state == State.SERVICEFAIL
    return Transition(event="abort" if is_half else None, last_error=task.node.last_error)


def _fail_abort(task: TaskManager, failure: FlowFailure) -> Transition:
    args = failure.run.step.args
    _forget_flow(task, ABORTS[State(args["state"])], f"{args['reason']}; {failure.sentence}")
    return _finish_abort(task, {})


ABORT: Final = Phase(
    name="abort", own_steps={"clean_up": _clean_up}, finish=_finish_abort, fail=_fail_abort
)
PHASES: Final[dict[str, Phase]] = {
    phase.name: phase
    for phase in (
        enrollment.VERIFY, enrollment.INSPECT, enrollment.DISCOVER, enrollment.ADOPT,
        cleaning.CLEAN,
        deployments.DEPLOY, deployments.UNDEPLOY, servicing.SERVICE, rescue.RESCUE,
        rescue.UNRESCUE, power.POWER, power.BOOT_SETTINGS, console.CONSOLE,
        virtual_media.VIRTUAL_MEDIA, vendor_passthru.VENDOR, removal.FORGET, ABORT,
    )
}  # fmt: skip
