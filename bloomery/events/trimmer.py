"""Let go of events that are old enough and that every sink has passed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from datetime import timedelta
from typing import Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import event_cursors, events, rows, webhooks
from bloomery.db.engine import Database
from bloomery.db.event_cursors import Cursor
from bloomery.model.webhook import State, is_webhook

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
        cursors = self._list_cursors(conn)
        if self._sinks is not None and set(self._sinks) - {each.sink for each in cursors}:
            return None
        return min((each.last_id for each in cursors), default=events.last_id(conn))

    def _list_cursors(self, conn: sa.Connection) -> list[Cursor]:
        """Return those of sinks for which rows are kept; a webhook that is parked is none."""
        parked = {each.sink for each in webhooks.list_all(conn) if each.state == State.PARKED}
        return [
            each
            for each in event_cursors.list_all(conn)
            if each.sink not in parked
            and (self._sinks is None or each.sink in self._sinks or is_webhook(each.sink))
        ]

    def _complain(self) -> None:
        """Say once which sinks of the site keep old rows from going."""
        before = rows.now() - self._keep
        with self._db.read() as conn:
            oldest = events.oldest_at(conn)
            if self._sinks is not None or oldest is None or oldest >= before:
                return
            cursors = self._list_cursors(conn)
        least = min((each.last_id for each in cursors), default=0)
        for cursor in cursors:
            if cursor.last_id == least and cursor.sink not in self._complained_of:
                self._complained_of.add(cursor.sink)
                LOG.warning("events since %s are kept for sink %s, last carried at %s; if it is "
                            "gone for good: bloomery events forget %s",
                            oldest, cursor.sink, cursor.updated_at, cursor.sink)  # fmt: skip
