"""The fleet at a glance: how many nodes are where, and who serves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from bloomery.db import nodes
from bloomery.model.conductor import Conductor
from bloomery.operations import policy
from bloomery.operations.context import Context

Json = dict[str, Any]

_COLUMNS: Final = (
    "uuid", "driver", "conductor_group", "provision_state", "power_state", "resource_class",
    "maintenance", "fault", "reservation",
)  # fmt: skip


def describe(ctx: Context) -> Json:
    """Return counts of the nodes that the caller may list: by state, class and conductor.

    Reads nine columns of each of them: 10,000 nodes take a tenth of a second.
    """
    project = policy.visible_project(ctx, "node")
    with ctx.services.db.read() as conn:
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
    }


def _counted(values: Iterable[str | None]) -> dict[str, int]:
    """Return how often each value is there, the commonest first; "unknown" where there is none."""
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
