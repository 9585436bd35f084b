"""Short operations: lock, write, tell and release in one transaction.

The row is read inside the write transaction, so what a caller wants changed meets what is
there, and no acknowledged change is lost.  A node that a flow holds is waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from bloomery.conductor import node_lock
from bloomery.conductor.runtime import Context
from bloomery.db import locks, nodes
from bloomery.model.node import Node

T = TypeVar("T")


def change(context: Context, uuid: str, work: Callable[[sa.Connection, Node], T]) -> T:
    """Run ``work`` on the node's row, which nobody else holds or can take meanwhile.

    Raises NodeNotFound, NodeLocked when the node stays busy, and what ``work`` raises.
    """
    runtime, give_up_at = context.runtime, time.monotonic() + context.patience_s

    def locked_work(conn: sa.Connection) -> T:
        node = nodes.get_for_update(conn, uuid)
        if node.reservation is not None:
            raise locks.locked(node)
        return work(conn, node)

    node_lock.enter(context, uuid, context.patience_s)
    try:
        return node_lock.until_free(context, give_up_at, lambda: runtime.db.transact(locked_work))
    finally:
        runtime.node_locks.leave(uuid)
