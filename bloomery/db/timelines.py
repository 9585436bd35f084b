"""Queries on the events of nodes, and on durations of steps by kind of node."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from bloomery.db import nodes, upserts
from bloomery.db.tables import NODE_HISTORY, NODES, STEP_RUNS
from bloomery.model.node_facts import ALARM, POWER_CORRECTION
from bloomery.model.step import Run

STEP, EVENT = "s", "e"
_RUNS_EXAMINED: Final = 100_000
_ROWS_EXAMINED: Final = 50_000  # for what happened on the site: 0.4 s
_TABLES: Final = {STEP: STEP_RUNS, EVENT: NODE_HISTORY}
_AT: Final = {STEP: STEP_RUNS.c.started_at, EVENT: NODE_HISTORY.c.created_at}


class Position(NamedTuple):
    """A position in a node's timeline: newest first; at equal times, steps before events."""

    at: datetime
    kind: str
    row_id: int


class StepKey(NamedTuple):
    """A step, by which its runs are compared."""

    phase: str
    interface: str
    step: str


def find_position(conn: sa.Connection, node_uuid: str, kind: str, row_id: int) -> Position | None:
    """Return the position of a row in the node's timeline."""
    table, at = _TABLES[kind], _AT[kind]
    here = table.c.id == row_id, table.c.node_uuid == node_uuid, at.is_not(None)
    row_at = conn.execute(sa.select(at).where(*here)).scalar_one_or_none()
    return None if row_at is None else Position(row_at, kind, row_id)


def list_rows(
    conn: sa.Connection, node_uuid: str, kind: str, *, limit: int, after: Position | None
) -> Sequence[sa.RowMapping]:
    """Return rows of one kind after ``after``, newest first; only steps that have begun."""
    table, at = _TABLES[kind], _AT[kind]
    query = sa.select(table).where(table.c.node_uuid == node_uuid, at.is_not(None))
    if after is not None:
        is_behind = at <= after.at if kind < after.kind else at < after.at
        if kind == after.kind:
            same_time = sa.and_(at == after.at, table.c.id < after.row_id)
            is_behind = sa.or_(at < after.at, same_time)
        query = query.where(is_behind)
    query = query.order_by(at.desc(), table.c.id.desc()).limit(limit)
    return conn.execute(query).mappings().all()


def list_durations(
    conn: sa.Connection, key: StepKey, *, driver: str, resource_class: str | None, most: int
) -> list[float]:
    """Return the seconds of the step's successful runs on nodes of this kind, unordered.

    Reads at most ``most`` rows: the newest runs of the step on any node.
    """
    runs, node = STEP_RUNS.c, NODES.c
    newest = (
        sa.select(runs.node_uuid, runs.state, runs.started_at, runs.finished_at)
        .where(runs.phase == key.phase, runs.interface == key.interface, runs.step == key.step)
        .order_by(runs.id.desc())
        .limit(most)
        .subquery()
    )
    query = (
        sa.select(newest.c.started_at, newest.c.finished_at)
        .join(NODES, node.uuid == newest.c.node_uuid)
        .where(
            newest.c.state == Run.DONE, newest.c.started_at.is_not(None),
            newest.c.finished_at.is_not(None), node.driver == driver,
            node.resource_class.is_not_distinct_from(resource_class),
        )
    )  # fmt: skip
    return [(ended - began).total_seconds() for began, ended in conn.execute(query)]


class FlowTime(NamedTuple):
    """The duration of a flow, and the kind of its node."""

    driver: str
    resource_class: str | None
    seconds: float


