"""Readiness of the service, for load balancers."""

from __future__ import annotations

import functools
from collections.abc import Callable

import sqlalchemy as sa

from bloomery import errors
from bloomery.operations.context import Services
from bloomery.rpc import ring


def parts(services: Services) -> dict[str, Callable[[], list[str]]]:
    """Return the checks of the service's parts, by name."""
    return {
        "the database": functools.partial(missing, services),
        "the message broker": services.rpc.missing,
    }


def missing(services: Services) -> list[str]:
    """Return the missing parts of the service; an empty list: it is ready.

    Reads the conductors again: two statements.  A database without writes is reported alone, since
    heartbeats fail with it.
    """
    if services.db.refusal is not None:
        return [str(services.db.refusal)]
    of_conductors = services.rpc.ring
    try:
        of_conductors.refresh()
    except errors.Failure as exc:
        return [str(exc)]
    except sa.exc.SQLAlchemyError as exc:
        return [f"the database cannot be read: {type(exc).__name__}"]
    registered = of_conductors.list_conductors()
    hosts = [conductor.hostname for conductor in registered if conductor.alive]
    if not hosts:
        return [ring.why_nobody(registered)]
    return [
        f"conductor {host} is on line and cannot be reached from here: its nodes answer 503 until "
        f"it is back, or silent for {services.conf.conductor.heartbeat_timeout} s"
        for host in services.rpc.unreachable(hosts)
    ]
