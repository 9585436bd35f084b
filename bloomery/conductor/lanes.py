"""Polls of many nodes: few workers, a pace, and extra workers for slow BMCs.

    lane = Lane(runtime.workers, ask, most=8, most_slow=75)
    lane.walk(uuids, least_gap_s=0.01)      # returns after the last node
    lane.put(uuid)                          # queues one node; returns at once

A slow poll continues while another worker takes its place in the lane.  So a rack of silent BMCs
delays the nodes behind it by a third of a second each.  The number of slow polls is limited,
because requests of users need workers too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from bloomery import errors, secrets
from bloomery.conductor.workers import Workers
from bloomery.model.request import Request, in_name_of

LOG = logging.getLogger(__name__)

SLOW_AFTER_S: Final = 0.3  # a healthy BMC answers in less
PART_OF_INTERVAL: Final = 0.75  # share of the interval that many nodes are spread over


class Lane:
    """A queue of nodes without duplicates, and the workers that poll them.

    ``poll`` gets a node's UUID in a worker, under a request ID of its own; its errors are logged.
    """

    def __init__(
        self,
        workers: Workers,
        poll: Callable[[str], None],
        *,
        most: int,
        most_slow: int = 0,
        slow_after_s: float = SLOW_AFTER_S,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self._workers, self._poll, self._clock = workers, poll, clock
        self._most, self._most_slow, self._slow_after_s = most, most_slow, slow_after_s
        self._todo: deque[str] = deque()
        self._began: dict[str, float] = {}  # nodes being polled, and since when
        self._members: set[str] = set()  # nodes being polled or queued
        self._busy = 0
        self._gap_s = self._next_at = 0.0
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._pause = pause or self._stopping.wait

    @property
    def is_idle(self) -> bool:
        return not self._members and not self._busy

    def put(self, uuid: str) -> None:
        """Queue a node; where no worker is free it waits for the next ``put``."""
        with self._changed:
            self._add((uuid,))
        self._fill()

    def walk(self, uuids: Iterable[str], least_gap_s: float = 0.0) -> None:
        """Poll each node once, ``least_gap_s`` apart; return after the last.

        Free workers begin together; the following polls begin later in proportion.  Slow polls
        continue after the return.  Without a free worker the calling thread polls.
        """
        with self._changed:
            self._gap_s = least_gap_s
            self._add(uuids)
        while True:
            self._fill()
            with self._changed:
                if not self._todo and len(self._began) == self._slow():
                    return
                if self._busy:
                    self._changed.wait(self._slow_after_s)
                    continue
            if self._claim():
                self._drain()

    def stop(self) -> None:
        """Drop the queued nodes; running polls end by themselves."""
        self._stopping.set()
        with self._changed:
            self._members.difference_update(self._todo)
            self._todo.clear()
            self._changed.notify_all()

    def _add(self, uuids: Iterable[str]) -> None:
        for uuid in uuids:
            if uuid not in self._members and not self._stopping.is_set():
                self._members.add(uuid)
                self._todo.append(uuid)

    def _slow(self) -> int:
        late = self._clock() - self._slow_after_s
        return sum(began <= late for began in self._began.values())

    # --------------------------------------------------------------------------- its workers

    def _claim(self) -> bool:
        """Count the caller as a worker if there is work for one more."""
        with self._changed:
            most = self._most + min(self._slow(), self._most_slow)
            if not self._todo or self._busy >= most:
                return False
            self._busy += 1
            return True

    def _fill(self) -> None:
        """Spawn workers up to the limit, as far as the pool has some."""
        for _ in range(min(len(self._todo), self._most + self._most_slow)):
            if not self._claim():
                return
            try:
                self._workers.spawn(self._drain)
            except errors.NoFreeConductorWorker:
                self._resign()
                return

    def _resign(self) -> None:
        with self._changed:
            self._busy -= 1
            self._changed.notify_all()

    def _drain(self) -> None:
        """Poll queued nodes until the queue is empty or the lane is full."""
        try:
            while (uuid := self._next()) is not None:
                with in_name_of(Request.new()):
                    try:
                        self._poll(uuid)
                    except errors.DatabaseBusy as exc:
                        LOG.warning("node %s: not polled: %s", uuid, errors.brief(exc))
                    except Exception as exc:  # noqa: BLE001  one poll ends no other
                        LOG.error("node %s: poll failed: %s", uuid, secrets.report(exc))  # noqa: TRY400  masked
                    finally:
                        self._ended(uuid)
        except BaseException:
            self._resign()
            raise

    def _next(self) -> str | None:
        """Return the next node when it is due, or None, which ends the worker.

        The worker leaves the count under the same lock, so that a concurrent ``put`` can spawn
        another.
        """
        with self._changed:
            if not self._todo or self._busy > self._most + min(self._slow(), self._most_slow):
                self._resign()
                return None
            uuid, now = self._todo.popleft(), self._clock()
            due_at = max(self._next_at, now - self._gap_s * (self._most - 1))  # all may be free
            begins_at = self._began[uuid] = max(now, due_at)
            self._next_at = due_at + self._gap_s
        if begins_at > now:
            self._pause(begins_at - now)
        if self._stopping.is_set():
            self._ended(uuid)
            self._resign()
            return None
        return uuid

    def _ended(self, uuid: str) -> None:
        with self._changed:
            del self._began[uuid]
            self._members.discard(uuid)


def gap_s(count: int, interval_s: float, slowest_pace: float) -> float:
    """Return the seconds between the starts of two polls.

    Few nodes are polled at ``slowest_pace`` per second; many are spread over most of the interval.
    """
    return min(1 / slowest_pace, interval_s * PART_OF_INTERVAL / max(count, 1))
