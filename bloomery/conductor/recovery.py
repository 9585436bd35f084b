"""Recovery of flows after a crash: waiting flows wait on, interrupted flows continue.

The rows of a flow say where it stood.  A step that may be repeated is repeated; a step that may
not fails its flow with a sentence that names the step.  At start, when every reservation is void,
the conductor takes over all flows.  Later, a conductor takes over the flows of one that has died.
"""

from __future__ import annotations

import functools
import logging
from concurrent.futures import Future
from typing import Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import flows, runner, task_manager, writes
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conductor.states import STUCK_STATES_TREATED_AS_FAIL, State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.db import locks, nodes, rows, steps
from bloomery.model.node import Node, RingKey
from bloomery.model.request import Request
from bloomery.model.step import Run, StepRun

LOG = logging.getLogger(__name__)

_PARKED: Final = (Run.WAITING, Run.HELD)
_ENDED: Final = (Run.DONE, Run.FAILED)
_PHASES: Final[dict[str, str]] = {  # the phase that runs in a state
    State.VERIFYING: "verify", State.INSPECTING: "inspect", State.ADOPTING: "adopt",
    State.CLEANING: "clean", State.DEPLOYING: "deploy", State.DELETING: "undeploy",
    State.RESCUING: "rescue", State.UNRESCUING: "unrescue", State.SERVICING: "service",
}  # fmt: skip
_RETRY_S: Final = 1.0
_PATIENCE_S: Final = 60.0  # for one flow, before ``adopt_all`` returns without it
# The weight of an interruption.  A worker that dies alone (DEATH) most likely died of its step; a
# conductor (CRASH) may die of a power cut, a kill, or another node's step.
CRASH: Final = 1
DEATH: Final = 4
_MOST_WEIGHT: Final = 3 * DEATH


def void_reservations(runtime: ConductorRuntime, *, alone: bool) -> int:
    """Free the nodes that a previous incarnation reserved; return their number.

    ``alone``: free every node, as no holder can be alive.  Otherwise only nodes of our own name;
    peers are detected by their leases.
    """
    holder = None if alone else runtime.host
    return len(runtime.db.transact(lambda conn: locks.void_all(conn, holder)))


def adopt_all(runtime: ConductorRuntime, weight: int = DEATH) -> int:
    """Recover every unattended flow of ours, a few at a time; return their number.

    ``weight``: CRASH where their conductor may have died, else DEATH.
    """
    shares = runtime.list_shares()
    with runtime.db.read() as conn:
        open_flows = steps.list_left(conn)
        stuck = nodes.list_unattended(conn, shares, STUCK_STATES_TREATED_AS_FAIL)
    ours = [key.uuid for key, conductor in open_flows if _is_successor(runtime, key, conductor)]
    orphans = list(dict.fromkeys([*ours, *runtime.list_served(stuck)]))
    at_a_time = runtime.conf.conductor.periodic_max_workers
    recover = functools.partial(adopt, runtime, weight=weight)
    runtime.workers.each(orphans, recover, most=at_a_time, patience_s=_PATIENCE_S)
    return len(orphans)


def _is_successor(runtime: ConductorRuntime, key: RingKey, conductor: str | None) -> bool:
    """Return whether this conductor recovers the flow.

    The conductor that ran the flow does, as long as it is alive and serves such nodes.  Otherwise
    the ring chooses, so that all conductors agree.
    """
    ring, place = runtime.ring, {"driver": key.driver, "group": key.conductor_group}
    if conductor is not None and ring.serves(conductor, **place):
        return conductor == runtime.host
    return ring.find_host(uuid=key.uuid, **place) == runtime.host


