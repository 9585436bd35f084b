"""The lock of a tree of stacks: its engine, and the fence around writes.

The row exists as long as the tree: the transaction that accepts the root inserts it.  Each
acquisition raises ``generation``; each written transaction of the tree raises ``transactions``.
An engine that was declared dead and comes back fails at the guard with StackLockLost.

Every writer of a tree locks this row first, then stacks, then the rest: an engine by the guard, an
accepted request by ``hold``.  So writers are serialized without deadlocks, and the orders that an
engine sees stay the same until its commit.  (SQLite has one writer, and needs no row lock.)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import rows
from bloomery.db.tables import STACK_LOCKS, STACK_ORDERS

_T = STACK_LOCKS.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Proof of a lock, valid until another acquisition or written transaction."""

    root_uuid: str
    engine_id: str
    generation: int
    transactions: int


_INSERT = sa.insert(STACK_LOCKS)
_AT_ROOT = _T.root_uuid == sa.bindparam("root")
_FREE_OR_OF = sa.or_(
    _T.engine_id.is_(None),
    sa.and_(
        _T.engine_id == sa.bindparam("holder"), _T.generation == sa.bindparam("holder_generation")
    ),
)
_HELD = (
    _AT_ROOT,
    _T.engine_id == sa.bindparam("engine"),
    _T.generation == sa.bindparam("lock_generation"),
)
_ROW = sa.select(_T.engine_id, _T.generation, _T.transactions).where(_AT_ROOT)
_HOLD = sa.select(_T.root_uuid).where(_AT_ROOT).with_for_update()
_ACQUIRE = (
    sa.update(STACK_LOCKS)
    .where(_AT_ROOT, _FREE_OR_OF)
    .values(
        engine_id=sa.bindparam("engine"),
        generation=_T.generation + 1,
        transactions=0,
        updated_at=sa.bindparam("at"),
    )
)
_ADVANCE = (
    sa.update(STACK_LOCKS)
    .where(*_HELD, _T.transactions == sa.bindparam("last_transaction"))
    .values(transactions=_T.transactions + 1, updated_at=sa.bindparam("at"))
)
_NO_ORDER = ~sa.exists().where(STACK_ORDERS.c.root_uuid == sa.bindparam("root"))
_RELEASE = sa.update(STACK_LOCKS).where(*_HELD, _NO_ORDER).values(engine_id=None)


def add(conn: sa.Connection, root_uuid: str) -> None:
    """Insert the lock row of a new tree, without an engine."""
    conn.execute(
        _INSERT,
        {"root_uuid": root_uuid, "generation": 0, "transactions": 0, "updated_at": rows.now()},
    )


def hold(conn: sa.Connection, root_uuid: str) -> bool:
    """Keep engines from writing the tree until the transaction ends; False: there is no such tree.

    Every transaction that writes a stack, except an engine's, begins with it.
    """
    return conn.execute(_HOLD, {"root": root_uuid}).scalar_one_or_none() is not None


def acquire(
    conn: sa.Connection, root_uuid: str, engine_id: str, *, dead: tuple[str, int] | None = None
) -> Guard:
    """Take the lock if it is free, or if ``dead`` has it: an engine and its generation.

    One UPDATE decides.  Raises StackLocked, which names the engine; NotFound.
    """
    holder, generation = dead or (None, None)
    won = conn.execute(
        _ACQUIRE,
        {
            "root": root_uuid, "engine": engine_id, "at": rows.now(), "holder": holder,
            "holder_generation": generation,
        },
    ).rowcount  # fmt: skip
    row = conn.execute(_ROW, {"root": root_uuid}).one_or_none()
    if row is None:
        raise errors.NotFound(reason=f"cannot work on stack {root_uuid}: it is gone")
    if not won:
        raise errors.StackLocked(stack=root_uuid, engine=row.engine_id, generation=row.generation)
    return Guard(
        root_uuid=root_uuid, engine_id=engine_id, generation=row.generation, transactions=0
    )


def advance(conn: sa.Connection, guard: Guard) -> bool:
    """Begin a transaction of the tree: lock the row, and raise ``transactions``.

    False: this transaction was committed before; the connection broke before the answer. Raises
    StackLockLost.
    """
    if conn.execute(_ADVANCE, _proof(guard) | {"at": rows.now()}).rowcount:
        return True
    row = conn.execute(_ROW, {"root": guard.root_uuid}).one_or_none()
    if (
        row is None
        or row.engine_id not in (guard.engine_id, None)
        or (row.generation, row.transactions) != (guard.generation, guard.transactions + 1)
    ):
        raise errors.StackLockLost(stack=guard.root_uuid, engine=guard.engine_id)
    return False


def release(conn: sa.Connection, guard: Guard) -> bool:
    """Release the lock unless an order waits; False: an order waits, and the lock is kept.

    After ``advance`` in the same transaction, which has locked the row: a request has either
    committed its order, which is seen here, or will find the lock free.  A single UPDATE with both
    conditions is no alternative: PostgreSQL would read orders from before its wait for the row.
    """
    return bool(conn.execute(_RELEASE, _proof(guard)).rowcount)


def find_engine(conn: sa.Connection, root_uuid: str) -> str | None:
    """Return the engine that works on a tree, or None."""
    row = conn.execute(_ROW, {"root": root_uuid}).one_or_none()
    return None if row is None else row.engine_id


def is_free(conn: sa.Connection, root_uuid: str) -> bool:
    row = conn.execute(_ROW, {"root": root_uuid}).one_or_none()
    return row is None or row.engine_id is None


def list_orphans(conn: sa.Connection, live: Collection[str]) -> list[str]:
    """Return the roots that need an engine; ``live``: the living engines.

    Either a dead engine has the lock, or orders wait and no living engine works on them.
    """
    ordered = sa.select(STACK_ORDERS.c.root_uuid)
    unattended = sa.or_(_T.engine_id.is_(None), _T.engine_id.not_in(live))
    query = sa.select(_T.root_uuid).where(
        unattended, sa.or_(_T.engine_id.is_not(None), _T.root_uuid.in_(ordered))
    )
    return list(conn.execute(query.order_by(_T.root_uuid)).scalars())


def _proof(guard: Guard) -> dict[str, Any]:
    return {
        "root": guard.root_uuid,
        "engine": guard.engine_id,
        "lock_generation": guard.generation,
        "last_transaction": guard.transactions,
    }
