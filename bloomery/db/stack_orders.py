"""Orders: accepted requests that no engine has taken yet.

An order is committed with the state that clients see, and deleted with the engine's transaction
that has taken it: whichever engine loads the tree finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from bloomery.db import rows, stack_locks
from bloomery.db.tables import STACK_ORDERS
from bloomery.model.stacks import Order, OrderKind
from bloomery.secrets import Sealer

_T = STACK_ORDERS.c
_INSERT = sa.insert(STACK_ORDERS)
_DELETE = sa.delete(STACK_ORDERS).where(_T.id.in_(sa.bindparam("ids", expanding=True)))
_LIST = (
    sa.select(
        _T.id,
        _T.root_uuid,
        _T.stack_uuid,
        _T.kind,
        _T.payload,
        _T.request,
        _T.created_at,
    )
    .where(_T.root_uuid == sa.bindparam("root"), _T.id > sa.bindparam("after"))
    .order_by(_T.id)
)


def insert(conn: sa.Connection, sealer: Sealer, order: Order) -> int:
    """Insert an order and return its id, which is larger than those of all former orders.

    Locks the tree's lock row first (on PostgreSQL ids of one tree would not ascend otherwise), and
    inserts it for a new root.
    """
    if not stack_locks.hold(conn, order.root_uuid):
        stack_locks.add(conn, order.root_uuid)
    row = {
        "root_uuid": order.root_uuid,
        "stack_uuid": order.stack_uuid,
        "kind": order.kind,
        "payload": sealer.seal_text(rows.dump_document(order.payload)),
        "request": rows.dump_document(order.request),
        "created_at": rows.now(),
    }
    result = conn.execute(_INSERT, row)
    key: Any = result.inserted_primary_key
    return int(key[0])


def list_rows(conn: sa.Connection, root_uuid: str, after: int = 0) -> Sequence[sa.Row[Any]]:
    """Return the rows of a tree's orders after the id ``after``, in the order of acceptance."""
    return conn.execute(_LIST, {"root": root_uuid, "after": after}).all()


def from_row(row: sa.Row[Any], sealer: Sealer) -> Order:
    """Return the order in a row.  Raises KeyMissing."""
    return Order(
        id=row.id,
        root_uuid=row.root_uuid,
        stack_uuid=row.stack_uuid,
        kind=OrderKind(row.kind),
        payload=rows.load_document(sealer.open_text(row.payload)),
        request=rows.load_document(row.request),
    )


def list_roots(conn: sa.Connection) -> list[str]:
    """Return the roots with orders, longest waiting first."""
    first = sa.func.min(_T.id)
    query = sa.select(_T.root_uuid).group_by(_T.root_uuid).order_by(first)
    return list(conn.execute(query).scalars())


def list_newest(conn: sa.Connection, most: int) -> frozenset[int]:
    """Return the ids of the newest waiting orders."""
    return frozenset(conn.execute(sa.select(_T.id).order_by(_T.id.desc()).limit(most)).scalars())


def delete(conn: sa.Connection, ids: Sequence[int]) -> None:
    """Delete orders in the engine's transaction that has taken them."""
    if ids:
        conn.execute(_DELETE, {"ids": list(ids)})
