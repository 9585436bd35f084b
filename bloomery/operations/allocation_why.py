"""Explain why an allocation has no node yet, or failed.

allocation_why.explain(ctx, "web-7")["cause"]
# "waits for a node: other work holds all 3 suitable nodes"
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors
from bloomery.conf.conductor import Conductor as Options
from bloomery.model.allocation import AllocationState
from bloomery.model.conductor import Conductor
from bloomery.model.nouns import ALLOCATION
from bloomery.operations import causes, fleet, policy, records
from bloomery.operations.causes import Rule
from bloomery.operations.context import Context

Json = dict[str, Any]
_FAILED: Final = re.compile(r"Failed to process allocation \S+: (?P<reason>.*?)\.?\Z", re.DOTALL)
_MOST_CLASSES: Final = 10
_COLUMNS: Final = (
    "uuid", "name", "state", "resource_class", "node_uuid", "last_error", "conductor_affinity",
    "created_at", "updated_at",
)  # fmt: skip
_ASK_AGAIN: Final = (
    ", delete the allocation, and ask again (baremetal allocation delete, baremetal allocation "
    "create)"
)
OF_ALLOCATION: Final[tuple[Rule[AllocationSituation], ...]] = (
    Rule("", lambda s: s.allocation.state == AllocationState.ACTIVE,
         "it has node {s.allocation.node_uuid}",
         "ask for that node to be active (baremetal node deploy)"),
    Rule("no_node", lambda s: s.has_failed and find_shortage(str(s.allocation.last_error)),
         "it got no node: {s.allocation.last_error}", "{s.advice}" + _ASK_AGAIN),
    Rule("error", lambda s: s.has_failed, "it got no node: {s.allocation.last_error}",
         "see to what it names" + _ASK_AGAIN),
    Rule("no_conductor", lambda s: not (s.conductor and s.conductor.alive)
         and (s.allocation.conductor_affinity or "nobody"),
         "it waits, and conductor {fact}, which looked for its node, is not there",
         "wait: another conductor takes it over within {s.options.check_allocations_interval} s, "
         "if one is alive"),
    Rule("nodes_locked", lambda s: s.allocation.last_error, "{fact}",
         "wait: it is tried again, at most {s.options.node_locked_retry_attempts} times, until a "
         "node is free"),
    Rule("queued", lambda _: True,
         "it waits for its turn: conductor {s.conductor.hostname} serves one after the other",
         "wait: its node is looked for when those before it have been"),
)  # fmt: skip


def explain(ctx: Context, ident: str) -> Json:
    """Return the explanation of an allocation's state.  Raises AllocationNotFound."""
    policy.authorize_record(ctx, ALLOCATION, ident, "get")
    allocation = records.get(ctx, ALLOCATION, ident, _COLUMNS)
    conductor = None
    if allocation.state == AllocationState.ALLOCATING:
        with contextlib.suppress(errors.Unavailable):
            registered = ctx.services.rpc.ring.list_conductors()
            hosts = {each.hostname: each for each in registered}
            conductor = hosts.get(allocation.conductor_affinity or "")
    since = allocation.updated_at or allocation.created_at
    cause = causes.find(OF_ALLOCATION, AllocationSituation(ctx, allocation, conductor))
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
        "cause_code": cause.code,
        "cause": cause.cause,
        "since": None if since is None else since.isoformat(),
        "next_action": cause.next_action,
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


@dataclass(frozen=True, slots=True)
class AllocationSituation:
    """``conductor``: that which serves the allocation; None: unknown, or none."""

    ctx: Context
    allocation: Any
    conductor: Conductor | None

    @property
    def options(self) -> Options:
        return self.ctx.services.conf.conductor

    @property
    def has_failed(self) -> bool:
        return bool(self.allocation.state == AllocationState.ERROR)

    @property
    def advice(self) -> str:
        return advise_on_shortage(self.ctx)
