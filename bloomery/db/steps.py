"""Queries on step runs: the journal of flows, and the truth about what a node is doing.

The rows of a flow are written when it begins; each move of the flow changes them in the same
transaction as the node.  The end of a step and the start of the next are one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import nodes, rows
from bloomery.db.tables import NODES, STEP_RUNS
from bloomery.model.node import Node, RingKey, RingShare
from bloomery.model.step import OPEN_RUNS, Run, Step, StepRun

_T = STEP_RUNS.c
_STEP_FACTS = (
    "priority", "abortable", "requires_ramdisk", "argsinfo", "resumable", "internal", "child",
)  # fmt: skip


_FLOWS_SEARCHED: Final = 8
_RING_KEY = (NODES.c.uuid, NODES.c.driver, NODES.c.conductor_group)
_INSERT = sa.insert(STEP_RUNS)
_OF_STEP = sa.update(STEP_RUNS).where(
    _T.flow == sa.bindparam("in_flow"), _T.position == sa.bindparam("at_position")
)


def encode(runs: Sequence[StepRun]) -> list[dict[str, Any]]:
    """Return the rows of a flow that begins: nothing is due yet, and nothing has ended.

    The planner of the steps has sealed ``args``.
    """
    created_at = rows.now()
    args = rows.dump_all([run.step.args for run in runs])
    facts = rows.dump_all([{name: getattr(run.step, name) for name in _STEP_FACTS} for run in runs])
    return [
        {
            "node_uuid": run.node_uuid,
            "flow": run.flow,
            "phase": run.phase,
            "position": run.position,
            "interface": run.step.interface,
            "step": run.step.step,
            "args": args_text,
            "facts": facts_text,
            "state": run.state,
            "conductor": run.conductor,
            "lock_generation": run.lock_generation,
            "request_id": run.request_id,
            "recovery_weight": run.recovery_weight,
            "started_at": run.started_at,
            "created_at": created_at,
        }
        for run, args_text, facts_text in zip(runs, args, facts, strict=True)
    ]


def from_row(row: sa.RowMapping) -> StepRun:
    values = {
        name: row[name]
        for name in (
            "id", "flow", "node_uuid", "phase", "position", "state", "conductor",
            "lock_generation", "request_id", "reason", "error", "resume_then", "due_at",
            "deadline_at", "started_at", "finished_at",
        )
    }  # fmt: skip
    facts = rows.load(row["facts"])
    if "inner" in facts:  # a flow that began before the key had its present name
        facts["internal"] = facts.pop("inner")
    step = Step(
        interface=row["interface"], step=row["step"], args=rows.load(row["args"]), **facts,
    )  # fmt: skip
    return StepRun(step=step, recovery_weight=row["recovery_weight"], **values)


def insert(conn: sa.Connection, encoded: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows of a flow that begins."""
    if encoded:
        conn.execute(_INSERT, rows.lean(encoded))


def change(conn: sa.Connection, flow: str, position: int, values: Mapping[str, Any]) -> None:
    """Change one row of a flow: its state, times, reason or error."""
    rows.change(conn, _OF_STEP, {"in_flow": flow, "at_position": position}, values)


def skip_rest(conn: sa.Connection, flow: str) -> None:
    """Mark the planned steps of a flow as skipped."""
    conn.execute(
        sa.update(STEP_RUNS)
        .where(_T.flow == flow, _T.state == Run.PLANNED)
        .values(state=Run.SKIPPED),
    )


def cancel(conn: sa.Connection, flow: str) -> None:
    """Mark every step of a flow that never began."""
    conn.execute(sa.update(STEP_RUNS).where(_T.flow == flow).values(state=Run.SKIPPED))


def forget_args(conn: sa.Connection, node_uuid: str, phases: Sequence[str]) -> None:
    """Drop the arguments of a node's steps in these phases: they are large, and of no more use."""
    conn.execute(
        sa.update(STEP_RUNS)
        .where(_T.node_uuid == node_uuid, _T.phase.in_(phases), _T.args != rows.EMPTY_OBJECT)
        .values(args=rows.EMPTY_OBJECT),
    )


