"""Restart consoles that ended with their conductor, where their nodes are ours now."""

from __future__ import annotations

from functools import partial

from bloomery.conductor import console, task_manager
from bloomery.conductor.lanes import Lane
from bloomery.conductor.periodics import polling
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import nodes
from bloomery.drivers import base


def run(runtime: ConductorRuntime) -> None:
    """Release consoles that another conductor has started, and take over those of our nodes."""
    with runtime.db.read() as conn:
        consoles = nodes.list_consoles(conn)
    left = [key for key, info in consoles if not console.is_of_this_life(runtime, info)]
    for interface in runtime.registry.interfaces["console"].values():
        assert isinstance(interface, base.Console)
        interface.release([key.uuid for key in left])
    take_over = partial(_take_over, runtime)
    most = runtime.conf.conductor.periodic_max_workers
    Lane(runtime.workers, take_over, most=most).walk(runtime.list_served(left))


def _take_over(runtime: ConductorRuntime, uuid: str) -> None:
    with polling.skipping(uuid):
        context = polling.context_of(runtime)
        with task_manager.acquire(context, uuid, purpose="console", retry=False) as task:
            console.take_over(task)
