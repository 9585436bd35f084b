"""Threads, locks and time that a seed decides: who runs next, when, and who never runs again.

One thread runs at a time; it hands the baton on where it waits, and at the points that are named
to ``Scheduler.switch``.  So whatever runs between two such points is atomic, and a seed gives the
same run each time.  A process is a group of threads that stand still or are gone together: those
of a dead one are never given the baton again, as after kill -9, and no ``finally`` of theirs runs.

    from tests.cluster import virtual       # before anything of ours is imported
    virtual.install()
    scheduler = virtual.Scheduler(seed)
    scheduler.run(Process("director"), main)

``install`` replaces the primitives of ``threading``, ``queue`` and ``time`` for good: so a cluster
lives in an interpreter of its own (``tests.cluster.run``), which forks for each seed.
"""

from __future__ import annotations

import _thread
import contextvars
import heapq
import itertools
import queue
import random
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

BEGIN_S: Final = 1000.0
_BEGIN_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MOST_CPU_S: Final = 0.002  # virtual time that passes between two points, at most
_GOES_ON: Final = 0.5  # how often a thread that could hand the baton on keeps it


@dataclass(slots=True, eq=False)
class Process:
    """Threads that live, stand still and die together."""

    name: str
    is_alive: bool = True
    is_paused: bool = False
    mute_until: float = 0.0  # its signs of life do not get through

    @property
    def runs(self) -> bool:
        return self.is_alive and not self.is_paused


class Carrier:
    """A thread of the machine, which carries one strand after the other: to make one is slow."""

    def __init__(self) -> None:
        self.baton = _thread.allocate_lock()
        self.baton.acquire()
        self.strand: Strand | None = None


@dataclass(slots=True, eq=False)
class Strand:
    """A thread, and where it stands."""

    process: Process
    name: str
    work: Callable[[], None]
    carrier: Carrier
    at: str = "start"
    waits: int = 0  # counts its waits: an alarm of an earlier one is stale
    is_waiting: bool = False
    was_woken: bool = False


class Deadlock(Exception):
    """Nobody can run, now or later."""


