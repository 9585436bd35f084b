"""Sinks, and the thread that sends events to one of them, from its cursor on.

The cursor is moved after the sink has taken an event: delivery is at least once.  The worker writes
the cursor at most twice a second, so that a sink costs no commit per event; after a crash, the sink
gets some events again.  A failed sink is retried with growing pauses, and delays no other sink.

Between processes the cursor is a lease: its reader renews it, also during deliveries and pauses.
Another process takes a cursor that was not renewed for ``lease_s`` on its own clock.  On SQLite
there is one process, so the cursor is taken at once and never renewed.

``Delivery`` sends a batch, in order per object, and several objects in parallel.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import event_cursors, events
from bloomery.db.engine import Database
from bloomery.db.event_cursors import Cursor
from bloomery.db.events import EventRow

LOG = logging.getLogger(__name__)


class Sink(Protocol):
    """Receive events, one at a time, in order, always from the same thread.

    An exception of ``send`` means that the event was not taken, and is repeated.  A sink may see an
    event twice.  ``wants_snapshots``: rows must have snapshots, on every process of the site.
    """

    name: str
    wants_snapshots: bool

    def open(self) -> None:
        """Prepare for events; called again after a failure."""

    def send(self, event: EventRow) -> None: ...

    def close(self) -> None: ...


class Delivery:
    """Send one batch; ``taken`` are the numbers of the delivered events.

    After a failure each lane stops at its current event, so that a sink that is down does not get
    every event of a batch.
    """

    def __init__(
        self,
        send: Callable[[EventRow], None],
        batch: Sequence[EventRow],
        *,
        lanes: int,
        is_stopping: Callable[[], bool],
    ) -> None:
        """``lanes``: objects whose events are sent in parallel; 1: all events in sequence."""
        self._send, self._is_stopping = send, is_stopping
        self.taken: set[int] = set()
        self.error: Exception | None = None
        queues: dict[str, list[EventRow]] = {}
        for event in batch:
            queues.setdefault(event.object_uuid if lanes > 1 else "", []).append(event)
        self._queues = deque(queues.values())
        self._threads = [
            threading.Thread(target=self._work, name="events-delivery", daemon=True)
            for _ in range(min(lanes, len(self._queues)))
        ]

    def run(self, every_s: float, meanwhile: Callable[[], None]) -> None:
        """Return when all lanes ended; errors of ``meanwhile`` end them, too."""
        for thread in self._threads:
            thread.start()
        try:
            for thread in self._threads:
                while thread.is_alive():
                    thread.join(every_s)
                    meanwhile()
        except Exception as exc:
            self.error = exc
            raise

    def _work(self) -> None:
        while self._queues:
            try:
                queue = self._queues.popleft()
            except IndexError:  # another lane was faster
                return
            for event in queue:
                if self.error is not None or self._is_stopping():
                    return
                try:
                    self._send(event)
                except Exception as exc:  # noqa: BLE001  a supervisor: sinks raise anything
                    self.error = exc
                else:
                    self.taken.add(event.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Intervals in seconds; ``poll_s`` is the poll without ``wake``."""

    poll_s: float = 5.0
    acknowledge_s: float = 0.5
    lease_s: float = 30.0
    retry_least_s: float = 0.5
    retry_most_s: float = 60.0
    batch: int = 200
    join_s: float = 15.0


