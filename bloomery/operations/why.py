"""Explain a node's state: its holder, its wait, its fault, and the next action.

why.explain(ctx, "web-1")["next_action"]
# "wait: step deploy.deploy of deploy runs"
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.conductor import states
from bloomery.conductor.states import State
from bloomery.db import history, nodes, steps
from bloomery.model.node import LEAKS, Node
from bloomery.model.node_facts import BMC_LOG, POWER_CORRECTION, POWER_CORRECTIONS_KEPT
from bloomery.model.step import Run, StepRun
from bloomery.operations import causes, firmware, lookup, policy, provision
from bloomery.operations.causes import NodeSituation
from bloomery.operations.context import Context

Json = dict[str, Any]

_RULE: Final = "baremetal:node:history:get"
_DEPLOYING: Final = (State.DEPLOYING, State.DEPLOYWAIT)
_GOING_ON: Final = (Run.RUNNING, Run.AGAIN, Run.WAITING, Run.HELD)
_CLEANING: Final = (State.DELETING, State.CLEANING, State.CLEANWAIT)


def explain(ctx: Context, ident: str) -> Json:
    """Return the explanation of a node's state.  Raises NodeNotFound.

    Times are ISO 8601, ages in seconds.  ``contact`` is null without any agent or BMC call; ``bmc``
    is the conductor's memory of the BMC, null when the conductor cannot be called.
    ``last_cleaned``: end and steps of the last cleaning that ended well, null where none is among
    the flows that are kept.
    ``outdated_firmware`` differs from the catalogue, and causes nothing here.
    """
    uuid = policy.get_uuid(ctx, ident, _RULE)
    with ctx.services.db.read() as conn:
        situation = _situation(ctx, conn, uuid)
        failed, by = history.find_last_error(conn, uuid), history.find_mover(conn, uuid)
        cleaned = steps.list_complete(conn, uuid, "clean")
        outdated = firmware.list_pending(conn, uuid)
    node, now, runs, run = situation.node, situation.now, situation.runs, situation.run
    situation = dataclasses.replace(situation, **_ask_conductor(ctx, node))
    cause = causes.find(causes.OF_NODE, situation)
    conductor = situation.conductors.get(situation.host or "")  # as this process sees it
    heartbeat = situation.last_heartbeat
    return {
        "uuid": node.uuid,
        "name": node.name,
        "provision_state": node.provision_state,
        "target_provision_state": node.target_provision_state,
        "by": by,
        "in_state_for_s": _age(node.provision_updated_at, now),
        "power_state": node.power_state,
        "target_power_state": node.target_power_state,
        "maintenance": None if not node.maintenance else {
            "reason": secrets.mask(node.maintenance_reason),
            "fault": node.fault,
            "since": _iso(node.maintenance_at),
        },
        "lock": None if node.reservation is None else {
            "holder": node.reservation,
            "purpose": node.reserved_for,
            "since": _iso(node.reserved_at),
            "age_s": _age(node.reserved_at, now),
        },
        "step": None if run is None else {
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
            "deadline_at": _iso(_deadline(ctx, node, run)),
            "conductor": run.conductor,
            "request_id": run.request_id,
        },
        "conductor": None if conductor is None else {
            "hostname": conductor.hostname,
            "alive": conductor.alive,
            "silent_s": round(conductor.silent_s, 3),
        },
        "contact": {
            "agent": None if heartbeat is None else {"last_heartbeat": heartbeat},
            "bmc": situation.bmc,
        },
        "last_error": None if node.last_error is None and failed is None else {
            "now": node.last_error,
            "last": failed and secrets.mask(failed["event"]),
            "last_at": failed and _iso(failed["created_at"]),
            "request_id": failed and failed["request_id"],
            "bmc_logged": situation.bmc_logged,
        },
        "last_cleaned": None if not cleaned else {
            "at": _iso(cleaned[-1].finished_at),
            "steps": [run.step.name for run in cleaned if run.step.is_own],
        },
        "outdated_firmware": outdated,
        "cause_code": cause.code,
        "cause": cause.cause,
        "since": _iso(cause.since),
        "next_action": cause.next_action,
        "verbs": provision.list_verbs(ctx, node),
    }  # fmt: skip


def outline(ctx: Context, uuid: str) -> Json:
    """Return name, state, cause and next action of a node, from rows alone.

    The conductor is not called, so that many nodes cost little.  Raises NodeNotFound.
    """
    policy.authorize_node(ctx, uuid, _RULE)
    with ctx.services.db.read() as conn:
        situation = _situation(ctx, conn, uuid)
    node = situation.node
    serving = dataclasses.replace(situation, **_serving_host(ctx, node))
    cause = causes.find(causes.OF_NODE, serving)
    return {
        "uuid": node.uuid,
        "name": node.name,
        "provision_state": node.provision_state,
        "cause": cause.cause,
        "next_action": cause.next_action,
    }


def _situation(ctx: Context, conn: sa.Connection, uuid: str) -> NodeSituation:
    """Return what rows and the ring say of a node; the conductor's facts are missing yet."""
    now, services = datetime.now(UTC), ctx.services
    node, runs = nodes.get(conn, uuid), steps.list_open(conn, uuid)
    deploying, cleaning = _counts(ctx, conn, node)
    since, sensors = now - POWER_CORRECTIONS_KEPT, services.conf.sensor_data
    return NodeSituation(
        refusal=services.db.refusal, node=node, runs=runs,
        run=next((run for run in runs if run.state in _GOING_ON), None),
        conductors={each.hostname: each for each in services.rpc.ring.list_conductors()},
        deploying=deploying, cleaning=cleaning,
        power_corrections=history.list_of_type_since(conn, uuid, POWER_CORRECTION, since),
        bmc_logged=history.find_since_last_error(conn, uuid, BMC_LOG) if node.last_error else None,
        leaks=node.driver_internal_info.get(LEAKS) if sensors.send_sensor_data else None,
        sensor_interval_s=sensors.interval, options=services.conf.conductor, now=now,
    )  # fmt: skip


