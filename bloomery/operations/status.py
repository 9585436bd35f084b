"""The state of the site beside its nodes, and its readiness, for load balancers."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

import bloomery
from bloomery import audit, errors
from bloomery.db import event_cursors, schema, stacks, steps, webhooks
from bloomery.operations import conductors, policy
from bloomery.operations.context import Context, Services
from bloomery.rpc import ring

Json = dict[str, Any]

RULE: Final = "baremetal:conductor:get"
AUDIT_RULE: Final = "baremetal:audit:list"
ORDER: Final = (
    "at", "user", "user_name", "project", "address", "method", "path", "target", "nodes", "fields",
    "status", "request_id",
)  # fmt: skip


def describe(ctx: Context) -> Json:
    """Return how the site stands; ``fleet.describe`` counts its nodes."""
    policy.authorize(ctx, RULE)
    db = ctx.services.db
    pool = db.pool
    with db.read() as conn:
        flows = steps.count_open_flows(conn)
        stack_states = stacks.count_by_state(conn)
        lags = event_cursors.measure_lags(conn)
        parked = webhooks.list_parked_sinks(conn)
    return {
        "release": bloomery.__version__,
        "conductors": conductors.describe_all(ctx),
        "flows": [{"phase": phase, "state": state, "flows": n} for phase, state, n in flows],
        "stacks": stack_states,
        "sinks": [
            {"sink": sink, "lag_s": round(lag_s, 1), "is_parked": sink in parked}
            for sink, lag_s in lags.items()
        ],
        "database": {
            "kind": db.backend,
            "schema": schema.revision_of(db),
            "refusal": None if db.refusal is None else str(db.refusal),
            "connections_in_use": None if pool is None else pool.in_use,
            "connections_limit": None if pool is None else pool.most,
        },
        "message_broker_connected": ctx.services.rpc.is_connected,
    }


def list_orders(ctx: Context, limit: int) -> Json:
    """Return the newest orders of the record that this host keeps, newest first.

    ``is_whole``: these are all in its file.  Raises Forbidden, Unavailable.
    """
    policy.authorize(ctx, AUDIT_RULE)
    conf, orders, is_whole = ctx.services.conf, list[Json](), True
    if conf.audit.file:
        try:
            orders, is_whole = audit.newest(Path(conf.audit.file))
        except FileNotFoundError:
            pass  # nothing was ordered since it was moved away
        except OSError as exc:
            raise errors.Unavailable(
                reason=f"cannot read [audit]file: {exc.strerror}", log=conf.audit.file
            ) from exc
    # A body that was refused may name what UTF-8 cannot hold.
    text = json.dumps(orders[:limit], ensure_ascii=False).encode(errors="replace")
    return {
        "host": str(conf.default.host),
        "is_recorded": bool(conf.audit.file),
        "is_whole": is_whole and len(orders) <= limit,
        "orders": [{name: order.get(name) for name in ORDER} for order in json.loads(text)],
    }


def readiness_checks(services: Services) -> dict[str, Callable[[], list[str]]]:
    """Return the checks of the service's parts, by name."""
    return {
        "the database": functools.partial(list_missing, services),
        "the message broker": services.rpc.missing,
        "the pulse of BMCs": services.pulse_missing,
    }


def list_missing(services: Services) -> list[str]:
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
