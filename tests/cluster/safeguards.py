"""What keeps a cluster in order, each of it with a switch: for the proof that a seed notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa

from bloomery.conductor import recovery
from bloomery.conductor.lease import Lease
from bloomery.conductor.periodics import leases
from bloomery.conductor.runner import Flow
from bloomery.conductor.task_manager import TaskManager
from bloomery.db import conductors, locks, nodes
from bloomery.db.tables import CONDUCTORS


def _guard_off() -> None:
    """Whoever writes under a lock just writes."""

    def update(conn: Any, guard: locks.Guard, values: dict[str, Any], **_: Any) -> None:
        nodes.update(conn, guard.node_uuid, {k: v for k, v in values.items() if k != "updated_at"})

    locks._require = lambda rowcount, guard: None
    locks.update_guarded = update


def _own_only_off() -> None:
    """Whoever starts voids everybody's reservations."""
    void = recovery.void_reservations
    recovery.void_reservations = lambda runtime, *, alone: void(runtime, alone=True)


def _burial_off() -> None:
    """Nobody frees what a dead conductor held."""
    leases._fence_out = lambda conn, peer: 0


def _journal_off() -> None:
    """A flow leaves no rows: what a crash interrupts is lost."""
    Flow.opening = property(lambda self: [])


def _incarnation_off() -> None:
    """Who was buried beats again as if nothing had happened."""

    def beat(conn: Any, hostname: str, _incarnation: str | None, *, online: bool = True) -> bool:
        alive = {"heartbeat": CONDUCTORS.c.heartbeat + 1, "online": online}
        conn.execute(sa.update(CONDUCTORS).where(CONDUCTORS.c.hostname == hostname).values(alive))
        return True

    conductors.beat = beat
    TaskManager.require_held = lambda self: None


def _lease_off() -> None:
    """Who sent no heartbeat for long sends orders to BMCs as long as nobody has noticed."""
    Lease.require = lambda self, *_: None


OFF: Final[dict[str, Callable[[], None]]] = {
    "guard": _guard_off,
    "incarnation": _incarnation_off,
    "own-only": _own_only_off,
    "burial": _burial_off,
    "journal": _journal_off,
    "lease": _lease_off,
}