def adopt(runtime: ConductorRuntime, uuid: str, tries: int = 0, weight: int = DEATH) -> None:
    """Recover the flow of one node as soon as a worker is free.

    ``tries``: how often to retry while the node is reserved.
    """
    try:
        context = Context(runtime=runtime, request=Request.new())
        with (
            runtime.workers.slot() as slot,
            task_manager.acquire(context, uuid, purpose="recovery", retry=False) as task,
        ):
            with runtime.db.read() as conn:  # under the lock, so that the flow cannot move
                runs = steps.list_open(conn, uuid) or _ended_short_of_its_move(conn, task.node)
            state, request_id = task.node.provision_state, runs[0].request_id if runs else None
            request = Request(request_id=request_id) if request_id else Request.new()
            task.context = Context(runtime=runtime, request=request)
            if runs and not any(run.state in _PARKED for run in runs):
                task.spawn_after(_go_on, slot, task, runs, weight)
            elif not runs and state in STUCK_STATES_TREATED_AS_FAIL:
                task.process_event(
                    "fail",
                    last_error=f"it was in state {state} when conductor {runtime.host} started, "
                    "and nothing was working on it",
                )
    except (errors.NoFreeConductorWorker, errors.DatabaseBusy):
        runtime.timers.after(_RETRY_S, adopt, runtime, uuid, tries, weight)
    except errors.NodeLocked as exc:
        if tries:
            runtime.timers.after(_RETRY_S, adopt, runtime, uuid, tries - 1, weight)
        LOG.info("node %s: cannot recover its flow yet: %s", uuid, exc)
    except errors.Failure as exc:  # the node is gone, or its driver is not enabled
        LOG.warning("node %s: cannot recover its flow: %s", uuid, exc)


def _ended_short_of_its_move(conn: sa.Connection, node: Node) -> list[StepRun]:
    """Return a flow whose last step is done but whose node did not leave the flow's state.

    A heartbeat that ends the last step needs two transactions: one back into the flow's state, and
    one that ends it.
    """
    phase = _PHASES.get(node.provision_state or "")
    runs = steps.list_last(conn, node.uuid) if phase else []
    return runs if all(run.phase == phase and run.state in _ENDED for run in runs) else []


def _go_on(slot: Slot, task: TaskManager, runs: list[StepRun], weight: int) -> Future[None]:
    """Run the flow again at its current step, or fail it with the reason why it cannot go on."""
    flow, host = flows.load(task, runs), task.runtime.host
    run = flow.current
    task.node.last_error = None  # the cause of the last worker's death
    if run is None:
        return runner.launch(slot, flow)
    end = f"conductor {run.conductor} died" if run.conductor else "its conductor was stopped"
    if _is_overtaken(task, run):
        reason = (
            f"{end} at step {run.step.name} of {run.phase}, and "
            "another order came before it could go on; give it again if it is still wanted"
        )
        return runner.launch_failure(slot, flow, reason)
    if run.conductor is None:  # a graceful stop handed it over
        weight = 0
    if weight and run.recovery_weight >= _MOST_WEIGHT:
        died = f"its worker died {run.recovery_weight // DEATH + 1} times"
        if weight < DEATH:
            died = "its conductor died too often"
        reason = (
            f"{died} at step {run.step.name} of {run.phase}; "
            f"the log of conductor {host} says of what"
        )
        return runner.launch_failure(slot, flow, reason)
    # A step that was handed over before its start pauses without a start time.
    has_begun = run.state == Run.RUNNING or (run.state == Run.AGAIN and run.started_at is not None)
    if has_begun and not run.step.resumable:
        since = f" since {run.started_at:%Y-%m-%d %H:%M:%S} UTC" if run.started_at else ""
        reason = (
            f"{end} while step {run.step.name} was running{since}; "
            "it was not repeated because it may not be run twice"
        )
        return runner.launch_failure(slot, flow, reason)
    values = {"recovery_weight": run.recovery_weight + weight, "conductor": host}
    if run.started_at is None:
        values["started_at"] = run.started_at = rows.now()
        task.save(flow.mark(run, Run.RUNNING, **values))
    else:
        why = "its work there was cut off" if run.conductor == host else end
        text = f"Step {run.step.name} begun again by conductor {host}: {why}"
        entry = writes.history_entry(task.context, task.node, text, event_type="recovery")
        task.save(flow.mark(run, Run.RUNNING, **values), entry)
    return runner.launch(slot, flow)


def _is_overtaken(task: TaskManager, run: StepRun) -> bool:
    """Return whether another flow began before this one was recovered.

    A flow that keeps the provision state, such as a power change, does not exclude other flows.
    Repeated after them, it would undo them.
    """
    if run.phase in _PHASES.values():
        return False
    with task.runtime.db.read() as conn:
        return steps.list_last(conn, run.node_uuid)[0].flow != run.flow
