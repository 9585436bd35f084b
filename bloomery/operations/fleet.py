"""Counts of nodes by state, class and conductor, and of their problems.

The cost grows with the number of different conditions of nodes, not with that of nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from bloomery.conductor import states
from bloomery.conductor.states import State
from bloomery.db import events, node_counts, nodes
from bloomery.db.node_counts import Group
from bloomery.model.rules import nodes as rules
from bloomery.operations import policy
from bloomery.operations.context import Context
from bloomery.rpc.ring import Population

Json = dict[str, Any]
Kind = tuple[str, str]  # a driver, and a conductor group
_BAD_STATES: Final = {rules.code_of(state): state for state in states.BAD_STATES}


def describe(ctx: Context) -> Json:
    """Count the nodes that the caller may list: by state, class and conductor."""
    project, services = policy.visible_project(ctx, "node"), ctx.services
    conductors = services.rpc.ring.list_conductors()
    with services.db.read() as conn:
        last_event_id = events.last_id(conn)  # first: later events may be counted, none is missed
        groups, of_kinds = _list_groups(ctx, conn, project)
        reserved = nodes.count_reserved(conn, project)
        problems = _problems(
            ctx, groups, of_kinds, lambda state: nodes.first_move_at(conn, state, project)
        )
    hosts = sum(of_kinds.values(), Counter[str | None]())
    classes: dict[str | None, list[Group]] = {}
    for group in groups:
        classes.setdefault(group.condition.resource_class, []).append(group)
    return {
        "nodes": sum(each.nodes for each in groups),
        "provision_states": _named(_counted(groups, "provision_state")),
        "power_states": _named(_counted(groups, "power_state")),
        "faults": _named(_counted([each for each in groups if each.condition.fault], "fault")),
        "maintenance": _counted(groups, "maintenance")[True],
        "reserved": reserved,
        "resource_classes": [
            {
                "resource_class": name,
                "nodes": sum(each.nodes for each in of_class),
                "provision_states": _named(_counted(of_class, "provision_state")),
            }
            for name, of_class in sorted(classes.items(), key=lambda item: item[0] or "")
        ],
        "conductors": [
            {
                "hostname": each.hostname,
                "conductor_group": each.conductor_group,
                "alive": each.alive,
                "nodes": hosts[each.hostname],
            }
            for each in conductors
        ],
        "without_conductor": hosts[None],
        "problems": problems,
        "last_event_id": last_event_id,
    }


def list_classes(ctx: Context) -> dict[str, int]:
    """Count the available nodes of each resource class, among the nodes the caller may list."""
    project = policy.visible_project(ctx, "node")
    with ctx.services.db.read() as conn:
        groups = node_counts.list_groups(conn)
    classes: Counter[str] = Counter()
    for condition, count, _arrivals in groups:
        if count and condition.resource_class and (project is None or condition.is_of(project)):
            is_free = condition.provision_state == State.AVAILABLE and not condition.maintenance
            classes[condition.resource_class] += count if is_free else 0
    return dict(sorted(classes.items()))


def _list_groups(
    ctx: Context, conn: sa.Connection, project: str | None
) -> tuple[list[Group], dict[Kind, Counter[str | None]]]:
    """Return the groups of a project's nodes (None: of all), and the hosts of each kind."""
    ring, groups = ctx.services.rpc.ring, node_counts.list_groups(conn)
    if project is not None:
        groups = [each for each in groups if each.condition.is_of(project)]
    kinds: dict[Kind, list[Group]] = {}
    for group in groups:
        kinds.setdefault((group.condition.driver, group.condition.conductor_group), []).append(
            group
        )
    of_kinds = {}
    for (driver, name), of_kind in kinds.items():
        arrivals = sum(each.arrivals for each in of_kind) if project is None else None
        of_kinds[driver, name] = ring.count_by_host(
            driver=driver,
            group=name,
            population=Population(sum(each.nodes for each in of_kind), arrivals),
            list_uuids=partial(
                nodes.list_uuids_of, conn, driver=driver, group=name, project=project
            ),
        )
    return [each for each in groups if each.nodes], of_kinds


def _problems(
    ctx: Context,
    groups: Iterable[Group],
    of_kinds: dict[Kind, Counter[str | None]],
    first_move_at: Callable[[str], datetime | None],
) -> list[Json]:
    """Return the problems of the nodes by code, the commonest first.

    ``since``: when the first of them came into that state; null for what has no time stored.
    """
    counts: Counter[str] = Counter()
    guards = policy.guards_fields(ctx)
    for condition, number, _arrivals in groups:
        hidden = policy.hidden_fields(ctx, condition.owner, condition.lessee) if guards else ()
        hides_error = "last_error" in hidden
        host = next(iter(of_kinds[condition.driver, condition.conductor_group]), "")
        code = rules.find_problem(condition, host, hides_error=hides_error)
        if code is not None:
            counts[code] += number
    return [
        {
            "code": code,
            "text": rules.words_of(code),
            "count": count,
            "since": first_move_at(_BAD_STATES[code]) if code in _BAD_STATES else None,
        }
        for code, count in counts.most_common()
    ]


def _counted(groups: Iterable[Group], column: str) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for group in groups:
        counts[getattr(group.condition, column)] += group.nodes
    return counts


def _named(counts: Counter[Any]) -> dict[str, int]:
    """Return counts of values, the most frequent first; None is "unknown"."""
    return {value or "unknown": count for value, count in counts.most_common()}
