"""Wake-ups of trees: a reader of new event rows, and an index of the objects that trees wait for.

A tree names the objects that its resources wait for.  An event row of such an object wakes the
tree.  An engine keeps no cursor: a loaded tree checks each object that it waits for once, and again
after the index has it, so that no event is missed in between.

If other processes write to the database, the engine reads new event rows and orders five times a
second; some orders, such as signals, come without an event.  A process that is alone is woken by
its own commits, and reads nothing while no tree waits.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable
from typing import Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import events, stack_orders
from bloomery.db.engine import Database
from bloomery.orchestration.resources.machines import QUEUE

LOG = logging.getLogger(__name__)

NODE: Final = "node"
_ENDS: Final = frozenset({"end", "error"})  # of work on a node: queued work may begin
_POLL_S: Final = 0.2
_GATHER_S: Final = 0.01  # least time between two reads, to read close events together
_RETRY_S: Final = 2.0
_BATCH: Final = 500


class WakeIndex:
    """The objects that each tree waits for, and those with events that the tree has not read."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waits: dict[str, set[str]] = {}  # root -> objects
        self._queues: set[str] = set()  # the objects that are queues
        self._roots: dict[str, set[str]] = {}  # object -> roots
        self._to_check: dict[str, set[str]] = {}  # root -> objects

    @property
    def is_empty(self) -> bool:
        return not self._roots

    def watch(self, root: str, objects: Collection[str]) -> bool:
        """Set all objects that a tree waits for.  True: some are new, and the tree checks them."""
        with self._mutex:
            waits = self._waits.setdefault(root, set())
            gone = waits.difference(objects)
            waits -= gone
            for uuid in gone:
                self._forget(uuid, root)
            new = set(objects) - waits if len(objects) > len(waits) else set()
            waits |= new
            for uuid in new:
                self._roots.setdefault(uuid, set()).add(root)
            if new:
                self._queues.update(uuid for uuid in new if uuid.startswith(QUEUE))
                self._to_check.setdefault(root, set()).update(new)
            return bool(new)

    def _forget(self, uuid: str, root: str) -> None:
        roots = self._roots[uuid]
        roots.discard(root)
        if not roots:
            del self._roots[uuid]
            self._queues.discard(uuid)

    def forget(self, root: str) -> None:
        with self._mutex:
            for uuid in self._waits.pop(root, ()):
                self._forget(uuid, root)
            self._to_check.pop(root, None)

    def queues(self) -> list[str]:
        with self._mutex:
            return list(self._queues)

    def record_events(self, objects: Iterable[str]) -> set[str]:
        """Record events of these objects; return the roots of the trees that wait for them."""
        woken: set[str] = set()
        with self._mutex:
            for uuid in objects:
                for root in self._roots.get(uuid, ()):
                    self._to_check.setdefault(root, set()).add(uuid)
                    woken.add(root)
        return woken

    def take_objects_to_check(self, root: str) -> set[str]:
        with self._mutex:
            return self._to_check.pop(root, set())


class EventTail:
    """A thread that reads new event rows and wakes trees.

    ``on_events`` is called with the root of a tree; ``on_stacks`` is called after events of stacks
    and new orders, unless the process is alone.
    """

    def __init__(
        self,
        db: Database,
        *,
        on_events: Callable[[str], object],
        on_stacks: Callable[[], object],
        alone: bool,
        gather_s: float = _GATHER_S,
    ) -> None:
        self._db, self._alone, self._gather_s = db, alone, gather_s
        self.index = WakeIndex()
        self._on_events, self._on_stacks = on_events, on_stacks
        self._last_id: int | None = None
        self._orders: frozenset[int] = frozenset()  # waiting at the last read
        self._change = threading.Condition()
        self._is_woken = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stacks-wakes", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Read new event rows soon; called after commits of this process."""
        with self._change:
            if self._alone and self.index.is_empty:
                self._last_id = None  # no tree waits for these rows
                return
            self._is_woken = True
            self._change.notify()

    def watch(self, root: str, objects: Collection[str]) -> bool:
        """Wake a tree after events of ``objects``.  True: some are new; check them again."""
        is_new = self.index.watch(root, objects)
        if objects:
            self._settle()
        return is_new

    def take_objects_to_check(self, root: str) -> set[str]:
        return self.index.take_objects_to_check(root)

    def forget(self, root: str) -> None:
        self.index.forget(root)

    def _settle(self) -> None:
        """Begin after the newest event row, unless reading has begun."""
        with self._change:
            if self._last_id is not None:
                return
        with self._db.read() as conn:
            last_id = events.last_id(conn)
        with self._change:
            if self._last_id is None:
                self._last_id = last_id

    def stop(self) -> None:
        with self._change:
            self._stopping.set()
            self._change.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        pause_s = None if self._alone else _POLL_S
        while not self._wait(pause_s):
            rests_until = time.monotonic() + self._gather_s
            try:
                self._settle()
                while self.read():
                    pass
                pause_s = None if self._alone else _POLL_S
            except Exception as exc:  # noqa: BLE001  this thread's supervisor: it tries again
                LOG.warning("cannot read events for stacks: %s", errors.brief(exc))
                pause_s = _RETRY_S
            self._stopping.wait(rests_until - time.monotonic())

    def _wait(self, pause_s: float | None) -> bool:
        with self._change:
            self._change.wait_for(lambda: self._stopping.is_set() or self._is_woken, pause_s)
            self._is_woken = False
            return self._stopping.is_set()

    def read(self) -> bool:
        """Read the next event rows and wake trees.  True: there are more."""
        with self._db.read() as conn:
            batch = events.list_objects_after(conn, self._last_id or 0, _BATCH)
            ordered = not self._alone and self._has_new_orders(conn)
        objects = [each.object_uuid for each in batch if each.object != events.RESOURCE]
        if any(each.object == NODE and each.status in _ENDS for each in batch):
            objects += self.index.queues()
        for root in self.index.record_events(objects):
            self._on_events(root)
        if ordered or (not self._alone and any(each.object == events.STACK for each in batch)):
            self._on_stacks()
        if batch:
            self._last_id = batch[-1].id
        return len(batch) == _BATCH

    def _has_new_orders(self, conn: sa.Connection) -> bool:
        before, self._orders = self._orders, stack_orders.list_newest(conn, _BATCH)
        return not self._orders <= before
