"""The lock of a tree of stacks, as an engine has it: a fenced lease.

    lease = StackLock(db, root_uuid, engine_id).acquire(is_live)
    tree = store.load(root_uuid)
    written = store.write(root_uuid, lease, turn)   # StackLockLost: drop the tree

A lock is released with the last turn, in its commit, so no stack shows COMPLETE while it is
locked.  That of an engine whose counter stands still, or that has retired, is stolen; what the old
holder writes afterwards fails at the guard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from bloomery import errors
from bloomery.db import stack_locks
from bloomery.db.engine import Database
from bloomery.db.stack_locks import Guard


class Lease:
    """The right to write one tree; lost without a word when another engine steals it."""

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
        """Count a written transaction: its guard passes no more."""
        self.guard = replace(self.guard, transactions=self.guard.transactions + 1)


@dataclass(frozen=True, slots=True)
class StackLock:
    """The lock of one tree, for one engine."""

    db: Database
    root_uuid: str
    engine_id: str

    def acquire(self, is_live: Callable[[str], bool]) -> Lease:
        """Take the lock, from a dead engine too.  Raises StackLocked if a live one has it.

        Of several that steal at once one wins: each names the generation that it steals.  An
        engine asks for a tree once at a time: if the lock is its own, the answer to a former
        commit was lost, and it takes it anew.  Raises NotFound where there is no such tree.
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
