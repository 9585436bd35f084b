"""The pulse: one thread that asks all BMCs of a conductor, whether anything has changed.

    lane = Lane(pulse, poll, most=8)      # poll(uuid): a coroutine
    lane.walk(uuids, gap_s=0.01)          # returns at once; a node is queued once
    await lane.in_worker(work, uuid)      # within poll: what needs a task, in a worker

A look (``drivers.looks``) reads a BMC in this thread.  Most looks read what the row says, and
end there; a difference, or a silence that lasts, becomes a task in a worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from bloomery import errors, secrets
from bloomery.conductor.workers import Workers
from bloomery.drivers.base import DriverTask
from bloomery.drivers.looks import Look
from bloomery.model.request import Request, in_name_of

LOG = logging.getLogger(__name__)
T = TypeVar("T")

SLOW_AFTER_S: Final = 0.3  # a healthy BMC answers in less
PART_OF_INTERVAL: Final = 0.75  # share of the interval that many nodes are spread over
_MOST_AT_ONCE: Final = 4096  # polls of a lane under way: dead BMCs must not take them all
_LATE_S: Final = 1.0  # polls that are later do not begin all at once
_TOGETHER_S: Final = 0.05  # polls of that time begin together, for one timer
_MUTE_S: Final = 10.0  # after which a thread that does not answer is a problem
_RESTART_S: Final = 1.0
_STOP_S: Final = 5.0

Poll = Callable[[str], Coroutine[Any, Any, None]]


@dataclass(slots=True)
class _Kept:
    """A look, with the time of the node's last change when it was made."""

    changed_at: datetime | None
    look: Look
    used_at: float


class Pulse:
    """The thread and its asyncio loop, begun at the first use; the looks at each node's BMC."""

    def __init__(self, workers: Workers, clock: Callable[[], float] = time.monotonic) -> None:
        self.workers, self._clock = workers, clock
        self.breaks = 0
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopping = False
        self.lanes: list[Lane] = []
        self._looks: dict[str, _Kept] = {}
        self._asked_at: float | None = None  # by ``missing``, without an answer yet

    # ------------------------------------------------------------------------------- looks

    def look(self, uuid: str, changed_at: datetime | None) -> Look | None:
        """Return the look at a node, unless the node was changed since the look was made."""
        kept = self._looks.get(uuid)
        if kept is None or kept.changed_at != changed_at:
            return None
        kept.used_at = time.monotonic()
        return kept.look

    def former(self, uuid: str) -> Look | None:
        """Return the last look at a node, whatever has changed since."""
        kept = self._looks.get(uuid)
        return None if kept is None else kept.look

    def keep(self, uuid: str, changed_at: datetime | None, look: Look | None) -> None:
        """Replace the look at a node that was last changed at ``changed_at``."""
        with self._mutex:
            old = self._looks.pop(uuid, None)
            if look is not None:
                self._looks[uuid] = _Kept(changed_at, look, time.monotonic())
        if old is not None and old.look is not look:
            self.call(old.look.close)

    def renew(self, task: DriverTask) -> None:
        """Keep a look that asks the BMC as the task's node says now; None where it has none."""
        node = task.node
        look = task.driver.power.look(task, self.former(node.uuid))
        self.keep(node.uuid, node.updated_at, look)

    def drop(self, uuid: str) -> None:
        self.keep(uuid, None, None)

    def drop_unused(self, for_s: float) -> None:
        """Drop the looks at nodes that nobody has looked at for so long."""
        since = time.monotonic() - for_s
        for uuid, kept in self._looks.copy().items():
            if kept.used_at < since:
                self.drop(uuid)

    # ------------------------------------------------------------------------------ thread

    def call(self, work: Callable[[], object]) -> None:
        """Run ``work`` in the thread, soon; not after ``stop``."""
        with self._mutex:
            if self._is_stopping:
                return
            if self._thread is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
                self._thread.start()
            assert self._loop is not None
            with contextlib.suppress(RuntimeError):  # a loop that broke off; lanes begin anew
                self._loop.call_soon_threadsafe(work)

    def missing(self) -> list[str]:
        """Ask the thread, and say how long it has not answered; an empty list while it does."""
        if self._thread is None or self._is_stopping:
            return []
        asked_at, now = self._asked_at, self._clock()
        if asked_at is None:
            self._asked_at = now
            self.call(self._answer)
        elif now - asked_at > _MUTE_S:
            return [f"the thread that looks at BMCs has not answered for {now - asked_at:.0f} s"]
        return []

    def _answer(self) -> None:
        self._asked_at = None

    def stop(self) -> None:
        """End the polls and close the looks."""
        for lane in self.lanes:
            lane.stop()
        with self._mutex:
            was_stopping, self._is_stopping = self._is_stopping, True
            thread, loop = self._thread, self._loop
            if thread is None or loop is None or was_stopping:
                return
            loop.call_soon_threadsafe(loop.stop)
        thread.join(_STOP_S)

    def _run(self) -> None:
        """Run the loop until ``stop``; begin another one after an error that ends it."""
        while True:
            loop = self._loop
            assert loop is not None
            try:
                asyncio.set_event_loop(loop)
                loop.run_forever()
            except BaseException as exc:  # noqa: BLE001  the supervisor of the thread
                self.breaks += 1
                LOG.error("the pulse of BMCs broke off: %s", secrets.report(exc))  # noqa: TRY400
            with self._mutex:
                is_last = self._is_stopping
                if not is_last:  # what is called meanwhile waits for the next loop
                    self._loop, self._asked_at = asyncio.new_event_loop(), None
                looks, self._looks = self._looks, {}
            for uuid, kept in looks.items():  # their connections belong to the loop
                try:
                    kept.look.close()
                except Exception as exc:  # noqa: BLE001  one look must not keep the others open
                    LOG.warning("node %s: its look is not closed: %s", uuid, secrets.brief(exc))
            for task in (tasks := asyncio.all_tasks(loop)):
                task.cancel()
            with contextlib.suppress(Exception):
                loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.close()
            if is_last:
                return
            time.sleep(_RESTART_S)
            for lane in self.lanes:
                lane.begin_anew()


