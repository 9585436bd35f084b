"""What happened on the site: flows, failures by step, corrections of power, and slow steps.

    activity.describe(ctx, hours=24)["steps"][0]
    # {"phase": "deploy", "interface": "deploy", "step": "write_image", "p95_s": 312.0, …}

It reads the newest rows of the journal of steps and of the history, at most fifty thousand of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.db import rows, timelines
from bloomery.model.node_facts import POWER_CORRECTION
from bloomery.model.step import OPEN_RUNS, Run
from bloomery.operations import policy
from bloomery.operations.context import Context
from bloomery.operations.timeline import Durations

Json = dict[str, Any]

_SPANS: Final = 60  # columns of a lane
_MOST_NAMED: Final = 20  # nodes of a failure
_MOST_HOURS: Final = 24 * 366


def describe(ctx: Context, hours: int = 24) -> Json:
    """Describe what happened in the last hours on the nodes that the caller may list.

    ``lanes``: flows by phase, corrections of power, and alarms of machines and BMCs; the numbers
    of those that ended well and failed in each sixtieth of the time, oldest first.
    ``read_since``: later than ``since`` where more happened than is read.
    Raises InvalidParameterValue unless there is at least one hour, and at most a year.
    """
    project, until = policy.visible_project(ctx, "node"), rows.now()
    if not 1 <= hours <= _MOST_HOURS:
        raise errors.InvalidParameterValue(
            reason=f"hours must be from 1 to {_MOST_HOURS}, not {hours}"
        )
    since = until - timedelta(hours=hours)
    with ctx.services.heavy_jobs.enter(), ctx.services.db.read() as conn:
        runs, runs_unread_at = timelines.list_runs_since(conn, since, project)
        alarms, alarms_unread_at = timelines.list_alarms_since(conn, since, project)
    lanes = _Lanes(since, (until - since) / _SPANS)
    failed = _flows(runs, lanes)
    for alarm in alarms:
        lane = "power corrections" if alarm.event_type == POWER_CORRECTION else "alarms"
        lanes.count(lane, "failed", alarm.created_at)
    unread_at = max((at for at in (runs_unread_at, alarms_unread_at) if at), default=None)
    return {
        "since": since.isoformat(),
        "until": until.isoformat(),
        "read_since": _iso(unread_at if unread_at and unread_at > since else since),
        "span_s": (until - since).total_seconds() / _SPANS,
        "lanes": lanes.documents(),
        "failures": _failures(ctx, failed),
        "steps": _steps(runs),
    }


class _Lanes:
    """Counts by lane, end (done or failed), and span of time."""

    def __init__(self, since: datetime, span: timedelta) -> None:
        self._since, self._span = since, span
        self._counts: dict[str, dict[str, Counter[int]]] = {}  # by lane and end

    def count(self, lane: str, end: str, at: datetime) -> None:
        number = min(int((at - self._since) / self._span), _SPANS - 1)
        kinds = self._counts.setdefault(lane, {"done": Counter(), "failed": Counter()})
        kinds[end][number] += 1

    def documents(self) -> list[Json]:
        return [
            {"name": lane}
            | {end: [kinds[end][number] for number in range(_SPANS)] for end in ("done", "failed")}
            for lane, kinds in sorted(self._counts.items())
        ]


def _flows(runs: Iterable[sa.Row[Any]], lanes: _Lanes) -> list[sa.Row[Any]]:
    """Count the flows that have ended; return the runs that failed, newest first."""
    flows: dict[str, list[sa.Row[Any]]] = {}
    for run in runs:
        flows.setdefault(run.flow, []).append(run)
    failed = []
    for of_flow in flows.values():
        broken = [run for run in of_flow if run.state == Run.FAILED]
        failed += broken
        ends = [run.finished_at for run in of_flow if run.finished_at is not None]
        if ends and not any(run.state in OPEN_RUNS for run in of_flow):
            lanes.count(of_flow[0].phase, "failed" if broken else "done", max(ends))
    return sorted(failed, key=lambda run: run.id, reverse=True)


def _failures(ctx: Context, failed: Iterable[sa.Row[Any]]) -> list[Json]:
    """Return the failures by step, the commonest first, each with its newest error."""
    guards = policy.guards_fields(ctx)
    kinds: dict[tuple[str, str, str], list[sa.Row[Any]]] = {}
    for run in failed:
        kinds.setdefault((run.phase, run.interface, run.step), []).append(run)
    documents = []
    for (phase, interface, step), of_kind in kinds.items():
        newest = of_kind[0]
        hidden = policy.hidden_fields(ctx, newest.owner, newest.lessee) if guards else ()
        nodes = {run.node_uuid: run.name for run in of_kind}
        documents.append({
            "phase": phase, "interface": interface, "step": step, "count": len(of_kind),
            "last_at": _iso(newest.finished_at),
            "error": None if "last_error" in hidden else secrets.mask(newest.error),
            "nodes": [{"uuid": uuid, "name": nodes[uuid]} for uuid in [*nodes][:_MOST_NAMED]],
            "nodes_in_all": len(nodes),
        })  # fmt: skip
    return sorted(documents, key=lambda each: -each["count"])


def _steps(runs: Iterable[sa.Row[Any]]) -> list[Json]:
    """Return the steps by kind of node, those that took most time in all first."""
    kinds: dict[tuple[str | None, ...], list[sa.Row[Any]]] = {}
    for run in runs:
        if run.started_at is not None and run.finished_at is not None:
            key = (run.phase, run.interface, run.step, run.driver, run.resource_class)
            kinds.setdefault(key, []).append(run)
    documents = []
    for (phase, interface, step, driver, resource_class), of_kind in kinds.items():
        times = [
            (run.finished_at - run.started_at).total_seconds()
            for run in of_kind if run.state == Run.DONE
        ]  # fmt: skip
        usual = Durations(sorted(times)).usual() or {"runs": 0, "median_s": None, "p95_s": None}
        documents.append({
            "phase": phase, "interface": interface, "step": step, "driver": driver,
            "resource_class": resource_class, **usual, "total_s": round(sum(times), 3),
            "failed": sum(run.state == Run.FAILED for run in of_kind),
        })  # fmt: skip
    return sorted(documents, key=lambda each: -each["total_s"])


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