class SinkWorker:
    """Started once, stopped once; ``wake`` signals new events."""

    def __init__(
        self,
        db: Database,
        sink: Sink,
        *,
        holder: str,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
        leased: bool | None = None,
        may_begin: bool = True,
        lanes: int = 1,
        on_refusal: Callable[[Exception], None] = lambda exc: None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """``leased``: other processes may want the cursor; by default on a server's database.

        ``may_begin``: a missing cursor is added at the end; otherwise the sink was deleted, and
        gets nothing more.  ``lanes``: objects whose events are sent in parallel. ``on_refusal`` is
        called once for each batch with a refused event, ``on_end`` when the thread has nothing more
        to do.
        """
        self._may_begin, self._lanes = may_begin, lanes
        self._on_refusal, self._on_end = on_refusal, on_end
        self.has_ended = False
        self.sink = sink
        self._leased = not db.is_sqlite if leased is None else leased
        self._db, self._holder, self._clock = db, holder, clock
        self._pace = pace or Pace()
        self._cursor: Cursor | None = None
        self._passed = 0
        self._ahead: set[int] = set()  # events after ``_passed`` that the sink has taken
        self._written_at = self._retry_at = 0.0
        self._seen: tuple[Cursor, float] | None = None
        self._failures = 0
        self._is_failing = False  # as last logged
        self._change = threading.Condition()
        self._has_events = self._stopping = False
        name = f"events-{sink.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        with self._change:
            self._has_events = True
            self._change.notify()

    def begin_stop(self) -> None:
        with self._change:
            self._stopping = True
            self._change.notify()

    def stop(self) -> None:
        """Finish the current event, store the cursor, and end the thread."""
        self.begin_stop()
        self._thread.join(self._pace.join_s)
        if self._thread.is_alive():
            LOG.warning("sink %s is still busy and is left alone", self.sink.name)

    # ------------------------------------------------------------------------------ the thread

    def _run(self) -> None:
        pause_s = 0.0
        while not self.wait(pause_s):
            try:
                pause_s = self.send_batch()
            except CursorLostError as exc:
                LOG.info("sink %s is carried elsewhere: %s", self.sink.name, exc)
                pause_s = self._pace.poll_s
            except Exception as exc:  # noqa: BLE001  this thread's supervisor: sinks raise anything
                self.note_failure(exc)
                pause_s = self._until_retry_s()
        self.finish()
        self.has_ended = True
        self._on_end()

    def wait(self, pause_s: float) -> bool:
        """Wait for new events or the time-out, after a failure in full; return True to stop."""
        with self._change:
            self._change.wait_for(
                lambda: self._stopping or (self._has_events and not self._failures), pause_s,
            )  # fmt: skip
            self._has_events = False
            return self._stopping

    def finish(self) -> None:
        """Store the cursor, release it, and close the sink."""
        try:
            if self._cursor is not None:
                self._acknowledge()
            if (cursor := self._cursor) is not None:
                self._db.transact(lambda conn: event_cursors.release(conn, cursor))
            self.sink.close()
        except Exception as exc:  # noqa: BLE001  the next process repeats unacknowledged events
            LOG.warning("sink %s ended badly: %s", self.sink.name, errors.brief(exc))

    def note_failure(self, exc: Exception) -> float:
        """Log the failure, and return the pause before the next attempt."""
        self._failures += 1
        pace = self._pace
        pause_s = min(pace.retry_least_s * 2.0 ** min(self._failures - 1, 20), pace.retry_most_s)
        self._retry_at = self._clock() + pause_s
        LOG.log(logging.DEBUG if self._is_failing else logging.WARNING,
                "sink %s failed %d times and is asked again in %g s: %s",
                self.sink.name, self._failures, pause_s, errors.brief(exc))  # fmt: skip
        self._is_failing = True
        return pause_s

    def _until_retry_s(self) -> float:
        """Return the pause after a failure, in parts after which the lease is renewed."""
        return min(max(self._retry_at - self._clock(), 0.0), self._pace.lease_s / 3)

    # ------------------------------------------------------------------------------ one batch

    def send_batch(self) -> float:
        """Send a batch; return the time until the next one."""
        if self._cursor is None and not self._take_cursor():
            return self._pace.poll_s
        self._renew()
        if pause_s := self._until_retry_s():
            return pause_s
        with self._db.read() as conn:
            batch = events.list_after(conn, self._passed, self._pace.batch)
        if batch:
            self._deliver(batch)
        else:
            self._acknowledge_if_due()
        self._failures = 0
        if self._is_failing:
            LOG.warning("sink %s takes events again", self.sink.name)
            self._is_failing = False
        if len(batch) == self._pace.batch:
            return 0.0
        if self._cursor is not None and self._passed == self._cursor.last_id:
            return self._pace.poll_s
        due_in_s = self._written_at + self._pace.acknowledge_s - self._clock()
        return max(0.0, min(due_in_s, self._pace.poll_s))

    def _deliver(self, batch: Sequence[EventRow]) -> None:
        """Raise the sink's error; a delivery resets the count of failures."""
        self.sink.open()
        delivery = Delivery(
            self.sink.send, [event for event in batch if event.id not in self._ahead],
            lanes=self._lanes, is_stopping=lambda: self._stopping,
        )  # fmt: skip
        try:
            delivery.run(self._pace.lease_s / 3, self._renew)
        finally:
            self._ahead |= delivery.taken
            for event in batch:  # pass the events before which the sink took everything
                if event.id not in self._ahead:
                    break
                self._ahead.discard(event.id)
                self._passed = event.id
            self._acknowledge_if_due()
        if delivery.taken:
            self._failures = 0
        if delivery.error is not None:
            self._on_refusal(delivery.error)
            raise delivery.error

    # ------------------------------------------------------------------------------ the cursor

    def _take_cursor(self) -> bool:
        with self._db.read() as conn:
            cursor = event_cursors.find(conn, self.sink.name)
        if cursor is None and not self._may_begin:
            return False
        if cursor is None:
            self._db.transact(lambda conn: add_sinks(conn, [self.sink]))
            return self._take_cursor()
        if self._leased and cursor.holder is not None:
            # a reader whose row stood still long enough is dead
            now = self._clock()
            if self._seen is None or self._seen[0] != cursor:
                self._seen = (cursor, now)
            if now - self._seen[1] < self._pace.lease_s:
                return False
        taken = self._db.transact(lambda conn: event_cursors.take(conn, cursor, self._holder))
        if taken is not None:
            self._cursor, self._passed, self._ahead = taken, taken.last_id, set()
            self._written_at, self._seen = self._clock(), None
        return taken is not None

    def _renew(self) -> None:
        """Between processes: renew the lease before the next read."""
        if self._leased and self._clock() - self._written_at >= self._pace.lease_s / 3:
            self._acknowledge(renew=True)

    def _acknowledge_if_due(self) -> None:
        if self._clock() - self._written_at >= self._pace.acknowledge_s:
            self._acknowledge()

    def _acknowledge(self, *, renew: bool = False) -> None:
        """Store the cursor.  Raises CursorLost when another process has taken it."""
        cursor, passed = self._cursor, self._passed
        if cursor is None or (passed == cursor.last_id and not renew):
            return
        if not self._db.transact(lambda conn: event_cursors.advance(conn, cursor, passed)):
            self._cursor = None
            raise CursorLostError(f"another process reads for sink {self.sink.name}")
        self._cursor = event_cursors.moved(cursor, passed)
        self._written_at = self._clock()


def add_sinks(conn: sa.Connection, sinks: Sequence[Sink]) -> None:
    """Add cursors of new sinks at the present end, and store which need snapshots."""
    wanting = [sink.name for sink in sinks if sink.wants_snapshots]
    event_cursors.add_missing(conn, [sink.name for sink in sinks], wanting)


class CursorLostError(Exception):
    """Another process took the cursor, and will repeat unacknowledged events."""
