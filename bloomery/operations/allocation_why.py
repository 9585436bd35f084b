"""Explain why an allocation has no node yet, or failed.

allocation_why.explain(ctx, "web-7")["cause"]
# "waits for a node: other work holds all 3 suitable nodes"
"""

from __future__ import annotations

import re
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.model.allocation import AllocationState
from bloomery.model.conductor import Conductor
from bloomery.model.nouns import ALLOCATION
from bloomery.operations import fleet, policy, records
from bloomery.operations.context import Context

Json = dict[str, Any]
_FAILED: Final = re.compile(r"Failed to process allocation \S+: (?P<reason>.*?)\.?\Z", re.DOTALL)
_MOST_CLASSES: Final = 10
_COLUMNS: Final = (
    "uuid", "name", "state", "resource_class", "node_uuid", "last_error", "conductor_affinity",
    "created_at", "updated_at",
)  # fmt: skip


def explain(ctx: Context, ident: str) -> Json:
    """Return the explanation of an allocation's state.  Raises AllocationNotFound."""
    policy.authorize_record(ctx, ALLOCATION, ident, "get")
    allocation = records.get(ctx, ALLOCATION, ident, _COLUMNS)
    conductor = _conductor(ctx, allocation)
    cause, next_action = _cause(ctx, allocation, conductor)
    since = allocation.updated_at or allocation.created_at
    return {
        "uuid": allocation.uuid,
        "name": allocation.name,
        "state": allocation.state,
        "resource_class": allocation.resource_class,
        "node_uuid": allocation.node_uuid,
        "conductor": None if conductor is None else {
            "hostname": conductor.hostname, "alive": conductor.alive,
            "silent_s": round(conductor.silent_s, 3),
        },
        "cause": cause,
        "since": None if since is None else since.isoformat(),
        "next_action": next_action,
    }  # fmt: skip


def find_shortage(text: str) -> str | None:
    """Return the sentence about missing nodes in an error of an allocation, without its ID."""
    match = _FAILED.search(text)
    return None if match is None or "node" not in match["reason"] else match["reason"]


def advise_on_shortage(ctx: Context) -> str:
    """Return the ways out of a shortage of nodes, with the resource classes that exist."""
    classes = fleet.list_classes(ctx)
    free = [f"{name} ({count} available)" for name, count in classes.items() if count]
    others = ", ".join(free[:_MOST_CLASSES]) or "none has an available node"
    names = ", ".join(list(classes)[:_MOST_CLASSES]) or "none"
    return (
        "enrol a node (bloomery enrol), free one, or use another resource class: "
        f"{others}; the classes that exist: {names}"
    )


def _conductor(ctx: Context, allocation: Any) -> Conductor | None:
    """Return the conductor that serves the allocation; None: unknown, or none."""
    if allocation.state != AllocationState.ALLOCATING:
        return None
    try:
        registered = ctx.services.rpc.ring.list_conductors()
    except errors.Unavailable:
        return None
    hosts = {each.hostname: each for each in registered}
    return hosts.get(allocation.conductor_affinity or "")


def _way_out(ctx: Context, allocation: Any) -> str:
    is_short = find_shortage(str(allocation.last_error)) is not None
    return advise_on_shortage(ctx) if is_short else "see to what it names"


def _cause(ctx: Context, allocation: Any, conductor: Conductor | None) -> tuple[str, str]:
    if allocation.state == AllocationState.ACTIVE:
        return f"it has node {allocation.node_uuid}", (
            "ask for that node to be active (baremetal node deploy)"
        )
    if allocation.state == AllocationState.ERROR:
        return (
            f"it got no node: {secrets.mask(allocation.last_error)}",
            (
                f"{_way_out(ctx, allocation)}, delete the allocation, and ask again (baremetal "
                "allocation delete, baremetal allocation create)"
            ),
        )
    if conductor is None or not conductor.alive:
        host = allocation.conductor_affinity or "nobody"
        every_s = ctx.services.conf.conductor.check_allocations_interval
        return (
            f"it waits, and conductor {host}, which looked for its node, is not there",
            f"wait: another conductor takes it over within {every_s} s, if one is alive",
        )
    if allocation.last_error:
        attempts = ctx.services.conf.conductor.node_locked_retry_attempts
        return (
            str(secrets.mask(allocation.last_error)),
            f"wait: it is tried again, at most {attempts} times, until a node is free",
        )
    return (
        f"it waits for its turn: conductor {conductor.hostname} serves one after the other",
        "wait: its node is looked for when those before it have been",
    )