class Lane:
    """A queue of nodes without duplicates, of which each is polled by a coroutine.

    ``poll`` gets a node's UUID, under a request ID of its own; its errors are logged.  ``most``:
    workers that the lane uses at a time.  A poll that keeps its worker for longer than
    ``slow_after_s`` counts among ``most_slow`` instead, so that silent BMCs delay nobody.
    """

    def __init__(
        self,
        pulse: Pulse,
        poll: Poll,
        *,
        most: int,
        most_slow: int = 0,
        slow_after_s: float = SLOW_AFTER_S,
    ) -> None:
        self._pulse, self._poll = pulse, poll
        self._most, self._most_slow, self._slow_after_s = max(most, 1), most_slow, slow_after_s
        self._mutex = threading.Lock()
        self._todo: deque[str] = deque()
        self._members: set[str] = set()  # nodes queued or being polled
        self._gap_s = self._next_at = 0.0
        self._is_stopped = False
        self.begin_anew()
        pulse.lanes.append(self)

    @property
    def is_idle(self) -> bool:
        return not self._members

    def __len__(self) -> int:
        """Return how many nodes are queued or being polled."""
        return len(self._members)

    def put(self, uuid: str) -> None:
        """Queue a node."""
        self.walk((uuid,), self._gap_s)

    def walk(self, uuids: Iterable[str], gap_s: float = 0.0) -> None:
        """Queue the nodes that are not queued yet, to be polled ``gap_s`` apart; return at once."""
        with self._mutex:
            self._gap_s = gap_s
            new = [uuid for uuid in uuids if uuid not in self._members and not self._is_stopped]
            if not self._todo:
                self._next_at = max(self._next_at, time.monotonic())
            self._members.update(new)
            self._todo.extend(new)
        if new:
            self._pulse.call(self._begin_due)

    def stop(self) -> None:
        """Drop the queued nodes; running polls end by themselves."""
        with self._mutex:
            self._is_stopped = True
            self._members.difference_update(self._todo)
            self._todo.clear()

    async def in_worker(self, work: Callable[..., T], *args: Any) -> T:
        """Return the result of ``work`` in a worker.  Raises NoFreeConductorWorker."""
        await self._free.acquire()
        try:
            if self._is_stopped:
                raise asyncio.CancelledError
            future = asyncio.wrap_future(self._pulse.workers.spawn(work, *args))
            await asyncio.wait((future,), timeout=self._slow_after_s)
            if not future.done() and self._slow < self._most_slow:
                self._free.release()
                self._slow += 1
                try:
                    await asyncio.wait((future,))
                finally:
                    self._slow -= 1
                    await self._free.acquire()
            result: T = await future
            return result
        finally:
            self._free.release()

    # ---------------------------------------------------------------------- in the pulse's thread

    def begin_anew(self) -> None:
        """Go on in a new loop, without the polls of the old one."""
        self._free = asyncio.Semaphore(self._most)
        self._polls: set[asyncio.Task[None]] = set()
        self._slow = 0
        self._timer: asyncio.TimerHandle | None = None
        if self._todo:
            self._pulse.call(self._begin_due)

    def _begin_due(self) -> None:
        """Begin the polls that are due; one that is late does not make the next ones early."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while len(self._polls) < _MOST_AT_ONCE:
            now = loop.time()
            with self._mutex:
                if not self._todo:
                    return
                if self._next_at > now + _TOGETHER_S:
                    break
                uuid = self._todo.popleft()
            self._next_at = max(self._next_at, now - _LATE_S) + self._gap_s
            poll = loop.create_task(self._one(uuid))
            self._polls.add(poll)
            poll.add_done_callback(functools.partial(self._ended, uuid))
        if len(self._polls) < _MOST_AT_ONCE:
            self._timer = loop.call_at(self._next_at, self._begin_due)

    async def _one(self, uuid: str) -> None:
        try:
            with in_name_of(Request.new()):
                await self._poll(uuid)
        except errors.NoFreeConductorWorker as full:
            LOG.debug("node %s: left to the next pass: %s", uuid, full)
        except errors.DatabaseBusy as exc:
            LOG.warning("node %s: not polled: %s", uuid, errors.brief(exc))
        except Exception as exc:  # noqa: BLE001  one poll ends no other
            LOG.error("node %s: poll failed: %s", uuid, secrets.report(exc))  # noqa: TRY400  masked

    def _ended(self, uuid: str, poll: asyncio.Task[None]) -> None:
        self._polls.discard(poll)
        with self._mutex:
            self._members.discard(uuid)
        if self._todo and self._timer is None:
            self._pulse.call(self._begin_due)


def gap_s(count: int, interval_s: float, slowest_pace: float) -> float:
    """Return the seconds between the starts of two polls.

    Few nodes are polled at ``slowest_pace`` per second; many are spread over most of the interval.
    """
    return min(1 / slowest_pace, interval_s * PART_OF_INTERVAL / max(count, 1))
