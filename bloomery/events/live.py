"""Push events to any number of connected clients, from one thread.

Each listener has a position.  Listeners at the end share one read of new events; a client that
reads too slowly is disconnected by its connection.  Listeners behind the end get a batch at a time,
after they have received the last one.  Without a listener nothing is read.
"""

from __future__ import annotations

import itertools
import logging
import operator
import threading
from collections.abc import Callable
from typing import Final, Protocol

from bloomery import errors
from bloomery.db import events
from bloomery.db.engine import Database
from bloomery.events.selection import Frames, Selection

LOG = logging.getLogger(__name__)

_BATCH: Final = 200
_MOST_UNSENT: Final = 64 * 1024  # of a listener behind the end
_POLL_S: Final = 5.0  # where no ``wake`` comes
_RETRY_S: Final = 2.0


class Stream(Protocol):
    """A client's connection, implemented by ``http_server.streams``."""

    on_drained: Callable[[], None]
    is_closed: bool

    @property
    def unsent(self) -> int: ...

    def push(self, data: bytes) -> bool: ...


class Listener:
    """``last_id``: the number of the last event that the client has."""

    def __init__(self, stream: Stream, selection: Selection, last_id: int) -> None:
        self.stream, self.selection, self.last_id = stream, selection, last_id
        self.is_behind = True

    @property
    def is_ready(self) -> bool:
        return not self.is_behind or self.stream.unsent < _MOST_UNSENT


class LiveEvents:
    """Call ``add`` and ``wake`` from any thread; the first listener starts its thread."""

    def __init__(self, db: Database, *, most: int) -> None:
        """``most``: the limit of listeners."""
        self._db, self._most = db, most
        self._change = threading.Condition()
        self._listeners: list[Listener] = []
        self._has_events = self._stopping = False
        self._thread = threading.Thread(target=self._run, name="events-live", daemon=True)

    def stop(self) -> None:
        """End the thread; the server closes the connections."""
        with self._change:
            self._stopping = True
            self._change.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def __len__(self) -> int:
        return len(self._listeners)

    def check_room(self) -> None:
        """Raise TooManyListeners at the limit."""
        if len(self._listeners) >= self._most:
            raise errors.TooManyListeners(most=self._most)

    def add(self, stream: Stream, selection: Selection, last_id: int) -> None:
        """Push events after ``last_id`` to ``stream``, until it is closed."""
        stream.on_drained = self.wake
        with self._change:
            self._listeners.append(Listener(stream, selection, last_id))
            if self._thread.ident is None and not self._stopping:
                self._thread.start()
        self.wake()

    def wake(self) -> None:
        """Signal new events, or room at a client behind the end."""
        if self._listeners:
            with self._change:
                self._has_events = True
                self._change.notify()

    # ------------------------------------------------------------------------------ the thread

    def _run(self) -> None:
        pause_s: float | None = None
        while True:
            with self._change:
                self._change.wait_for(lambda: self._stopping or self._has_events, pause_s)
                self._has_events = False
                if self._stopping:
                    return
            try:
                while self.push_batch():
                    pass
                pause_s = _POLL_S if self._listeners else None
            except Exception as exc:  # noqa: BLE001  this thread's supervisor: it tries again
                LOG.warning("cannot read events for listeners: %s", errors.brief(exc))
                pause_s = _RETRY_S

    def push_batch(self) -> bool:
        """Push a batch to all ready listeners; return whether more events are waiting.

        A listener behind the end gets a limited amount.
        """
        with self._change:
            self._listeners = [each for each in self._listeners if not each.stream.is_closed]
            ready = [each for each in self._listeners if each.is_ready]
        position = operator.attrgetter("last_id")
        for last_id, group in itertools.groupby(sorted(ready, key=position), key=position):
            with self._db.read() as conn:
                batch = events.list_after(conn, last_id, _BATCH)
            frames = [Frames(stored) for stored in batch]
            for listener in group:
                was_behind, listener.is_behind = listener.is_behind, False
                for each in frames:
                    if was_behind and listener.stream.unsent >= _MOST_UNSENT:
                        listener.is_behind = True
                        break
                    if listener.selection.takes(each.event):
                        listener.stream.push(each.of(listener.selection))
                    listener.last_id = each.event.id
                listener.is_behind |= len(batch) == _BATCH
        return any(each.is_behind and each.is_ready for each in ready) and not self._stopping
