"""The timeline of a node: past events, usual durations, and the expected end of running steps.

    timeline.get_page(ctx, "web-1", limit=20, marker=None)["running"]["flow_ends_at"]
    # "2026-11-20T10:07:31+00:00"

Steps come from the journal, events from the history; both are kept for a while
(``step_flows_max_entries``, ``node_history_max_entries``).  A step is compared with its newest runs
on nodes of the same driver and resource class.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.db import nodes, rows, steps, timelines
from bloomery.db.timelines import EVENT, STEP, Position, StepKey
from bloomery.model.step import ABORTED, OPEN_RUNS, Run, StepRun
from bloomery.operations import policy
from bloomery.operations.context import Context
from bloomery.outcome import FlowOutcome

Json = dict[str, Any]

_RUNS_COMPARED: Final = 200  # rows read of each step: 5 ms
_STEPS_COMPARED: Final = 40  # different steps of one answer
_LATE_PART: Final = 0.95


@dataclass(frozen=True, slots=True)
class Durations:
    """Durations of a step's runs in seconds, shortest first."""

    values: Sequence[float] = ()

    def usual(self) -> Json | None:
        if not self.values:
            return None
        count, median = len(self.values), statistics.median(self.values)
        late = self.values[min(int(count * _LATE_PART), count - 1)]
        return {"runs": count, "median_s": round(median, 3), "p95_s": round(late, 3)}

    def median_beyond_s(self, elapsed_s: float) -> float | None:
        """Return the median of the runs that took longer than ``elapsed_s``."""
        longer = [value for value in self.values if value > elapsed_s]
        return statistics.median(longer) if longer else None


Compared = Mapping[StepKey, Durations]


def get_page(ctx: Context, ident: str, *, limit: int, marker: str | None) -> Json:
    """Return a page of a node's timeline, newest first, and its running flow.

    ``marker`` is that of the last entry of the page before.  Times are ISO 8601, durations seconds.
    Raises NodeNotFound, InvalidParameterValue for an unknown marker.
    """
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:history:get")
    with ctx.services.db.read() as conn:
        node = nodes.get(conn, uuid)
        after = None if marker is None else _position(conn, uuid, marker)
        entries = [
            (Position(row[column], kind, row["id"]), row)
            for kind, column in ((STEP, "started_at"), (EVENT, "created_at"))
            for row in timelines.list_rows(conn, uuid, kind, limit=limit, after=after)
        ]
        entries = sorted(entries, key=lambda entry: entry[0], reverse=True)[:limit]
        open_runs = steps.list_open(conn, uuid)
        keys = [_key_of_run(run) for run in open_runs]
        keys += [
            StepKey(row["phase"], row["interface"], row["step"])
            for position, row in entries
            if position.kind == STEP
        ]
        # the durations of steps on similar nodes: a statement each, for a limited number
        kind = {"driver": node.driver, "resource_class": node.resource_class}
        compared: dict[StepKey, Durations] = {}
        for key in list(dict.fromkeys(keys))[:_STEPS_COMPARED]:
            durations = timelines.list_durations(conn, key, most=_RUNS_COMPARED, **kind)  # type: ignore[arg-type]
            compared[key] = Durations(sorted(durations))
    return {
        "uuid": node.uuid,
        "name": node.name,
        "provision_state": node.provision_state,
        "target_provision_state": node.target_provision_state,
        "compared_with": kind,
        "running": _running(open_runs, compared, rows.now()),
        "timeline": [
            {"marker": f"{position.kind}{row['id']}"}
            | (_step(row, compared) if position.kind == STEP else _event(row))
            for position, row in entries
        ],
    }


def list_steps(ctx: Context, ident: str, phase: str) -> list[Json]:
    """Return the steps of a phase's newest run on a node, in order: step, duration."""
    uuid = policy.get_uuid(ctx, ident, "baremetal:node:history:get")
    with ctx.services.db.read() as conn:
        return [
            {"step": run.step.name, "duration": _seconds(run.started_at, run.finished_at)}
            for run in steps.list_newest(conn, uuid, phase) if not run.step.internal
        ]  # fmt: skip


def find_flow(ctx: Context, ident: str, request_id: str) -> FlowOutcome | None:
    """Return the outcome of the flow that a request began on a node, for callers who may read it.

    None: it began none, or its steps were deleted.  Raises NodeNotFound.
    """
    return _find_flow(ctx, ident, partial(steps.list_of_request, request_id=request_id))


def find_newest_flow(ctx: Context, ident: str, phase: str) -> FlowOutcome | None:
    """Return the outcome of the newest flow of a phase; else as ``find_flow``."""
    return _find_flow(ctx, ident, partial(steps.list_newest, phase=phase))


