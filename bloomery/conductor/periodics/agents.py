"""The periodics of drivers: look at nodes that wait, and pass on what their agents say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bloomery import errors
from bloomery.conductor import flows
from bloomery.conductor.periodics import looking
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import nodes
from bloomery.drivers.base import Deploy, Periodic


def make(runtime: ConductorRuntime) -> Callable[[], None]:
    periodics = [
        (name, periodic)
        for name, interface in runtime.registry.interfaces["deploy"].items()
        if isinstance(interface, Deploy)
        for periodic in interface.periodics()
    ]
    return partial(run, runtime, periodics)


def run(runtime: ConductorRuntime, periodics: list[tuple[str, Periodic]]) -> None:
    for interface, periodic in periodics:
        with runtime.db.read() as conn:
            waiting = nodes.list_of_interface(conn, "deploy_interface", interface, periodic.states)
        for uuid in runtime.list_served(waiting):
            with looking.skipping(uuid):
                _ask(runtime, uuid, periodic)


def _ask(runtime: ConductorRuntime, uuid: str, periodic: Periodic) -> None:
    context = looking.context_of(runtime)
    with looking.look(context, uuid) as task:
        beat = periodic.look(task)
    if beat is not None:
        try:
            flows.heartbeat(context, uuid, beat)
        except errors.NoFreeConductorWorker:
            return
