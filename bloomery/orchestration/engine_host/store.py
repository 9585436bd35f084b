"""The rows of trees of stacks: an engine loads trees from them and writes its turns to them.

    tree = store.load(root_uuid)
    accepted = store.list_orders(root_uuid, last_id)  # accepted while it is loaded
    written = store.write(root_uuid, lease, turn)     # one transaction
    if not written.released: ...                      # an order was accepted meanwhile: go on

A turn that ends the work (``is_idle``) and a new order both lock the row of the stack lock
(``db.stack_locks``).  If the order commits first, the turn finds it and does not release the lock.
If the turn commits first, the order finds the lock free, and the engine that is woken after the
commit acquires it.  So no order is left without an engine.

If a request has changed a stack meanwhile, its row has another traversal than the engine knows.  A
turn does not overwrite such a row and writes no event of the stack itself.  The store remembers the
traversal of each stack as it was read, written, or accepted with the orders that a turn has taken.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from bloomery.db import stack_orders, trees
from bloomery.db.engine import Database
from bloomery.db.trees import TurnResult
from bloomery.model.stacks import Event, Stack, Tree, Turn
from bloomery.orchestration.engine_host.locks import Lease
from bloomery.secrets import Sealer

_FAILED: Final = "FAILED"
_IN_PROGRESS: Final = "IN_PROGRESS"


@dataclass(slots=True)
class _Traversals:
    """The traversals of the stacks of one tree, as their engine knows the rows.

    ``accepted``: traversals that orders have set, by order ids, until a turn takes the orders.
    """

    stacks: dict[str, int]
    accepted: list[tuple[frozenset[int], dict[str, int]]] = field(default_factory=list)

    def after(self, orders: Sequence[int]) -> dict[str, int]:
        taken = frozenset(orders)
        stacks = self.stacks
        for ids, accepted in self.accepted:
            if ids <= taken:
                stacks = stacks | accepted
        return stacks

    def settle(self, turn: Turn, overtaken: frozenset[str]) -> None:
        taken = frozenset(turn.orders)
        self.stacks = self.after(turn.orders) | {
            stack.uuid: stack.traversal for stack in turn.stacks if stack.uuid not in overtaken
        }
        self.accepted = [(ids, stacks) for ids, stacks in self.accepted if not ids <= taken]


class RowStore:
    """The rows of all trees that one engine works on; one thread at a time uses a tree."""

    def __init__(self, db: Database, sealer: Sealer, *, publisher: str | None = None) -> None:
        """``publisher``: the name of the engine in the rows of relayed events."""
        self._db = db
        self._sealer = sealer
        self._publisher = publisher
        self._traversals: dict[str, _Traversals] = {}

    def load(self, root_uuid: str) -> Tree:
        """Return a tree with its waiting orders, and its root even if that is deleted."""
        with self._db.snapshot() as conn:
            rows = trees.load_rows(conn, root_uuid)
        tree = trees.decode(rows, self._sealer)
        self._traversals[root_uuid] = _Traversals(_traversals(tree.stacks))
        return tree

    def list_orders(self, root_uuid: str, after_id: int) -> Tree:
        """Return the orders after the id ``after_id``, with the stacks that they name.

        Stacks are as they were accepted, with their templates.
        """
        with self._db.snapshot() as conn:
            rows = trees.load_accepted(conn, root_uuid, after_id)
        accepted = trees.decode(rows, self._sealer)
        traversals = self._traversals.get(root_uuid)
        if accepted.orders and traversals is not None:
            ids = frozenset(order.id for order in accepted.orders)
            traversals.accepted.append((ids, _traversals(accepted.stacks)))
        return accepted

    def write(self, root_uuid: str, lease: Lease, turn: Turn) -> TurnResult:
        """Write a turn in one transaction; return whether it released the lock.

        Raises StackLockLost: another engine has the tree, drop it; DatabaseBusy: nothing was
        written, write the same turn again before running another.
        """
        traversals = self._traversals.setdefault(root_uuid, _Traversals({}))
        encoded = trees.encode(
            turn, self._sealer, traversals=traversals.after(turn.orders), publisher=self._publisher
        )
        written = self._db.transact(lambda conn: trees.write(conn, lease.guard, encoded))
        lease.advance()
        traversals.settle(turn, written.overtaken)
        if written.released:
            self.forget(root_uuid)
        return written

    def give_up(self, root_uuid: str, lease: Lease, reason: str) -> TurnResult:
        """Set every unfinished stack of a tree to FAILED, and drop the waiting orders.

        For a tree that the engine cannot process: the function reads only its stacks.  Resources
        in progress keep their state for the next action.  Raises as ``write``.
        """
        with self._db.snapshot() as conn:
            stacks = trees.list_stacks(conn, root_uuid)
            orders = [row.id for row in stack_orders.list_rows(conn, root_uuid)]
        self._traversals[root_uuid] = _Traversals(_traversals(stacks))
        failed = [
            replace(stack, status=_FAILED, reason=reason, graph=None, open=False, deadline_at=None)
            for stack in stacks
            if stack.deleted_at is None and (stack.status == _IN_PROGRESS or stack.open)
        ]
        now = datetime.now(UTC)
        events = [Event.of_stack(stack, uuid=str(uuid.uuid4()), created_at=now) for stack in failed]
        return self.write(
            root_uuid, lease, Turn(stacks=failed, events=events, orders=orders, is_idle=True)
        )

    def forget(self, root_uuid: str) -> None:
        self._traversals.pop(root_uuid, None)


def _traversals(stacks: Sequence[Stack]) -> dict[str, int]:
    return {stack.uuid: stack.traversal for stack in stacks}
