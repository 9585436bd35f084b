"""Why a node is where it is: what holds it, what it waits for, what went wrong, what to do.

why.explain(ctx, "web-1")["next_action"]
# "wait: step deploy.deploy of deploy is going on"
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conductor import states
from bloomery.conductor.states import State
from bloomery.db import history, nodes, steps
from bloomery.model.node import Node
from bloomery.model.step import Run, StepRun
from bloomery.operations import lookup, policy
from bloomery.operations.context import Context

Json = dict[str, Any]

_BY_STATE: Final[dict[State, str]] = {
    State.ENROLL: "ask for manage: the node is known but was not checked yet",
    State.MANAGEABLE: "ask for provide, inspect, clean or adopt",
    State.AVAILABLE: "nothing: it waits for a user to deploy it",
    State.ACTIVE: "nothing: it runs its user's system",
    State.RESCUE: "ask for unrescue when the rescue work is done",
    State.ERROR: "read last_error, set it right, and ask for deleted again",
    State.DEPLOYFAIL: "read last_error, set it right, and ask for active, or for deleted",
    State.CLEANFAIL: "read last_error, set it right, end maintenance, and ask for manage",
    State.INSPECTFAIL: "read last_error, set it right, and ask for inspect, or for manage",
    State.ADOPTFAIL: "read last_error, set it right, and ask for adopt, or for manage",
    State.RESCUEFAIL: "read last_error, and ask for rescue, unrescue or deleted",
    State.UNRESCUEFAIL: "read last_error, and ask for unrescue, rescue or deleted",
    State.SERVICEFAIL: "read last_error, end maintenance, and ask for service or abort",
}


def explain(ctx: Context, ident: str) -> Json:
    """Return what is known of a node's standing.  Raises NodeNotFound.

    Times are ISO 8601, ages in seconds.  ``contact`` is null where no agent or BMC was heard of;
    ``bmc`` is what the node's conductor remembers of it, null when that one cannot be asked.
    """
    policy.authorize_node(ctx, ident, "baremetal:node:history:get")
    uuid = lookup.uuid_of(ctx, ident)
    now = datetime.now(UTC)
    with ctx.services.db.read() as conn:
        node = nodes.get(conn, uuid)
        runs = steps.list_open(conn, uuid)
        failed = history.find_last_error(conn, uuid)
    run = _standing_at(runs)
    bmc = _bmc(ctx, node)
    return {
        "uuid": node.uuid,
        "name": node.name,
        "provision_state": node.provision_state,
        "target_provision_state": node.target_provision_state,
        "in_state_for_s": _age(node.provision_updated_at, now),
        "power_state": node.power_state,
        "target_power_state": node.target_power_state,
        "maintenance": _maintenance(node),
        "lock": _lock(node, now),
        "step": None if run is None else _step(run, runs, now, _deadline(ctx, node, run)),
        "contact": {"agent": _agent(node), "bmc": bmc},
        "last_error": _error(node, failed),
        "next_action": _of_bmc(ctx, node, run, bmc) or _next_action(node, run),
    }


def _standing_at(runs: list[StepRun]) -> StepRun | None:
    """The step that its flow stands at."""
    going_on = (Run.RUNNING, Run.AGAIN, Run.WAITING, Run.HELD)
    return next((run for run in runs if run.state in going_on), None)


def _age(since: datetime | None, now: datetime) -> float | None:
    return None if since is None else round((now - since).total_seconds(), 3)


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _maintenance(node: Node) -> Json | None:
    if not node.maintenance:
        return None
    return {"reason": secrets.mask(node.maintenance_reason), "fault": node.fault}


def _lock(node: Node, now: datetime) -> Json | None:
    if node.reservation is None:
        return None
    return {
        "holder": node.reservation,
        "purpose": node.reserved_for,
        "since": _iso(node.reserved_at),
        "age_s": _age(node.reserved_at, now),
    }


def _deadline(ctx: Context, node: Node, run: StepRun) -> datetime | None:
    """When the wait ends by itself: the step's own limit, or that of the state, the earlier.

    A step that bears a silent BMC waits until then, too.
    """
    if run.state == Run.AGAIN:
        return run.deadline_at
    if run.state != Run.WAITING:
        return None
    ends = [run.deadline_at]
    if (limit := states.WAIT_LIMITS.get(State(str(node.provision_state)))) is not None:
        limit_s, since = (
            getattr(ctx.services.conf.conductor, limit.option),
            getattr(node, limit.since),
        )
        ends += [since + timedelta(seconds=limit_s)] if limit_s and since else []
    return min((end for end in ends if end is not None), default=None)


def _step(run: StepRun, runs: list[StepRun], now: datetime, deadline: datetime | None) -> Json:
    return {
        "flow": run.phase,
        "name": run.step.name,
        "child_node": run.step.child,
        "position": run.position + 1,
        "of": len(runs),
        "state": run.state,
        "reason": run.reason,
        "since": _iso(run.started_at),
        "age_s": _age(run.started_at, now),
        "due_at": _iso(run.due_at) if run.state == Run.AGAIN else None,
        "deadline_at": _iso(deadline),
        "conductor": run.conductor,
        "request_id": run.request_id,
    }


def _agent(node: Node) -> Json | None:
    last = node.driver_internal_info.get("agent_last_heartbeat")
    return None if last is None else {"last_heartbeat": last}


def _bmc(ctx: Context, node: Node) -> Json | None:
    """What the node's conductor remembers of its BMC; who cannot be asked knows nothing."""
    try:
        return lookup.conductor_of(ctx, node).describe_bmc(ctx.request, node.uuid)
    except errors.Failure:
        return None


