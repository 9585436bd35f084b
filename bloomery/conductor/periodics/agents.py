"""The periodics of drivers: look at nodes that wait, and pass on what their agents say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bloomery import errors
from bloomery.conductor import agent
from bloomery.conductor.house import House
from bloomery.conductor.periodics import looking
from bloomery.db import nodes
from bloomery.drivers.base import Deploy, Periodic


def make(house: House) -> Callable[[], None]:
    found = [
        (name, periodic)
        for name, interface in house.registry.interfaces["deploy"].items()
        if isinstance(interface, Deploy)
        for periodic in interface.periodics()
    ]
    return partial(run, house, found)


def run(house: House, periodics: list[tuple[str, Periodic]]) -> None:
    for interface, periodic in periodics:
        with house.db.read() as conn:
            waiting = nodes.list_of_interface(conn, "deploy_interface", interface, periodic.states)
        for uuid in waiting:
            with looking.skipping(uuid):
                _ask(house, uuid, periodic)


def _ask(house: House, uuid: str, periodic: Periodic) -> None:
    context = looking.context_of(house)
    with looking.look(context, uuid) as task:
        beat = periodic.look(task)
    if beat is not None:
        try:
            agent.heartbeat(context, uuid, beat)
        except errors.NoFreeConductorWorker:
            return
