"""Can this service do its work?  Asked by whoever sends it traffic."""

from __future__ import annotations

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import conductors
from bloomery.operations.context import Services
from bloomery.rpc import ring


def missing(services: Services) -> list[str]:
    """Return what keeps the service from working; nothing: it is ready."""
    try:
        with services.db.read() as conn:
            registered = conductors.list_all(conn)
    except errors.Failure as exc:
        return [str(exc)]
    except sa.exc.SQLAlchemyError as exc:
        return [f"the database cannot be read: {type(exc).__name__}"]
    hosts = [conductor.hostname for conductor in ring.alive(registered)]
    if not hosts:
        return ["no conductor is on line: start one, or wait until it has registered"]
    return [
        f"conductor {host} is on line and cannot be reached from here: its nodes answer 503 until "
        f"it is back, or silent for {services.conf.conductor.heartbeat_timeout} s"
        for host in services.rpc.unreachable(hosts)
    ]
