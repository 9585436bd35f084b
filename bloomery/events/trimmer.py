"""Delete old events that every sink has passed.

A webhook keeps old events only while it catches up: a webhook whose backlog does not shrink is
parked.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import event_cursors, events, rows, webhooks
from bloomery.db.engine import Database
from bloomery.db.event_cursors import Cursor
from bloomery.model.webhook import is_webhook, uuid_of

LOG = logging.getLogger(__name__)

_BATCH: Final = 1000  # rows of one transaction, so that others can write
_FIRST_S: Final = 60.0
_EVERY_S: Final = 600.0
CATCH_UP_S: Final = 86_400.0  # within which the backlog of a slow webhook must shrink


@dataclass(frozen=True, slots=True)
class _Backlog:
    """The old events that a webhook has not taken."""

    oldest_at: datetime
    size: int
    shrank_at: float  # by the clock of this process, since the smallest backlog


class Trimmer:
    """One thread that wakes every ten minutes.

    ``sinks``: for which rows are kept; None: all with a cursor, where other processes may have
    sinks that this one does not have.
    """

    def __init__(
        self,
        db: Database,
        sinks: Collection[str] | None,
        keep_hours: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db, self._sinks, self._clock = db, sinks, clock
        self._backlogs: dict[str, _Backlog] = {}  # of slow webhooks
        self._complained_of: set[str] = set()
        self._keep = timedelta(hours=keep_hours)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events-trim", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
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
        """Delete old rows; return their number."""
        self._park_laggards()
        total, gone = 0, _BATCH
        while gone == _BATCH and not self._stopping.is_set():
            gone = self._trim_batch()
            total += gone
        self._complain()
        return total

    def _park_laggards(self) -> None:
        """Park each webhook whose backlog did not shrink for ``CATCH_UP_S``."""
        now, backlogs = self._clock(), dict[str, _Backlog]()
        with self._db.read() as conn:
            for cursor in filter(lambda each: is_webhook(each.sink), self._list_cursors(conn)):
                oldest_at = events.oldest_at(conn, cursor.last_id)
                if oldest_at is None or oldest_at >= rows.now() - self._keep:
                    continue
                size = events.last_id(conn) - cursor.last_id
                backlog = self._backlogs.get(cursor.sink)
                if backlog is None or size < backlog.size:
                    backlog = _Backlog(oldest_at, size, now)
                backlogs[cursor.sink] = replace(backlog, oldest_at=oldest_at)
        self._backlogs = backlogs
        for sink, backlog in list(self._backlogs.items()):
            if now - backlog.shrank_at < CATCH_UP_S:
                continue
            reason = (
                "it lags too far behind: it has not taken what happened since "
                f"{backlog.oldest_at}, which is longer ago than [events]keep_hours, and has not "
                "caught up within a day; make it active to go on with what is kept"
            )
            uuid = uuid_of(sink)
            if self._db.transact(partial(webhooks.park, uuid=uuid, error=reason)):
                LOG.warning("webhook %s is parked: %s", uuid, reason)
            del self._backlogs[sink]  # activation restarts its time

    def _trim_batch(self) -> int:
        """Delete a batch of old rows that all sinks have taken; return their number."""
        before = rows.now() - self._keep
        with self._db.read() as conn:
            cursors = self._list_cursors(conn)
            up_to = min((each.last_id for each in cursors), default=events.last_id(conn))
            oldest = events.oldest_at(conn)
        is_sink_missing = set(self._sinks or ()) - {each.sink for each in cursors}
        if is_sink_missing or not up_to or oldest is None or oldest >= before:
            return 0
        return self._db.transact(
            lambda conn: events.trim(conn, before=before, up_to=up_to, at_most=_BATCH),
        )

    def _list_cursors(self, conn: sa.Connection) -> list[Cursor]:
        """Return the cursors for which rows are kept; parked webhooks have none."""
        parked = webhooks.list_parked_sinks(conn)
        return [
            each
            for each in event_cursors.list_all(conn)
            if each.sink not in parked
            and (self._sinks is None or each.sink in self._sinks or is_webhook(each.sink))
        ]

    def _complain(self) -> None:
        """Log once which sinks keep old rows."""
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
