"""A conductor inside the measuring process: what is measured then has no HTTP around it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bloomery import conf
from bloomery.conductor import lifecycle, nodes
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.conf.conductor import Conductor
from bloomery.db import schema
from bloomery.model.request import Request
from bloomery.state_dir import StateDir

_QUIET = conf.Conf(conductor=Conductor(sync_power_state_interval=0))


@contextmanager
def conductor(path: Path, settings: conf.Conf = _QUIET) -> Iterator[ConductorRuntime]:
    """Run a conductor on a new state dir, its periodics as far away as can be."""
    with StateDir(path) as home:
        db = home.open_database(settings.database)
        schema.prepare(db)
        running = lifecycle.ConductorService(lifecycle.build(settings, db, home.sealer(db)))
        running.start()
        try:
            yield running.runtime
        finally:
            running.stop()
            db.close()


def context(runtime: ConductorRuntime) -> Context:
    return Context(runtime=runtime, request=Request.new())


def enrol(context: Context, state: str) -> str:
    """Store a node in ``state``; return its UUID."""
    made = str(uuid.uuid4())
    nodes.create(context, {"uuid": made, "driver": "fake-hardware", "provision_state": state})
    return made
