"""Wake a thread when there may be new events: from this process or another one.

On PostgreSQL the process that numbers events notifies a channel; a connection listens here.  The
connection needs a session: behind a pooler that shares sessions, and on other databases, only the
time-out of ``wait`` and ``ring`` end a wait.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import event_numbers
from bloomery.db.engine import Database

LOG = logging.getLogger(__name__)

_RETRY_S: Final = 5.0  # until the next attempt to listen


class EventBell:
    """``wait`` belongs to one thread, ``ring`` to all.  Faults of the connection are no errors."""

    def __init__(self, db: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        listens = db.url.get_backend_name() == "postgresql"
        self._engine = sa.create_engine(db.url, poolclass=sa.pool.NullPool) if listens else None
        self._conn: Any = None
        self._pooled: Any = None
        self._try_at = clock()
        self._mutex = threading.Lock()
        self._is_closed = False

    @property
    def hears_others(self) -> bool:
        """Does a commit of another process end a wait?"""
        return self._conn is not None

    def ring(self) -> None:
        """End the current wait, or the next one; no effect after ``close``."""
        with self._mutex:
            if not self._is_closed:
                os.eventfd_write(self._fd, 1)

    def open(self) -> None:
        """Begin to listen, if possible, unless the last attempt failed a moment ago."""
        if self._engine is None or self._conn is not None or self._clock() < self._try_at:
            return
        self._try_at = self._clock() + _RETRY_S
        try:
            self._pooled = self._engine.raw_connection()
            conn = self._pooled.driver_connection
            conn.autocommit = True
            conn.execute(f"LISTEN {event_numbers.CHANNEL}")
            self._conn = conn
        except Exception as exc:  # noqa: BLE001  of any driver: the time-out ends the wait
            self._lose(exc)

    def wait(self, timeout_s: float) -> None:
        """Return after ``ring``, after another process has numbered events, or at the time-out."""
        readers = [self._fd] if self._conn is None else [self._fd, self._conn.fileno()]
        ready, _, _ = select.select(readers, [], [], timeout_s)
        if self._fd in ready:
            os.eventfd_read(self._fd)
        if len(ready) > (self._fd in ready):
            try:
                for _ in self._conn.notifies(timeout=0):
                    pass
            except Exception as exc:  # noqa: BLE001  of any driver: the time-out ends the wait
                self._lose(exc)

    def _lose(self, exc: Exception) -> None:
        LOG.warning("events of other processes are polled for: cannot listen: %s",
                    errors.brief(exc))  # fmt: skip
        self._hang_up()

    def _hang_up(self) -> None:
        pooled, self._conn, self._pooled = self._pooled, None, None
        if pooled is not None:
            pooled.invalidate()

    def close(self) -> None:
        self._hang_up()
        with self._mutex:
            self._is_closed = True
            os.close(self._fd)
