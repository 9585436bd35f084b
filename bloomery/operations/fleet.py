"""Counts of nodes by state, class and conductor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from bloomery.db import events, nodes
from bloomery.model.conductor import Conductor
from bloomery.operations import node_rows, policy
from bloomery.operations.context import Context

Json = dict[str, Any]

_COLUMNS: Final = (
    "uuid",
    "driver",
    "conductor_group",
    "power_state",
    "resource_class",
    "reservation",
    *node_rows.PROBLEM_COLUMNS,
)


def describe(ctx: Context) -> Json:
    """Count the nodes that the caller may list: by state, class and conductor.

    Reads 13 columns of each node: 10,000 nodes take an eighth of a second.
    """
    project = policy.visible_project(ctx, "node")
    with ctx.services.db.read() as conn:
        last_event_id = events.last_id(conn)
        rows = nodes.list_rows(conn, nodes.Query(columns=_COLUMNS, project=project))
    ring = ctx.services.rpc.ring
    host_of = {
        row.uuid: ring.find_host(driver=row.driver, group=row.conductor_group, uuid=row.uuid)
        for row in rows
    }
    return {
        "nodes": len(rows),
        "provision_states": _counted(row.provision_state for row in rows),
        "power_states": _counted(row.power_state for row in rows),
        "faults": _counted(row.fault for row in rows if row.fault is not None),
        "maintenance": sum(bool(row.maintenance) for row in rows),
        "reserved": sum(row.reservation is not None for row in rows),
        "resource_classes": _classes(rows),
        "conductors": _conductors(ring.list_conductors(), Counter(host_of.values())),
        "without_conductor": sum(host is None for host in host_of.values()),
        "problems": _problems(ctx, rows, host_of),
        "last_event_id": last_event_id,
    }


def _problems(ctx: Context, rows: Iterable[Any], host_of: Mapping[str, str | None]) -> list[Json]:
    """Return the problems of the nodes by code, the commonest first.

    ``since``: when the first of them came into that state; null for what has no time stored.
    """
    guards = policy.guards_fields(ctx)
    since: dict[str, list[datetime]] = {}
    for row in rows:
        hidden = policy.hidden_fields(ctx, row.owner, row.lessee) if guards else ()
        hides_error = "last_error" in hidden
        code = node_rows.find_problem(row, host_of[row.uuid], hides_error=hides_error)
        if code is not None:
            since.setdefault(code, []).append(row.provision_updated_at)
    return [
        {
            "code": code,
            "text": node_rows.describe(code),
            "count": len(times),
            "since": min(filter(None, times), default=None)
            if code in node_rows.BAD_STATE_CODES else None,
        }
        for code, times in sorted(since.items(), key=lambda item: -len(item[1]))
    ]  # fmt: skip


def _counted(values: Iterable[str | None]) -> dict[str, int]:
    """Count equal values, the most frequent first; None counts as "unknown"."""
    return dict(Counter(value or "unknown" for value in values).most_common())


def _classes(rows: Iterable[Any]) -> list[Json]:
    states: dict[str | None, Counter[str]] = {}
    for row in rows:
        states.setdefault(row.resource_class, Counter())[row.provision_state or "unknown"] += 1
    return [
        {"resource_class": name, "nodes": sum(of.values()), "provision_states": dict(of)}
        for name, of in sorted(states.items(), key=lambda item: item[0] or "")
    ]


def _conductors(conductors: Iterable[Conductor], served: Counter[str | None]) -> list[Json]:
    return [
        {
            "hostname": each.hostname,
            "conductor_group": each.conductor_group,
            "alive": each.alive,
            "nodes": served[each.hostname],
        }
        for each in conductors
    ]
