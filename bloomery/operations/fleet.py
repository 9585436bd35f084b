"""Counts of nodes by state, class and conductor, and of their problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from bloomery.conductor import states
from bloomery.conductor.states import State
from bloomery.db import nodes
from bloomery.model.rules import nodes as rules
from bloomery.operations import policy
from bloomery.operations.context import Context
from bloomery.operations.fleet_counts import Group

Json = dict[str, Any]
_BAD_STATE_CODES: Final = frozenset(map(rules.code_of, states.BAD_STATES))


def describe(ctx: Context) -> Json:
    """Count the nodes that the caller may list: by state, class and conductor.

    ``FleetCounts`` says what a look costs.
    """
    project, services = policy.visible_project(ctx, "node"), ctx.services
    conductors = services.rpc.ring.list_conductors()
    last_event_id, groups = services.fleet.look(services.db, services.rpc.ring)
    if project is not None:
        groups = [each for each in groups if each.condition.is_of(project)]
    with services.db.read() as conn:
        reserved = nodes.count_reserved(conn, project)
    hosts = _counted(groups, "host")
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
        "problems": _problems(ctx, groups),
        "last_event_id": last_event_id,
    }


def list_classes(ctx: Context) -> dict[str, int]:
    """Count the available nodes of each resource class, among the nodes the caller may list."""
    project, services = policy.visible_project(ctx, "node"), ctx.services
    _, groups = services.fleet.look(services.db, services.rpc.ring)
    classes: dict[str, int] = {}
    for condition, count, _since in groups:
        if condition.resource_class and (project is None or condition.is_of(project)):
            is_free = condition.provision_state == State.AVAILABLE and not condition.maintenance
            classes.setdefault(condition.resource_class, 0)
            classes[condition.resource_class] += count if is_free else 0
    return dict(sorted(classes.items()))


def _problems(ctx: Context, groups: Iterable[Group]) -> list[Json]:
    """Return the problems of the nodes by code, the commonest first.

    ``since``: when the first of them came into that state; null for what has no time stored.
    """
    counts: Counter[str] = Counter()
    since: dict[str, list[datetime]] = {}
    guards = policy.guards_fields(ctx)
    for group in groups:
        condition = group.condition
        hidden = policy.hidden_fields(ctx, condition.owner, condition.lessee) if guards else ()
        hides_error = "last_error" in hidden
        code = rules.find_problem(condition, condition.host, hides_error=hides_error)
        if code is not None:
            counts[code] += group.nodes
            since.setdefault(code, []).extend(filter(None, (group.since,)))
    return [
        {
            "code": code,
            "text": rules.words_of(code),
            "count": count,
            "since": min(since[code], default=None)
            if code in _BAD_STATE_CODES else None,
        }
        for code, count in counts.most_common()
    ]  # fmt: skip


def _counted(groups: Iterable[Group], column: str) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for group in groups:
        counts[getattr(group.condition, column)] += group.nodes
    return counts


def _named(counts: Counter[Any]) -> dict[str, int]:
    """Return counts of values, the most frequent first; None is "unknown"."""
    return {value or "unknown": count for value, count in counts.most_common()}