def _counts(ctx: Context, conn: sa.Connection, node: Node) -> tuple[int, int]:
    """Count other nodes that deploy and clean, only where a limit could matter."""
    states_of = {State.AVAILABLE: _DEPLOYING, State.ACTIVE: _CLEANING, State.MANAGEABLE: _CLEANING}
    at_it = states_of.get(State(str(node.provision_state))) if node.provision_state else None
    if at_it is None:
        return 0, 0
    per_group = ctx.services.conf.conductor.max_concurrent_per_conductor_group
    group = node.conductor_group if per_group else None
    count = nodes.count_in_states(conn, node.uuid, at_it, group)
    return (count, 0) if at_it is _DEPLOYING else (0, count)


def _serving_host(ctx: Context, node: Node) -> Json:
    """Return the node's conductor, or why there is none."""
    place = {"driver": node.driver, "group": node.conductor_group, "uuid": node.uuid}
    try:
        return {"host": ctx.services.rpc.ring.host_of_node(**place)}
    except errors.Failure as exc:
        return {"nobody": _reason(exc)}


def _ask_conductor(ctx: Context, node: Node) -> Json:
    """Return the conductor's facts about its work, or why it cannot be asked.

    A conductor of another release may lack the method, or know more facts: the rest is in rows.
    """
    facts = _serving_host(ctx, node)
    if (host := facts.get("host")) is None:
        return facts
    try:
        work = lookup.conductor_of(ctx, node).describe_work(ctx.request, node.uuid)
    except errors.MethodUnknown:
        return facts
    except errors.Unavailable as exc:
        return {"host": host, "unreachable": _reason(exc)}
    except errors.Failure as exc:
        return {"host": host, "unusable": _reason(exc)}
    if work.get("no_worker_since") is not None:
        work["no_worker_since"] = datetime.fromisoformat(work["no_worker_since"])
    return facts | {name: fact for name, fact in work.items() if name in causes.OF_CONDUCTOR}


def _reason(failure: errors.Failure) -> str:
    """Return the reason of an error, without the sentence around it."""
    return str(secrets.mask(failure.facts.get("reason") or str(failure)))


def _age(since: datetime | None, now: datetime) -> float | None:
    return None if since is None else round((now - since).total_seconds(), 3)


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _deadline(ctx: Context, node: Node, run: StepRun) -> datetime | None:
    """Return the end of the wait: the step's own limit, or that of the state, the earlier.

    A step that tolerates a silent BMC waits until its limit, too.
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
