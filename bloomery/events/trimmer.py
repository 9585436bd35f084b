"""Let go of events that are old enough and that every sink has passed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from datetime import timedelta
from typing import Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import event_cursors, events, rows
from bloomery.db.engine import Database

LOG = logging.getLogger(__name__)

_BATCH: Final = 1000  # rows of one transaction: others want to write, too
_FIRST_S: Final = 60.0
_EVERY_S: Final = 600.0


class Trimmer:
    """One thread that wakes every ten minutes.

    ``sinks``: for which rows are kept; None: for all that have a cursor, where other processes may
    have sinks that this one does not know.
    """

    def __init__(self, db: Database, sinks: Collection[str] | None, keep_hours: float) -> None:
        self._db, self._sinks = db, sinks
        self._complained_of: set[str] = set()
        self._keep = timedelta(hours=keep_hours)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events-trim", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        pause_s = _FIRST_S
        while not self._stopping.wait(pause_s):
            try:
                self.trim()
            except Exception as exc:  # noqa: BLE001  this thread's supervisor: it tries again
                LOG.warning("cannot trim events: %s", errors.brief(exc))
            pause_s = _EVERY_S

    def trim(self) -> int:
        """Drop what may go; return how many rows went."""
        total, gone = 0, _BATCH
        while gone == _BATCH and not self._stopping.is_set():
            gone = self._trim_batch()
            total += gone
        self._complain()
        return total

    def _trim_batch(self) -> int:
        before = rows.now() - self._keep
        with self._db.read() as conn:
            up_to = self._passed_by_all(conn)
            oldest = events.oldest_at(conn)
        if not up_to or oldest is None or oldest >= before:
            return 0
        return self._db.transact(
            lambda conn: events.trim(conn, before=before, up_to=up_to, at_most=_BATCH),
        )

    def _passed_by_all(self, conn: sa.Connection) -> int | None:
        """Return the number up to which nobody needs rows any more; None: nothing may go."""
        end = events.last_id(conn)
        if self._sinks is None:
            passed = event_cursors.least(conn)
            return end if passed is None else passed
        return event_cursors.least(conn, self._sinks) if self._sinks else end

    def _complain(self) -> None:
        """Say once which sinks of the site keep old rows from going."""
        before = rows.now() - self._keep
        with self._db.read() as conn:
            oldest = events.oldest_at(conn)
            if self._sinks is not None or oldest is None or oldest >= before:
                return
            least = event_cursors.least(conn)
            late = [each for each in event_cursors.list_all(conn) if each.last_id == least]
        for cursor in late:
            if cursor.sink not in self._complained_of:
                self._complained_of.add(cursor.sink)
                LOG.warning("events since %s are kept for sink %s, last carried at %s; if it is "
                            "gone for good: bloomery events forget %s",
                            oldest, cursor.sink, cursor.updated_at, cursor.sink)  # fmt: skip