def _find_flow(
    ctx: Context, ident: str, list_runs: Callable[..., Sequence[StepRun]]
) -> FlowOutcome | None:
    node = policy.get_node(ctx, ident)
    with ctx.services.db.read() as conn:
        runs = list_runs(conn, node.uuid)
    if not runs:
        return None
    failed = next((run for run in runs if run.state == Run.FAILED), None)
    skipped = next((run for run in runs if run.state == Run.SKIPPED), None)
    error = None
    if failed is not None:
        is_hidden = "last_error" in policy.hidden_fields(ctx, node.owner, node.lessee)
        error = f"step {failed.step.name} failed" if is_hidden else str(secrets.mask(failed.error))
    elif skipped is not None:
        error = f"step {skipped.step.name} did not come to its end"
    return FlowOutcome(
        request_id=runs[0].request_id,
        is_open=any(run.state in OPEN_RUNS for run in runs),
        error=error,
        is_aborted=any(ABORTED in (run.error or "") for run in runs),
    )


def _position(conn: sa.Connection, uuid: str, marker: str) -> Position:
    """Return the position of an entry.  Raises InvalidParameterValue."""
    kind, row_id = marker[:1], marker[1:]
    position = None
    if kind in (STEP, EVENT) and row_id.isascii() and row_id.isdigit() and len(row_id) < 19:
        position = timelines.find_position(conn, uuid, kind, int(row_id))
    if position is None:
        raise errors.InvalidParameterValue(
            reason=f"cannot go on after marker {errors.shortened(marker)!r}: no entry of the "
            "node's timeline is there (any more); ask without a marker"
        )
    return position


def _key_of_run(run: StepRun) -> StepKey:
    return StepKey(run.phase, run.step.interface, run.step.step)


# --------------------------------------------------------------------------------- its entries


def _step(row: sa.RowMapping, compared: Compared) -> Json:
    run = steps.from_row(row)
    began, ended = run.started_at, run.finished_at
    return {
        "kind": "step",
        "at": _iso(began),
        "ended_at": _iso(ended),
        "duration_s": _seconds(began, ended),
        "usual": compared.get(_key_of_run(run), Durations()).usual(),
        "flow": run.phase,
        "flow_id": run.flow,
        "position": run.position + 1,
        "name": run.step.name,
        "child_node": run.step.child,
        "internal": run.step.internal,
        "state": run.state,
        "reason": secrets.mask(run.reason),
        "error": secrets.mask(run.error),
        "conductor": run.conductor,
        "request_id": run.request_id,
    }


def _event(row: sa.RowMapping) -> Json:
    """Return an entry of the history; ``since_previous_s``: the time in the state before."""
    columns = ("severity", "event_type", "conductor", "user", "request_id")
    return {
        "kind": "event",
        "at": _iso(row["created_at"]),
        "since_previous_s": row["duration_seconds"],
        "event": secrets.mask(row["event"]),
        "provision_state": row["state"],
        "target_provision_state": row["target_provision_state"],
        **{name: row[name] for name in columns},
    }


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _seconds(began: datetime | None, ended: datetime | None) -> float | None:
    return None if began is None or ended is None else round((ended - began).total_seconds(), 3)


# ---------------------------------------------------------------------------- the running flow


def _running(runs: Sequence[StepRun], compared: Compared, now: datetime) -> Json | None:
    """Return the running flow and its expected end: planned steps take their usual time."""
    current = next((run for run in runs if run.state in OPEN_RUNS and run.started_at), None)
    if current is None or current.started_at is None:
        return None
    began = min(run.started_at for run in runs if run.started_at)
    elapsed_s = (now - current.started_at).total_seconds()
    durations = compared.get(_key_of_run(current), Durations())
    usual, lasts_s = durations.usual(), durations.median_beyond_s(elapsed_s)
    ahead: list[Json] = [
        {"name": run.step.name, "usual": compared.get(_key_of_run(run), Durations()).usual()}
        for run in runs
        if run.state == Run.PLANNED
    ]
    step_ends = flow_ends = None  # of a step that is held, or slower than all former runs
    if current.state != Run.HELD and lasts_s is not None:
        step_ends = current.started_at + timedelta(seconds=lasts_s)
        if all(each["usual"] for each in ahead):
            rest_s = sum(each["usual"]["median_s"] for each in ahead)
            flow_ends = step_ends + timedelta(seconds=rest_s)
    return {
        "flow": current.phase,
        "flow_id": current.flow,
        "began_at": _iso(began),
        "step": current.step.name,
        "state": current.state,
        "position": current.position + 1,
        "of": len(runs),
        "step_began_at": _iso(current.started_at),
        "step_elapsed_s": round(elapsed_s, 3),
        "usual": usual,
        "is_late": None if usual is None else elapsed_s > usual["p95_s"],
        "step_ends_at": _iso(step_ends),
        "flow_ends_at": _iso(flow_ends),
        "ahead": ahead,
    }
