"""The queue of allocations in front of the worker that chooses nodes."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from bloomery.model.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An allocation that needs a node; ``attempt`` counts from 1.

    ``faults``: how often the database failed during the search.
    """

    uuid: str
    request: Request
    attempt: int = 1
    faults: int = 0


class AllocationQueue:
    """A thread-safe queue of allocations; it knows whether the worker runs."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._entries: deque[Entry] = deque()
        self._queued: set[str] = set()
        self._served = self._closed = False

    def add(self, entry: Entry) -> bool:
        """Append an entry unless its allocation is queued; return whether to start the worker."""
        with self._mutex:
            if self._closed or entry.uuid in self._queued:
                return False
            self._queued.add(entry.uuid)
            return self._append(entry)

    def add_again(self, entry: Entry) -> bool:
        """Append an entry that got no node; return whether to start the worker."""
        with self._mutex:
            return not self._closed and self._append(entry)

    def _append(self, entry: Entry) -> bool:
        self._entries.append(entry)
        starts, self._served = not self._served, True
        return starts

    def next(self) -> Entry | None:
        """Return the next entry, or None, which stops the worker."""
        with self._mutex:
            if self._entries and not self._closed:
                return self._entries.popleft()
            self._served = False
            return None

    def forget(self, uuid: str) -> None:
        """Forget a settled allocation, so that it may be added again."""
        with self._mutex:
            self._queued.discard(uuid)

    def close(self) -> None:
        """Accept and return no more entries; the rows keep the allocations."""
        with self._mutex:
            self._closed = True
