"""Send a batch of events to a sink: in order per object, several objects in parallel.

    delivery = Delivery(sink.send, batch, lanes=4, is_stopping=lambda: False)
    delivery.run(10.0, renew)           # calls ``renew`` every ten seconds meanwhile
    delivery.taken, delivery.error

After a failure each lane stops at its current event, so that a sink that is down does not get every
event of a batch.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from bloomery.db.events import EventRow


class Delivery:
    """One batch; ``taken`` are the numbers of the delivered events."""

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
        queues = _by_object(batch) if lanes > 1 else [batch]
        self._queues = deque(queue for queue in queues if queue)
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
                self._attempt(event)

    def _attempt(self, event: EventRow) -> None:
        try:
            self._send(event)
        except Exception as exc:  # noqa: BLE001  the worker's supervisor: sinks raise anything
            self.error = exc
        else:
            self.taken.add(event.id)


def _by_object(batch: Sequence[EventRow]) -> list[list[EventRow]]:
    queues: dict[str, list[EventRow]] = {}
    for event in batch:
        queues.setdefault(event.object_uuid, []).append(event)
    return list(queues.values())
