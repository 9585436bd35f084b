"""The work on one tree of stacks under its lock: load it, take orders, run and write turns.

A turn is the set of changes of one transaction.  It is written before any further work on the tree.
If the database is busy, full or unreachable, the engine writes the same turn again, and no handler
runs meanwhile.  Any other error drops the tree in memory, because the rows are authoritative.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.metrics import METRICS
from bloomery.model.stacks import Tree, Turn
from bloomery.orchestration.engine_host.locks import Lease
from bloomery.orchestration.engine_host.store import RowStore
from bloomery.orchestration.engine_host.threads import NEVER

LOG = logging.getLogger(__name__)

MOST_FAULTS: Final = 5  # of one tree in a row, before its stacks become FAILED
_BUSY_S: Final = 0.5  # before a refused turn is written again
# The server is unreachable, so the turn may be committed or not.  Only the same turn, written
# again, finds out: the guard would take another turn for it.
_IN_DOUBT: Final = (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError)


class WorkingTree(Protocol):
    """The part of the engine's tree that ``TreeWork`` calls."""

    @property
    def is_idle(self) -> bool: ...

    def take(self, accepted: Tree) -> None: ...

    def turn(self) -> Turn: ...

    def written(self, turn: Turn) -> None: ...

    def due_at(self) -> float | None: ...

    def waits(self) -> Collection[str]: ...

    def wake(self, uuid: str | None) -> None: ...


class Wakes(Protocol):
    def watch(self, root: str, objects: Collection[str]) -> bool: ...

    def take_objects_to_check(self, root: str) -> Iterable[str]: ...

    def forget(self, root: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRuntime:
    """The dependencies that all trees of an engine share.

    ``may_act``  whether this engine counts as alive; otherwise another may act on its trees
    ``poll_s``   seconds after which orders are read even without a wake-up
    """

    store: RowStore
    make_tree: Callable[[Tree], WorkingTree]
    wakes: Wakes
    on_events_written: Callable[[], None] = lambda: None
    may_act: Callable[[], bool] = lambda: True
    clock: Callable[[], float] = time.monotonic
    poll_s: float = 30.0


class TreeWork:
    """The steps of one tree; never called by two threads at once."""

    def __init__(self, runtime: TreeRuntime, lease: Lease) -> None:
        self._runtime = runtime
        self._lease = lease
        self._root = lease.root_uuid
        self._tree: WorkingTree | None = None
        self._unwritten: Turn | None = None
        self._refused = False  # the database refused the last access
        self._last_order = 0
        self._faults = 0  # in a row
        self._look_at = 0.0  # when to read orders; 0.0: at once

    def step(self, woken: bool) -> float | None:
        """Run one turn; return when the next is due, None if the lock was released or lost."""
        runtime = self._runtime
        if woken:
            self._look_at = 0.0
        if not runtime.may_act():
            return runtime.clock() + _BUSY_S
        try:
            due_at = self._step()
        except errors.DatabaseBusy as exc:
            if not self._refused:  # log once, not twice a second while a disk is full
                LOG.warning("stack %s: waits for the database: %s", self._root, exc)
            self._refused = True
            return runtime.clock() + _BUSY_S
        except errors.StackLockLost as exc:
            LOG.warning("stack %s: left to another engine: %s", self._root, exc)
            self._drop()
            return None
        except BaseException as exc:
            if isinstance(exc, _IN_DOUBT) and self._unwritten is not None:
                raise
            self._drop()
            if isinstance(exc, _IN_DOUBT) or not isinstance(exc, Exception):
                raise
            return self._after_fault(exc)
        if self._refused:
            LOG.warning("stack %s: goes on, the database answers", self._root)
        self._refused = False
        return due_at

    def _after_fault(self, exc: Exception) -> float | None:
        """Raise ``exc`` again for a later attempt; after ``MOST_FAULTS`` set the stacks to FAILED.

        A repeated error is a fault of the engine, and would leave stacks IN_PROGRESS for ever.
        """
        self._faults += 1
        if self._faults < MOST_FAULTS:
            raise exc
        LOG.error("stack %s: given up: %s", self._root, secrets.trace(exc))
        reason = (
            f"cannot go on: internal error ({type(exc).__name__}), see the log of the engine; "
            "update or delete the stack to try again"
        )
        released = self._runtime.store.give_up(self._root, self._lease, reason).released
        self._faults = 0
        self._runtime.on_events_written()
        return None if released else 0.0

    def _step(self) -> float | None:
        began = time.monotonic()
        if self._unwritten is None:
            self._unwritten = self._prepared().turn()
        turn = self._unwritten
        released = not turn.is_empty and self._write(turn)
        self._unwritten, self._faults = None, 0
        METRICS.send_timer("stack_turn", (time.monotonic() - began) * 1000)
        if released:
            self._drop()
            return None
        return 0.0 if turn.is_idle else self._due_at()

    def _prepared(self) -> WorkingTree:
        runtime = self._runtime
        if self._tree is None:
            loaded = runtime.store.load(self._root)
            tree = runtime.make_tree(loaded)
            tree.wake(None)
            self._tree = tree
            self._note(loaded)
            return tree
        for uuid in runtime.wakes.take_objects_to_check(self._root):
            self._tree.wake(uuid)
        if runtime.clock() >= self._look_at:
            accepted = runtime.store.list_orders(self._root, self._last_order)
            self._note(accepted)
            if accepted.orders:
                self._tree.take(accepted)
        return self._tree

    def _note(self, tree: Tree) -> None:
        self._last_order = max((order.id for order in tree.orders), default=self._last_order)
        self._look_at = self._runtime.clock() + self._runtime.poll_s

    def _write(self, turn: Turn) -> bool:
        runtime = self._runtime
        released = runtime.store.write(self._root, self._lease, turn).released
        if turn.is_idle and not released:
            self._look_at = 0.0  # an order was accepted meanwhile
        if turn.events:
            runtime.on_events_written()
            if self._tree is not None:
                self._tree.written(turn)
        return released

    def _due_at(self) -> float:
        runtime, tree = self._runtime, self._tree
        assert tree is not None
        if runtime.wakes.watch(self._root, tree.waits()):
            return 0.0
        due_at = tree.due_at()
        return min(NEVER if due_at is None else due_at, self._look_at)

    def _drop(self) -> None:
        self._tree = self._unwritten = None
        self._runtime.wakes.forget(self._root)
        self._runtime.store.forget(self._root)
