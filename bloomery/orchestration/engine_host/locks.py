"""The stack lock of a tree, which an engine holds as a fenced lease.

    lease = StackLock(db, root_uuid, engine_id).acquire(is_live)
    tree = store.load(root_uuid)
    written = store.write(root_uuid, lease, turn)   # StackLockLost: drop the tree

The commit of the last turn releases the lock, so no stack shows COMPLETE while it is locked.  An
engine steals the lock of an engine whose heartbeat has stopped, or that has retired.  Later writes
of the old holder fail at the guard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from bloomery import errors
from bloomery.db import stack_locks
from bloomery.db.engine import Database
from bloomery.db.stack_locks import Guard


class Lease:
    """The right to write one tree; the holder gets no notice when another engine steals it."""

    __slots__ = ("guard",)

    def __init__(self, guard: Guard) -> None:
        self.guard = guard

    @property
    def root_uuid(self) -> str:
        return self.guard.root_uuid

    @property
    def engine_id(self) -> str:
        return self.guard.engine_id

    @property
    def generation(self) -> int:
        return self.guard.generation

    def advance(self) -> None:
        """Count a written transaction, whose guard is not valid any more."""
        self.guard = replace(self.guard, transactions=self.guard.transactions + 1)


@dataclass(frozen=True, slots=True)
class StackLock:
    """The lock of one tree, for one engine."""

    db: Database
    root_uuid: str
    engine_id: str

    def acquire(self, is_live: Callable[[str], bool]) -> Lease:
        """Take the lock, also from a dead engine.  Raises StackLocked if a live engine has it.

        If several engines steal at once, one wins: each names the generation that it steals.  An
        engine acquires a tree once at a time.  If it has the lock already, the answer to an
        earlier commit was lost, and it takes the lock again.  Raises NotFound for no such tree.
        """
        try:
            return self._take(None)
        except errors.StackLocked as refusal:
            holder, generation = refusal.facts["engine"], refusal.facts["generation"]
            if holder != self.engine_id and is_live(holder):
                raise
        return self._take((holder, generation))

    def _take(self, dead: tuple[str, int] | None) -> Lease:
        return Lease(
            self.db.transact(
                lambda conn: stack_locks.acquire(conn, self.root_uuid, self.engine_id, dead=dead)
            )
        )