def _error(node: Node, failed: Json | None) -> Json | None:
    if node.last_error is None and failed is None:
        return None
    return {
        "now": node.last_error,
        "last": None if failed is None else secrets.mask(failed["event"]),
        "last_at": None if failed is None else _iso(failed["created_at"]),
        "request_id": None if failed is None else failed["request_id"],
    }


def _of_bmc(ctx: Context, node: Node, run: StepRun | None, bmc: Json | None) -> str | None:
    """One sentence where the BMC is what stands in the way; None where it is not."""
    if run is None and bmc is not None and bmc.get("login_refused"):
        return (
            "set user name and password in driver_info right: the BMC refuses them, and is tried "
            f"again at {bmc['login_refused']['next_try_at']}, or when driver_info changes"
        )
    if run is None and node.maintenance and node.fault == "power failure":
        every_s = ctx.services.conf.conductor.power_failure_recovery_interval
        if not every_s:
            return "look at the BMC, and end maintenance when it answers again"
        return (
            "look at the BMC: maintenance ends by itself when it answers again; it is asked after "
            f"{every_s} to {4 * every_s} s, and within {every_s} s once anybody has reached it"
        )
    return None


def _next_action(node: Node, run: StepRun | None) -> str:
    """One sentence for the operator: what comes by itself, or what to ask for."""
    state = node.provision_state
    if run is not None and run.state == Run.HELD:
        return "ask for unhold to go on, or for abort"
    if run is not None and run.state == Run.WAITING:
        return f"wait for the call, or ask for abort: {run.reason}"
    if run is not None and run.state == Run.AGAIN and run.deadline_at is not None:
        return f"look at the BMC, or wait: {run.reason}"
    if run is not None:
        return f"wait: step {run.step.name} of {run.phase} is going on"
    if node.maintenance and node.fault is None:
        return "end maintenance when the work on the machine is done"
    if state in states.UNSTABLE_STATES:
        return "wait: the conductor takes it up at its next check"
    if state == State.ENROLL and node.last_error is not None:
        return "read last_error, set it right, and ask for manage again"
    advice = _BY_STATE.get(State(str(state)), "wait") if state else "ask for manage"
    return advice if node.maintenance else advice.replace(" end maintenance,", "")