def give_up(conn: sa.Connection, node_uuid: str) -> None:
    """Mark the open steps of a node as skipped: another flow replaces theirs."""
    conn.execute(
        sa.update(STEP_RUNS)
        .where(_T.node_uuid == node_uuid, _T.state.in_(OPEN_RUNS))
        .values(state=Run.SKIPPED),
    )


def release(conn: sa.Connection, conductor: str) -> None:
    """Clear the conductor of running flows, after an orderly stop of ``conductor``.

    The next conductor recovers these flows, and does not count a crash.
    """
    conn.execute(
        sa.update(STEP_RUNS)
        .where(_T.state.in_((Run.RUNNING, Run.AGAIN)), _T.conductor == conductor)
        .values(conductor=None),
    )


def _rows_of_latest(*conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """The rows of a node's latest flow of which a row meets the conditions; built once."""
    latest = sa.select(_T.flow).where(_T.node_uuid == sa.bindparam("of_node"), *conditions)
    flow = latest.order_by(_T.id.desc()).limit(1).scalar_subquery()
    return sa.select(STEP_RUNS).where(_T.flow == flow).order_by(_T.position)


_OF_OPEN: Final = _rows_of_latest(_T.state.in_(OPEN_RUNS))
_PARKED: Final = (
    _OF_OPEN.with_only_columns(sa.literal(1))
    .where(sa.or_(_T.state == Run.WAITING, _T.state == Run.HELD))
    .order_by(None)
    .limit(1)
)
_NODE_AND_PARKED: Final = nodes.BY_UUID.add_columns(_PARKED.scalar_subquery().label("parked"))
_OF_LAST: Final = _rows_of_latest()
_OF_PHASE: Final = _rows_of_latest(_T.phase == sa.bindparam("of_phase"))
_OF_REQUEST: Final = _rows_of_latest(_T.request_id == sa.bindparam("of_request"))


def list_open(conn: sa.Connection, node_uuid: str) -> list[StepRun]:
    """Return the rows of the node's flow that has not ended, in order; none: []."""
    return [from_row(row) for row in conn.execute(_OF_OPEN, {"of_node": node_uuid}).mappings()]


def get_node_and_parked(conn: sa.Connection, node_uuid: str) -> tuple[Node, bool]:
    """Return a node, and whether its open flow has a parked step, as ``find_parked`` finds it.

    One statement.  Raises NodeNotFound.
    """
    idents = {"ident": node_uuid, "of_node": node_uuid}
    row = conn.execute(_NODE_AND_PARKED, idents).mappings().one_or_none()
    if row is None:
        raise errors.NodeNotFound(node=node_uuid)
    values = dict(row)
    is_parked = values.pop("parked") is not None
    return nodes.from_row(values), is_parked


def list_last(conn: sa.Connection, node_uuid: str) -> list[StepRun]:
    """Return the rows of the flow that began last, in order, whether it has ended or not."""
    return [from_row(row) for row in conn.execute(_OF_LAST, {"of_node": node_uuid}).mappings()]


def list_newest(conn: sa.Connection, node_uuid: str, phase: str) -> list[StepRun]:
    """Return the rows of the flow of a phase that began last, in order."""
    rows = conn.execute(_OF_PHASE, {"of_node": node_uuid, "of_phase": phase})
    return [from_row(row) for row in rows.mappings()]


def list_complete(conn: sa.Connection, node_uuid: str, phase: str) -> list[StepRun]:
    """Return the rows of the latest flow of a phase that ended well with a step on the node itself.

    None is among those that are kept: [].  Flows of nothing but steps of the conductor's own, or on
    child nodes, do not count; of such, the newest ``_FLOWS_SEARCHED`` are passed over.
    """
    of_phase = _T.node_uuid == node_uuid, _T.phase == phase
    ended_well = sa.func.min(_T.state) == Run.DONE, sa.func.max(_T.state) == Run.DONE
    flows = conn.execute(
        sa.select(_T.flow).where(*of_phase).group_by(_T.flow).having(sa.and_(*ended_well))
        .order_by(sa.func.max(_T.id).desc()).limit(_FLOWS_SEARCHED)
    ).scalars().all()  # fmt: skip
    runs: dict[str, list[StepRun]] = {flow: [] for flow in flows}
    query = sa.select(STEP_RUNS).where(_T.flow.in_(flows)).order_by(_T.position)
    for row in conn.execute(query).mappings() if flows else ():
        runs[row["flow"]].append(from_row(row))
    return next((each for each in runs.values() if any(run.step.is_own for run in each)), [])


def list_of_request(conn: sa.Connection, node_uuid: str, request_id: str) -> list[StepRun]:
    """Return the rows of the flow that a request has begun on a node, in order; none: []."""
    rows = conn.execute(_OF_REQUEST, {"of_node": node_uuid, "of_request": request_id})
    return [from_row(row) for row in rows.mappings()]


def list_left(conn: sa.Connection) -> list[tuple[RingKey, str | None]]:
    """Return the unlocked nodes whose flow is running, with the flow's conductor."""
    query = (
        sa.select(*_RING_KEY, _T.conductor)
        .join(NODES, NODES.c.uuid == _T.node_uuid)
        .where(_T.state.in_((Run.RUNNING, Run.AGAIN)), NODES.c.reservation.is_(None))
        .distinct()
    )
    return [(RingKey(*key), conductor) for *key, conductor in conn.execute(query)]


def count_open_flows(conn: sa.Connection) -> list[tuple[str, str, int]]:
    """Return phase, state of the current step and number of the flows that have not ended."""
    count = sa.func.count(sa.distinct(_T.flow))
    current = _T.state.in_((Run.RUNNING, Run.AGAIN, Run.WAITING, Run.HELD))
    query = sa.select(_T.phase, _T.state, count).where(current).group_by(_T.phase, _T.state)
    return [(phase, state, n) for phase, state, n in conn.execute(query)]


def count_working(conn: sa.Connection, conductor: str) -> int:
    """Count the flows of a conductor that have not ended, without those that an operator holds."""
    works = _T.conductor == conductor, _T.state.in_((Run.RUNNING, Run.AGAIN, Run.WAITING))
    return conn.execute(sa.select(sa.func.count(sa.distinct(_T.flow))).where(*works)).scalar_one()


def list_deadlines(
    conn: sa.Connection, shares: Sequence[RingShare]
) -> list[tuple[RingKey, datetime, datetime | None]]:
    """Return the nodes whose step waits within a time of its own: node, its end, its beginning."""
    query = (
        sa.select(*_RING_KEY, _T.deadline_at, NODES.c.provision_updated_at)
        .join(NODES, NODES.c.uuid == _T.node_uuid)
        .where(nodes.is_in(conn, shares), _T.state == Run.WAITING, _T.deadline_at.is_not(None))
    )
    return [(RingKey(*key), ends, began) for *key, ends, began in conn.execute(query)]


def list_old_flows(
    conn: sa.Connection, *, keep: int, after: str, nodes_at_once: int
) -> tuple[list[str], str | None]:
    """Return ended flows beyond the newest ``keep`` of some nodes, and the last of these nodes.

    The nodes are those with the next UUIDs beyond ``after``.  The last node is None at the end.
    Reads the rows of these nodes once.
    """
    next_nodes = sa.select(NODES.c.uuid).where(NODES.c.uuid > after).order_by(NODES.c.uuid)
    uuids = list(conn.execute(next_nodes.limit(nodes_at_once)).scalars())
    if not uuids:
        return [], None
    is_open = sa.func.max(sa.case((_T.state.in_(OPEN_RUNS), 1), else_=0)).label("is_open")
    last = sa.func.max(_T.id).label("last")
    ended = sa.select(_T.flow, _T.node_uuid, last, is_open).where(_T.node_uuid.in_(uuids))
    flow = ended.group_by(_T.flow, _T.node_uuid).subquery().c
    rank = sa.func.row_number().over(partition_by=flow.node_uuid, order_by=flow.last.desc())
    ranked = sa.select(flow.flow, flow.is_open, rank.label("rank")).subquery().c
    old = sa.select(ranked.flow).where(ranked.rank > keep, ranked.is_open == 0)
    return list(conn.execute(old).scalars()), uuids[-1]


def delete_flows(conn: sa.Connection, flows: Sequence[str]) -> None:
    """Drop the rows of flows that have ended."""
    conn.execute(sa.delete(STEP_RUNS).where(_T.flow.in_(flows)))