class Scheduler:
    """Gives the baton to one strand after the other, as its seed says."""

    current: Strand

    def __init__(self, seed: str) -> None:
        self.lots = random.Random(seed)
        self.now = BEGIN_S
        self.steps = 0
        self.trace: list[tuple[float, str, str, str]] = []
        self.on_switch: Callable[[Strand], None] = lambda _strand: None
        self._ready: list[Strand] = []
        self._idle: list[Carrier] = []
        self._alarms: list[tuple[float, int, Strand, int]] = []
        self._order = itertools.count()
        self._ended = _thread.allocate_lock()
        self._broken: BaseException | None = None

    # ----------------------------------------------------------------------------- its ends

    def run(self, process: Process, work: Callable[[], None]) -> None:
        """Run ``work`` and whatever it starts, until it returns.  Raises what it raises."""
        global SCHEDULER  # noqa: PLW0603  locks find it, and are made by anybody
        SCHEDULER = self
        self._ended.acquire()
        self.spawn(process, lambda: self._run_first(work), "main")
        self.current = self._next()
        self.current.carrier.baton.release()
        self._ended.acquire()
        if self._broken is not None:
            raise self._broken

    def _run_first(self, work: Callable[[], None]) -> None:
        work()
        self._end()

    def _end(self) -> None:
        """Let ``run`` return; nobody is given the baton any more."""
        self._ended.release()
        self.current.carrier.baton.acquire()  # which nobody releases

    # ------------------------------------------------------------------------------ strands

    def spawn(
        self, process: Process, work: Callable[[], None], name: str, delay_s: float = 0.0
    ) -> None:
        """Start a thread of ``process``, now or after ``delay_s``."""
        is_new = not self._idle
        carrier = Carrier() if is_new else self._idle.pop()
        strand = carrier.strand = Strand(process, name, work, carrier)
        if delay_s > 0:
            self._sleep(strand, delay_s)
        else:
            self._ready.append(strand)
        if is_new:
            _thread.start_new_thread(self._carry, (carrier,))

    def _carry(self, carrier: Carrier) -> None:
        while True:
            carrier.baton.acquire()
            assert carrier.strand is not None
            try:
                contextvars.Context().run(carrier.strand.work)
            except BaseException as exc:  # noqa: BLE001  a thread that dies unseen is a fault
                self._broken = exc
                self._end()
            carrier.strand.at = "end"
            self._idle.append(carrier)
            self._pass_on(carrier)

    def switch(self, at: str) -> None:
        """Anybody may run here; the process may end here, or stand still for a while."""
        strand = self.current
        strand.at = at
        self.on_switch(strand)
        if strand.process.runs and self.lots.random() < _GOES_ON:
            self._count(strand)
            return
        self._ready.append(strand)
        self._hand_over(strand)

    def wait(self, timeout_s: float | None, at: str = "wait") -> bool:
        """Wait until somebody wakes this strand; False when the time is up."""
        strand = self.current
        strand.at = at
        if timeout_s is None:
            strand.waits += 1
            strand.is_waiting, strand.was_woken = True, False
        else:
            self._sleep(strand, timeout_s)
        self._hand_over(strand)
        return strand.was_woken

    def _sleep(self, strand: Strand, timeout_s: float) -> None:
        strand.waits += 1
        strand.is_waiting, strand.was_woken = True, False
        alarm = (self.now + max(timeout_s, 0), next(self._order), strand, strand.waits)
        heapq.heappush(self._alarms, alarm)

    def wake(self, strand: Strand) -> None:
        if strand.is_waiting:
            strand.is_waiting, strand.was_woken = False, True
            self._ready.append(strand)

    def _hand_over(self, strand: Strand) -> None:
        chosen = self._next()
        self.current = chosen
        if chosen is not strand:
            chosen.carrier.baton.release()
            strand.carrier.baton.acquire()

    def _pass_on(self, carrier: Carrier) -> None:
        """Give the baton away at the end of a strand; its thread may carry the next one."""
        self.current = self._next()
        self.current.carrier.baton.release()

    # ------------------------------------------------------------------------------- choice

    def _next(self) -> Strand:
        while True:
            self._ring_alarms()
            runs = [strand for strand in self._ready if strand.process.runs]
            if runs:
                chosen = self.lots.choice(runs)
                self._ready.remove(chosen)
                self._count(chosen)
                return chosen
            self._ready = [strand for strand in self._ready if strand.process.is_alive]
            if not self._alarms:
                self._broken = Deadlock(self.standing())
                self._end()
            self.now = max(self.now, self._alarms[0][0])

    def _ring_alarms(self) -> None:
        while self._alarms and self._alarms[0][0] <= self.now:
            _, _, strand, waits = heapq.heappop(self._alarms)
            if strand.is_waiting and strand.waits == waits and strand.process.is_alive:
                strand.is_waiting = False
                self._ready.append(strand)

    def _count(self, strand: Strand) -> None:
        self.steps += 1
        self.now += self.lots.random() * _MOST_CPU_S
        self.trace.append((self.now, strand.process.name, strand.name, strand.at))

    def note(self, what: str) -> None:
        """Put a line of its own into the trace."""
        self.trace.append((self.now, "", "", what))

    def standing(self) -> list[str]:
        """Say where everybody stands who could run, now or later."""
        later = [strand for _, _, strand, _ in self._alarms]
        return [f"{one.process.name}/{one.name} at {one.at}" for one in [*self._ready, *later]]


SCHEDULER: Scheduler | None = None


# ----------------------------------------------------------------------- what it replaces


