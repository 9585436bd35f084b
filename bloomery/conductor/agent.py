"""Calls of agents: what a flow waits for, and what carries it on."""

from __future__ import annotations

from bloomery import errors, secrets
from bloomery.conductor import recovery, runner, states, task_manager
from bloomery.conductor.runtime import Context
from bloomery.conductor.states import State
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.workers import Slot
from bloomery.db import rows, steps
from bloomery.drivers.base import Heartbeat
from bloomery.model.step import Run, find_parked
from bloomery.outcome import Done


def heartbeat(context: Context, node_uuid: str, heartbeat: Heartbeat) -> None:
    """Take note of a call; go on with the flow that waited for it.

    Raises NodeLocked at once when the node is busy (agents ask again), NoFreeConductorWorker:
    heartbeats do not get the reserved workers.
    """
    with context.runtime.workers.slot(allow_reserved=False) as slot:
        task = task_manager.acquire(context, node_uuid, purpose="heartbeat", retry=False)
        with task:
            _note(task, heartbeat)
            if task.node.provision_state in states.WAIT_STATES and not task.node.maintenance:
                _continue(task, slot, heartbeat)
            else:
                task.save()


def _note(task: TaskManager, heartbeat: Heartbeat) -> None:
    info = task.node.driver_internal_info
    info["agent_last_heartbeat"] = rows.now().isoformat()
    if heartbeat.callback_url:
        info["agent_url"] = heartbeat.callback_url
    if heartbeat.agent_version is not None:
        info["agent_version"] = heartbeat.agent_version


def _continue(task: TaskManager, slot: Slot, heartbeat: Heartbeat) -> None:
    """Ask the driver what the call means for the step that waits."""
    with task.runtime.db.read() as conn:
        runs = steps.list_open(conn, task.node.uuid)
    waiting = find_parked(runs)
    if waiting is None:
        task.save()
        return
    flow = runner.load(task, recovery.PHASES[waiting.phase], runs)
    try:
        said = task.driver.deploy.on_heartbeat(task, heartbeat)
    except errors.LockLost:
        raise
    except errors.Failure as exc:
        task.spawn_after(runner.launch_failure, slot, flow, secrets.brief(exc))
        return
    if isinstance(said, Done):
        runner.resume(task, slot, "resume", flow)
    else:
        task.node.provision_updated_at = rows.now()  # a sign of life: the time-out counts anew
        task.save()


def unhold(task: TaskManager, slot: Slot) -> None:
    """Let a held flow go on: with the agent's next call, or at once where none is awaited."""
    held_in, target = task.node.provision_state, runner.kept_target(task)
    with task.runtime.db.read() as conn:
        runs = steps.list_open(conn, task.node.uuid)
    if not runs:
        task.process_event("unhold", target_state=target)
        return
    flow = runner.load(task, recovery.PHASES[runs[0].phase], runs)
    reason = "unheld: goes on when the agent calls"
    awaits = flow.mark(flow.standing_at, Run.WAITING, reason=reason, resume_then="next")
    task.process_event("unhold", target_state=target, journal=[awaits])
    if held_in == State.SERVICEHOLD:
        runner.resume(task, slot, "resume", flow)
