"""Short operations: lock, write, tell and release in one transaction.

The row is read inside the write transaction, so what a caller wants changed meets what is
there, and no acknowledged change is lost.  A node that a flow holds is waited for at its gate.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor.house import Context
from bloomery.db import locks, nodes
from bloomery.db.gate import GateFull
from bloomery.model.node import Node

T = TypeVar("T")


def change(context: Context, uuid: str, work: Callable[[sa.Connection, Node], T]) -> T:
    """Run ``work`` on the node's row, which nobody else holds or can take meanwhile.

    Raises NodeNotFound, NodeLocked when the node stays busy, and what ``work`` raises.
    """
    house, give_up_at = context.house, time.monotonic() + context.patience_s

    def locked_work(conn: sa.Connection) -> T:
        node = nodes.get_for_update(conn, uuid)
        if node.reservation is not None:
            raise locks.locked(node)
        return work(conn, node)

    _enter(context, uuid)
    try:
        return _retry_until(
            give_up_at,
            house.conf.conductor.node_locked_retry_interval,
            lambda: house.db.transact(locked_work),
        )
    finally:
        house.gates.leave(uuid)


def _enter(context: Context, uuid: str) -> None:
    try:
        entered = context.house.gates.enter(uuid, context.patience_s)
    except GateFull:
        entered = False
    if not entered:
        with context.house.db.read() as conn:
            node = nodes.get(conn, uuid)
        raise errors.NodeLocked(
            node=uuid, holder=node.reservation or context.house.host,
            action=node.reserved_for or "",
        )  # fmt: skip


def _retry_until(give_up_at: float, pause_s: float, attempt: Callable[[], T]) -> T:
    """Another process may hold the reservation: ask again until the time is up."""
    while True:
        try:
            return attempt()
        except errors.NodeLocked:
            left_s = give_up_at - time.monotonic()
            if left_s <= 0:
                raise
        time.sleep(min(pause_s, left_s))
