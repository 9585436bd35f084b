"""What a process sleeps on until there may be new events: its own commits, and those of others.

On PostgreSQL whoever numbers events notifies a channel; a connection of its own listens here.  It
needs a session: behind a pooler that shares sessions the time-outs of ``wait`` find the news.
Elsewhere, and while that connection is away, only time-outs and ``ring`` end a wait.
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

_RETRY_S: Final = 5.0  # until the next try to listen


class EventBell:
    """``wait`` belongs to one thread, ``ring`` to all.  A fault of the connection is no error."""

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
        """End the wait, or the next one; after ``close`` nothing happens."""
        with self._mutex:
            if not self._is_closed:
                os.eventfd_write(self._fd, 1)

    def open(self) -> None:
        """Begin to listen, where that is possible and was not in vain a moment ago."""
        if self._engine is None or self._conn is not None or self._clock() < self._try_at:
            return
        self._try_at = self._clock() + _RETRY_S
        try:
            self._pooled = self._engine.raw_connection()
            conn = self._pooled.driver_connection
            conn.autocommit = True
            conn.execute(f"LISTEN {event_numbers.CHANNEL}")
            self._conn = conn
        except Exception as exc:  # noqa: BLE001  whatever the driver raises: there are time-outs
            self._lose(exc)

    def wait(self, timeout_s: float) -> None:
        """Return when somebody rang, when another process numbered events, or in time."""
        readers = [self._fd] if self._conn is None else [self._fd, self._conn.fileno()]
        ready, _, _ = select.select(readers, [], [], timeout_s)
        if self._fd in ready:
            os.eventfd_read(self._fd)
        if len(ready) > (self._fd in ready):
            self._drain()

    def _drain(self) -> None:
        try:
            for _ in self._conn.notifies(timeout=0):
                pass
        except Exception as exc:  # noqa: BLE001  whatever the driver raises: there are time-outs
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
