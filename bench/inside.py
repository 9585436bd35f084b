"""A conductor inside the measuring process: what is measured then has no HTTP around it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bloomery import conf
from bloomery.conductor import nodes, service
from bloomery.conductor.house import Context, House
from bloomery.conf.conductor import Conductor
from bloomery.db import schema
from bloomery.home import Home
from bloomery.model.request import Request

_QUIET = conf.Conf(conductor=Conductor(sync_power_state_interval=0))


@contextmanager
def conductor(path: Path, settings: conf.Conf = _QUIET) -> Iterator[House]:
    """Run a conductor on a new state dir, its periodics as far away as can be."""
    with Home(path) as home:
        db = home.open_database(settings.database)
        schema.prepare(db)
        running = service.ConductorService(service.build(settings, db, home.sealer(db)))
        running.start()
        try:
            yield running.house
        finally:
            running.stop()
            db.close()


def context(house: House) -> Context:
    return Context(house=house, request=Request.new())


def enrol(context: Context, state: str) -> str:
    """Store a node in ``state``; return its UUID."""
    made = str(uuid.uuid4())
    nodes.create(context, {"uuid": made, "driver": "fake-hardware", "provision_state": state})
    return made
