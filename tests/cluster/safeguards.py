"""What keeps a cluster in order, each of it with a switch: for the proof that a seed notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bloomery.conductor import recovery
from bloomery.conductor.lease import Lease
from bloomery.conductor.periodics.leases import Leases
from bloomery.conductor.runner import Flow
from bloomery.db import locks, nodes


def _guard_off() -> None:
    """Whoever writes under a lock just writes."""

    def update(conn: Any, guard: locks.Guard, values: dict[str, Any], **_: Any) -> None:
        nodes.update(conn, guard.node_uuid, {k: v for k, v in values.items() if k != "updated_at"})

    locks._require = lambda rowcount, guard: None
    locks.update_guarded = update


def _lease_off() -> None:
    """Whoever was silent for long writes to BMCs all the same."""
    Lease.require = lambda self, node, holder: None


def _own_only_off() -> None:
    """Whoever starts voids everybody's reservations."""
    void = recovery.void_reservations
    recovery.void_reservations = lambda runtime, *, alone: void(runtime, alone=True)


def _burial_off() -> None:
    """Nobody frees what a dead conductor held."""
    for name in ("_bury", "_bury_all"):
        if hasattr(Leases, name):
            setattr(Leases, name, lambda self, _peers: 0)


def _journal_off() -> None:
    """A flow leaves no rows: what a crash interrupts is lost."""
    Flow.opening = property(lambda self: [])


OFF: Final[dict[str, Callable[[], None]]] = {
    "guard": _guard_off,
    "lease": _lease_off,
    "own-only": _own_only_off,
    "burial": _burial_off,
    "journal": _journal_off,
}