class Lock:
    """``threading.Lock``: whoever waits tries again once it is free."""

    def __init__(self) -> None:
        self._is_locked = False
        self._waiting: list[Strand] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._is_locked and (not blocking or not self._wait_until_free(timeout)):
            return False
        self._is_locked = True
        return True

    def _wait_until_free(self, timeout_s: float) -> bool:
        scheduler = _scheduler()
        give_up_at = None if timeout_s < 0 else scheduler.now + timeout_s
        while self._is_locked:
            left_s = None if give_up_at is None else give_up_at - scheduler.now
            if left_s is not None and left_s <= 0:
                return False
            self._waiting.append(scheduler.current)
            scheduler.wait(left_s, "lock")
            if scheduler.current in self._waiting:
                self._waiting.remove(scheduler.current)
        return True

    def release(self) -> None:
        if not self._is_locked:
            raise RuntimeError("release unlocked lock")
        self._is_locked = False
        waiting, self._waiting = self._waiting, []
        for strand in waiting:
            _scheduler().wake(strand)

    def locked(self) -> bool:
        return self._is_locked

    def _at_fork_reinit(self) -> None:
        self._is_locked, self._waiting = False, []

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_exc: object) -> None:
        self.release()


class RLock:
    """``threading.RLock``: whoever has it may take it again."""

    def __init__(self) -> None:
        self._lock, self._owner, self._count = Lock(), None, 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = _me()
        if self._count and self._owner is me:
            self._count += 1
            return True
        if not self._lock.acquire(blocking, timeout):
            return False
        self._owner, self._count = me, 1
        return True

    def release(self) -> None:
        if not self._is_owned():
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._owner = None
            self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_exc: object) -> None:
        self.release()

    def _is_owned(self) -> bool:
        return bool(self._count) and self._owner is _me()

    def _at_fork_reinit(self) -> None:
        self._lock, self._owner, self._count = Lock(), None, 0

    def _release_save(self) -> int:
        count, self._count, self._owner = self._count, 0, None
        self._lock.release()
        return count

    def _acquire_restore(self, count: int) -> None:
        self._lock.acquire()
        self._owner, self._count = _me(), count


def _scheduler() -> Scheduler:
    if SCHEDULER is None:
        raise RuntimeError("cannot wait before a scheduler runs")
    return SCHEDULER


def _me() -> object:
    return None if SCHEDULER is None else SCHEDULER.current


def monotonic() -> float:
    return BEGIN_S if SCHEDULER is None else SCHEDULER.now


def now() -> datetime:
    """The time on the wall: it passes as the monotonic one does."""
    return _BEGIN_AT + timedelta(seconds=monotonic() - BEGIN_S)


def sleep(seconds: float) -> None:
    _scheduler().wait(seconds, "sleep")


def _start(thread: threading.Thread) -> None:
    scheduler = _scheduler()
    thread._started.set()
    thread._ends = threading.Event()
    scheduler.spawn(scheduler.current.process, lambda: _run(thread), thread.name)


def _run(thread: threading.Thread) -> None:
    thread._ident = _thread.get_ident()
    threading._active[thread._ident] = thread
    try:
        thread.run()
    finally:
        del threading._active[thread._ident]
        thread._is_stopped = True
        thread._ends.set()


def _join(thread: threading.Thread, timeout: float | None = None) -> None:
    thread._ends.wait(timeout)


def _is_living(thread: threading.Thread) -> bool:
    return thread._started.is_set() and not thread._is_stopped


def _uuid4() -> uuid.UUID:
    bits = random.getrandbits(128) if SCHEDULER is None else SCHEDULER.lots.getrandbits(128)
    return uuid.UUID(int=bits, version=4)


def install() -> None:
    """Replace threads, locks, clocks and UUIDs of this interpreter."""
    threading.Lock = threading._allocate_lock = Lock
    threading.RLock = RLock
    queue.SimpleQueue = queue._PySimpleQueue
    thread: Any = threading.Thread
    thread.start, thread.join, thread.is_alive = _start, _join, _is_living
    time.monotonic, time.sleep = monotonic, sleep
    threading._time = queue.time = monotonic
    time.time = lambda: now().timestamp()
    uuid.uuid4 = _uuid4
    from bloomery import clock
    from bloomery.db import rows

    clock.now = rows.now = now
