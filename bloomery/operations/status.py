"""The state of the site beside its nodes: conductors, flows, stacks, sinks, database."""

from __future__ import annotations

from typing import Any, Final

import bloomery
from bloomery.db import event_cursors, schema, stacks, steps, webhooks
from bloomery.db.engine import Database
from bloomery.operations import conductors, policy
from bloomery.operations.context import Context

Json = dict[str, Any]

RULE: Final = "baremetal:conductor:get"


def describe(ctx: Context) -> Json:
    """Return how the site stands; ``fleet.describe`` counts its nodes."""
    policy.authorize(ctx, RULE)
    db = ctx.services.db
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
        "database": _database(db),
        "message_broker_connected": ctx.services.rpc.is_connected,
    }


def _database(db: Database) -> Json:
    pool = db.pool
    return {
        "kind": db.backend,
        "schema": schema.revision_of(db),
        "refusal": None if db.refusal is None else str(db.refusal),
        "connections_in_use": None if pool is None else pool.in_use,
        "connections_limit": None if pool is None else pool.most,
    }
