"""Periodics of deploy interfaces: poll waiting nodes and report their agents' heartbeats.

One query a second lists the waiting nodes.  A node is polled when its row has changed since the
last poll, or when its driver's delay is over.  The memory is lost at a restart, which polls every
node once.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from bloomery import clock, errors
from bloomery.conductor import flows, tasks
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import nodes
from bloomery.drivers.base import Deploy, Heartbeat, Periodic

_FAILED_S: Final = 60.0  # pause after a poll that failed


class Due(NamedTuple):
    """When to poll a node whose row stays ``row``; ``at`` None: not at all."""

    row: tuple[Any, ...]
    at: datetime | None


Memory = dict[tuple[int, str], Due]  # by the place of a periodic, and node


def make(runtime: ConductorRuntime) -> Callable[[], None]:
    periodics = [
        (name, periodic)
        for name, interface in runtime.registry.interfaces["deploy"].items()
        if isinstance(interface, Deploy)
        for periodic in interface.periodics()
    ]
    return partial(run, runtime, periodics, {})


def run(
    runtime: ConductorRuntime, periodics: list[tuple[str, Periodic]], memory: Memory | None = None
) -> None:
    memory = {} if memory is None else memory
    listed, shares = set(), runtime.list_shares()
    for place, (interface, periodic) in enumerate(periodics):
        with runtime.db.read() as conn:
            waiting = nodes.list_of_interface(
                conn, shares, "deploy_interface", interface, periodic.states
            )
        ours = set(runtime.list_served(key for key, _ in waiting))
        for key, row in waiting:
            who = place, key.uuid
            if key.uuid in ours:
                listed.add(who)
                due, now = memory.get(who), clock.now()
                if due is None or due.row != row or (due.at is not None and due.at <= now):
                    memory[who] = Due(row, now + timedelta(seconds=_FAILED_S))
                    with tasks.skipping(key.uuid):
                        _ask(runtime, who, periodic, memory)
    for gone in memory.keys() - listed:
        del memory[gone]


def _ask(
    runtime: ConductorRuntime, who: tuple[int, str], periodic: Periodic, memory: Memory
) -> None:
    context, uuid = tasks.background_context(runtime), who[1]
    with tasks.shared(context, uuid) as task:
        answer = periodic.look(task)
    if not isinstance(answer, Heartbeat):
        at = None if answer is None else clock.now() + timedelta(seconds=answer)
        memory[who] = memory[who]._replace(at=at)
        return
    del memory[who]  # a node that keeps waiting is polled again
    try:
        flows.heartbeat(context, uuid, answer)
    except errors.NoFreeConductorWorker:
        return
