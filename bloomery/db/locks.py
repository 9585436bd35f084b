"""The reservation of a node: its holder, its purpose, and the fence around writes.

Each reservation raises ``lock_generation``.  Every write under the lock, to any table, is in a
transaction that begins with the guard: a conditional UPDATE of the node by holder and generation.
A conductor that was declared dead and comes back fails there with LockLost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import nodes, rows
from bloomery.db.tables import CONDUCTORS, NODES
from bloomery.model.node import Node
from bloomery.model.rules import agents

_T = NODES.c
FREE = {"reservation": None, "reserved_for": None, "reserved_at": None}  # columns of a free node


class NodeChanged(Exception):
    """The node is not as it was read, so its late reservation was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Proof of a reservation, valid until the next reservation of the node."""

    node_uuid: str
    holder: str
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LateReservation:
    """A reservation that comes with the first write, if the node is still as it was read."""

    row: Mapping[str, Any]  # of the node, as it was read without a reservation
    guard: Guard  # of the reservation to come
    purpose: str
    at: datetime

    def columns(self) -> dict[str, Any]:
        """Return the columns of the reserved node."""
        return {
            "reservation": self.guard.holder, "reserved_for": self.purpose[:255],
            "reserved_at": self.at, "lock_generation": self.guard.generation,
        }  # fmt: skip


_RESERVE = (
    sa.update(NODES)
    .where(_T.uuid == sa.bindparam("ident"), _T.reservation.is_(None))
    .values(
        reservation=sa.bindparam("holder"),
        reserved_for=sa.bindparam("purpose"),
        reserved_at=sa.bindparam("at"),
        lock_generation=_T.lock_generation + 1,
    )
)
_INFO = sa.select(_T.driver_internal_info).where(_T.uuid == sa.bindparam("ident")).with_for_update()
_IS_ALIVE = sa.exists().where(  # a conductor that was declared dead reserves nothing
    CONDUCTORS.c.hostname == sa.bindparam("holder"),
    CONDUCTORS.c.incarnation == sa.bindparam("incarnation"),
)
_OF_A_LIFE = _RESERVE.where(_IS_ALIVE)
_HELD = (
    _T.uuid == sa.bindparam("guard_node"),
    _T.reservation == sa.bindparam("guard_holder"),
    _T.lock_generation == sa.bindparam("guard_generation"),
)
_UNDER_LOCK = sa.update(NODES).where(*_HELD)
_WITH_SAME_INFO = _UNDER_LOCK.where(_T.driver_internal_info == sa.bindparam("guard_info"))
_RELEASE = _UNDER_LOCK.values(FREE)
_CHECK = _UNDER_LOCK.values(lock_generation=_T.lock_generation)
_LATE_OF_A_LIFE = nodes.OF_NODE.where(_IS_ALIVE)


def reserve(
    conn: sa.Connection,
    uuid: str,
    *,
    holder: str,
    purpose: str,
    incarnation: str | None = None,
    takes_over: Callable[[Node], None] | None = None,
) -> Node:
    """Take the exclusive lock on one node, or raise NodeLocked with its holder.

    One UPDATE decides; nothing is read first.  Returns the node as it is under the lock; its
    ``lock_generation`` guards every later write.  ``incarnation``: of the conductor ``holder``,
    which must still be current; None where no conductor is registered.  ``takes_over``: free the
    node from its holder first, unless this check of it raises.  Raises NodeLocked, NodeNotFound;
    LockLost for an incarnation that is over.
    """
    if takes_over is not None:
        takes_over(nodes.get_for_update(conn, uuid))
        conn.execute(sa.update(NODES).where(_T.uuid == uuid).values(FREE))
    values = {"ident": uuid, "holder": holder, "purpose": purpose[:255], "at": rows.now()}
    if incarnation is None:
        won = conn.execute(_RESERVE, values).rowcount
    else:
        won = conn.execute(_OF_A_LIFE, values | {"incarnation": incarnation}).rowcount
    node = nodes.get(conn, uuid)
    if won:
        return node
    if node.reservation is None and incarnation is not None:
        raise errors.LockLost(node=uuid, holder=holder, log="the conductor was declared dead")
    raise locked(node)


def locked(node: Node) -> errors.NodeLocked:
    """Return the error that names the holder of ``node`` and its purpose."""
    return errors.NodeLocked(
        node=errors.name_of(node),
        holder=node.reservation or "unknown",
        action=node.reserved_for or "",
    )


def release(conn: sa.Connection, guard: Guard) -> bool:
    """Release the lock; False if it was lost (a fence passed, a node deleted)."""
    return bool(conn.execute(_RELEASE, _proof(guard)).rowcount)


def check(conn: sa.Connection, guard: Guard) -> None:
    """Begin a guarded transaction that writes other tables only.  Raises LockLost."""
    _require(conn.execute(_CHECK, _proof(guard)).rowcount, guard)


def require_held(conn: sa.Connection, guard: Guard) -> None:
    """Check the lock before hardware is touched.  Raises LockLost."""
    query = sa.select(sa.literal(1)).select_from(NODES).where(*_HELD)
    _require(len(conn.execute(query, _proof(guard)).all()), guard)


def update_guarded(
    conn: sa.Connection, guard: Guard, values: dict[str, Any], *, former_info: str | None = None
) -> Any | None:
    """Change columns of the node under its lock; begins a guarded transaction.

    ``values`` are encoded.  ``former_info``: driver_internal_info as the writer has read it; a
    token that an agent got since then is added to ``values``, and returned.  Raises LockLost, and
    the errors of ``nodes.raise_named``.
    """
    token, proof = None, _proof(guard)
    try:
        if former_info is None:
            is_done = rows.change(conn, _UNDER_LOCK, proof, values)
        else:
            same = proof | {"guard_info": former_info}
            is_done = rows.change(conn, _WITH_SAME_INFO, same, values)
        if not is_done and former_info is not None:
            query = sa.select(_T.driver_internal_info).where(_T.uuid == guard.node_uuid)
            text = conn.execute(query.with_for_update()).scalar_one_or_none()
            stored = rows.load(text) if text else {}
            token = stored.get(nodes.AGENT_TOKEN)
            if token is not None:
                keys = (nodes.AGENT_TOKEN, agents.TOKEN_TAKER)
                of_token = {key: stored[key] for key in keys if key in stored}
                info = rows.load(values["driver_internal_info"]) | of_token
                values["driver_internal_info"] = rows.dump(info)
            is_done = rows.change(conn, _UNDER_LOCK, proof, values)
    except sa.exc.IntegrityError as exc:
        nodes.raise_named(exc, {"uuid": guard.node_uuid} | values)
        raise
    _require(is_done, guard)
    return token


def reserve_late(
    conn: sa.Connection,
    late: LateReservation,
    values: dict[str, Any],
    *,
    incarnation: str | None = None,
) -> None:
    """Reserve the node and change columns of it in one statement; begins a guarded transaction.

    ``values`` are encoded; with those of FREE the reservation ends with the transaction.  Raises
    NodeChanged, NodeNotFound, LockLost as ``reserve``, and the errors of ``nodes.raise_named``.
    """
    row = nodes.get_row(conn, late.guard.node_uuid, for_update=True)
    if not nodes.is_same(row, late.row):
        raise NodeChanged
    columns = late.columns() | values
    update, place = nodes.OF_NODE, {"ident": late.guard.node_uuid}
    if incarnation is not None:
        update = _LATE_OF_A_LIFE
        place |= {"holder": late.guard.holder, "incarnation": incarnation}
    try:
        changed = rows.change(conn, update, place, columns)
    except sa.exc.IntegrityError as exc:
        nodes.raise_named(exc, {"uuid": late.guard.node_uuid} | columns)
        raise
    _require(changed, late.guard)


def list_holders(conn: sa.Connection) -> list[str]:
    """Return the names of all holders of nodes."""
    query = sa.select(_T.reservation).where(_T.reservation.is_not(None)).distinct()
    return [str(name) for name in conn.execute(query).scalars()]


def list_of_holder(conn: sa.Connection, holder: str) -> list[Guard]:
    """Return the nodes that ``holder`` has reserved."""
    query = sa.select(_T.uuid, _T.lock_generation).where(_T.reservation == holder)
    return [
        Guard(node_uuid=uuid, holder=holder, generation=generation)
        for uuid, generation in conn.execute(query)
    ]


def count_by_holder(conn: sa.Connection) -> dict[str, int]:
    """Return how many nodes each holder has reserved."""
    query = sa.select(_T.reservation, sa.func.count()).where(_T.reservation.is_not(None))
    return {row.reservation: row[1] for row in conn.execute(query.group_by(_T.reservation))}


def void_all(conn: sa.Connection, holder: str | None = None) -> list[str]:
    """Clear the reservations of ``holder`` (None: of all); return the nodes' UUIDs.

    The holder must be dead: on start under the lock of the state dir, or by lease.  The generation
    is raised, so that a write of the old holder fails.
    """
    is_held = _T.reservation.is_not(None) if holder is None else _T.reservation == holder
    freed = list(conn.execute(sa.select(_T.uuid).where(is_held)).scalars())
    conn.execute(
        sa.update(NODES).where(is_held).values(lock_generation=_T.lock_generation + 1, **FREE),
    )
    return freed


def _proof(guard: Guard) -> dict[str, Any]:
    return {
        "guard_node": guard.node_uuid,
        "guard_holder": guard.holder,
        "guard_generation": guard.generation,
    }


def _require(rowcount: int, guard: Guard) -> None:
    if not rowcount:
        raise errors.LockLost(node=guard.node_uuid, holder=guard.holder)