def list_flow_times(conn: sa.Connection, phase: str, *, most: int) -> list[FlowTime]:
    """Return the durations of the newest ``most`` successful flows of a phase.

    Reads the newest hundred thousand runs of steps at most.
    """
    runs = STEP_RUNS.c
    oldest = sa.select(sa.func.coalesce(sa.func.max(runs.id), 0) - _RUNS_EXAMINED).scalar_subquery()
    newest = (
        sa.select(runs.flow, runs.node_uuid)
        .where(runs.phase == phase, runs.position == 0, runs.id > oldest)
        .order_by(runs.id.desc())
        .limit(most)
        .subquery()
    )
    ended = sa.func.sum(sa.case((runs.state == Run.DONE, 0), else_=1))
    query = (
        sa.select(
            NODES.c.driver, NODES.c.resource_class,
            sa.func.min(runs.started_at), sa.func.max(runs.finished_at),
        )
        .select_from(newest)
        .join(STEP_RUNS, runs.flow == newest.c.flow)
        .join(NODES, NODES.c.uuid == newest.c.node_uuid)
        .group_by(newest.c.flow, NODES.c.driver, NODES.c.resource_class)
        .having(ended == 0)
    )  # fmt: skip
    return [
        FlowTime(driver, resource_class, (ended_at - began_at).total_seconds())
        for driver, resource_class, began_at, ended_at in conn.execute(query)
        if began_at is not None and ended_at is not None
    ]


class Recent(NamedTuple):
    """Rows, oldest first; ``unread_at``: when the newest row that was not read was written."""

    rows: Sequence[sa.Row[Any]]
    unread_at: datetime | None


def list_runs_since(conn: sa.Connection, since: datetime, project: str | None) -> Recent:
    """Return the runs of steps that began since then, or are planned, with their nodes.

    ``project``: of its nodes alone; None: of all.  Reads fifty thousand rows at most.
    """
    runs, node = STEP_RUNS.c, NODES.c
    columns = (
        runs.id, runs.flow, runs.phase, runs.interface, runs.step, runs.state, runs.error,
        runs.started_at, runs.finished_at, runs.node_uuid, node.name, node.driver,
        node.resource_class, node.owner, node.lessee,
    )  # fmt: skip
    is_recent = sa.or_(runs.started_at >= since, runs.state == Run.PLANNED)
    return _list_recent(conn, STEP_RUNS, runs.created_at, columns, is_recent, project)


def list_alarms_since(conn: sa.Connection, since: datetime, project: str | None) -> Recent:
    """As ``list_runs_since``, for corrections of power and for alarms in the history."""
    entry = NODE_HISTORY.c
    is_alarm = sa.and_(entry.event_type == ALARM, entry.severity == "ERROR")
    is_asked = sa.and_(
        entry.created_at >= since, sa.or_(entry.event_type == POWER_CORRECTION, is_alarm)
    )
    columns = (entry.event_type, entry.created_at)
    return _list_recent(conn, NODE_HISTORY, entry.created_at, columns, is_asked, project)


def _list_recent(
    conn: sa.Connection,
    table: sa.Table,
    written_at: sa.Column[Any],
    columns: Sequence[sa.Column[Any]],
    is_asked: sa.ColumnElement[bool],
    project: str | None,
) -> Recent:
    """Read the newest rows by their IDs: no index has their times."""
    newest = conn.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0
    is_read = table.c.id > newest - _ROWS_EXAMINED
    query = sa.select(*columns).join(NODES, NODES.c.uuid == table.c.node_uuid)
    query = query.where(is_read, is_asked, *nodes.on_nodes_of(project)).order_by(table.c.id)
    unread = sa.select(written_at).where(~is_read).order_by(table.c.id.desc()).limit(1)
    return Recent(conn.execute(query).all(), conn.execute(unread).scalar())


def kinds_of_nodes(conn: sa.Connection, uuids: Sequence[str]) -> dict[str, sa.Row[Any]]:
    """Return name, driver and resource class of existing nodes, by UUID."""
    node = NODES.c
    kinds: dict[str, sa.Row[Any]] = {}
    for some in upserts.chunks(uuids):
        query = sa.select(node.uuid, node.name, node.driver, node.resource_class)
        kinds |= {row.uuid: row for row in conn.execute(query.where(node.uuid.in_(some)))}
    return kinds
