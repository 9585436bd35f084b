"""Number committed events, and announce new numbers.

One thread of each process on a server database.  Commits of this process wake it at once, commits
of others by PostgreSQL's NOTIFY, or by a poll ten times a second.  Events of a process that died
before it numbered them get numbers at the next poll of another process.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import event_cursors, event_numbers
from bloomery.db.engine import Database
from bloomery.db.event_bell import EventBell

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberingPace:
    """``poll_s``: between polls without NOTIFY; ``net_s``: with NOTIFY.

    ``gather_s``: the least time between two rounds, so that many commits share a round, and a
    single commit is numbered at once.  With 0.02 s, rounds took a quarter of a busy service's CPU.
    """

    poll_s: float = 0.1
    net_s: float = 2.0
    gather_s: float = 0.1
    retry_s: float = 1.0


class Numberer:
    """Started once, stopped once.  ``on_numbers`` is called for new numbers."""

    def __init__(
        self, db: Database, on_numbers: Callable[[], None], pace: NumberingPace | None = None
    ) -> None:
        self._db, self._on_numbers = event_numbers.reserved(db), on_numbers
        self._pace = pace or NumberingPace()
        self._last_number = 0
        self.wants_snapshots = False
        self._bell: EventBell | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events-numbers", daemon=True)

    def prepare(self) -> None:
        """Number all committed events; new sinks begin after them."""
        try:
            self._db.transact(_settle)
            while not self._poll():
                pass
        except BaseException:
            self._db.close()  # nobody stops what has not started
            raise

    def start(self) -> None:
        self._bell = EventBell(self._db)
        self._thread.start()

    def wake(self) -> None:
        """Signal a commit of this process."""
        if self._bell is not None:
            self._bell.ring()

    def stop(self) -> None:
        """Number all committed events, and end the thread."""
        if self._bell is not None:
            self._stopping.set()
            self._bell.ring()
            self._thread.join()
            self._bell.close()
        self._db.close()

    def _run(self) -> None:
        assert self._bell is not None
        while True:
            # read before the poll, which then sees all earlier commits
            ends = self._stopping.is_set()
            began, pace = time.monotonic(), self._pace
            try:
                self._bell.open()
                is_all = self._poll()
                pause_s = pace.net_s if self._bell.hears_others else pace.poll_s
                pause_s = pause_s if is_all else 0.0
            except Exception as exc:  # noqa: BLE001  this thread's supervisor: it tries again
                LOG.warning("cannot number events: %s", errors.brief(exc))
                pause_s = pace.retry_s
            if ends:
                return
            self._bell.wait(pause_s)
            self._stopping.wait(began + pace.gather_s - time.monotonic())

    def _poll(self) -> bool:
        """Number a batch of events, and wake readers; False: more are waiting."""
        with self._db.read() as conn:
            progress = event_numbers.find_progress(conn)
        self.wants_snapshots = progress.wants_snapshots
        last_number, count = progress.last_number, 0
        if progress.has_new:
            last_number, count = self._db.transact(event_numbers.assign)
        if last_number != self._last_number:
            self._last_number = last_number
            self._on_numbers()
        return count < event_numbers.BATCH


def _settle(conn: sa.Connection) -> None:
    event_numbers.settle(conn, [each.last_id for each in event_cursors.list_all(conn)])
