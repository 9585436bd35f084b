"""The worker threads of an engine, and when each tree of stacks is stepped.

A tree is a group with one step function.  A worker calls it when the group is due or woken, and it
returns when the group is due again.  A group is stepped by one worker at a time.  A waiting group
is an entry of a heap and costs no thread.

    groups = ThreadGroupManager(workers=2)
    groups.start_with_lock(lock, is_live, lambda lease: step)
    groups.wake(root_uuid)                                     # step it soon
    groups.stop(grace_s=5)
"""

from __future__ import annotations

import enum
import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

import futurist

from bloomery import errors, secrets
from bloomery.metrics import METRICS
from bloomery.operations.heavy_jobs import frequent_switches

LOG = logging.getLogger(__name__)

NEVER: Final = float("inf")  # due only when woken
_MOST_PAUSE_S: Final = 60.0  # after steps that failed in a row
_MOST_DOUBLINGS: Final = 6  # of a pause of one second

# The argument says whether the group was woken.  Returns when it is due again; None ends it.
Step: TypeAlias = Callable[[bool], float | None]
L = TypeVar("L")
L_co = TypeVar("L_co", covariant=True)


class Lock(Protocol[L_co]):
    """The part of ``StackLock`` that groups use."""

    @property
    def root_uuid(self) -> str: ...

    def acquire(self, is_live: Callable[[str], bool]) -> L_co: ...


class _State(enum.Enum):
    PARKED = enum.auto()  # waits for its time, or to be woken
    READY = enum.auto()  # waits for a worker
    RUNNING = enum.auto()


@dataclass(slots=True, eq=False)
class _Group:
    """``due_at``: when the next step is due; ``entered_at``: the time of its entry in the heap."""

    name: str
    step: Step
    is_timer: bool = False
    state: _State = _State.PARKED
    due_at: float = NEVER
    entered_at: float = NEVER
    ready_at: float = 0.0
    woken: bool = False
    ended: bool = False
    failures: int = 0


class ThreadGroupManager:
    """Groups by the UUID of their root; safe to use from any thread.

    ``on_late_wake`` is called with the name of a group that was woken during its last step.
    """

    def __init__(
        self,
        workers: int,
        *,
        on_late_wake: Callable[[str], object] = lambda name: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_late_wake = on_late_wake
        self._clock = clock
        self._pool = futurist.ThreadPoolExecutor(max_workers=workers)
        mutex = threading.RLock()
        self._mutex = mutex
        self._step_ended = threading.Condition(mutex)
        self._heap_changed = threading.Condition(mutex)
        self._groups: dict[str, _Group] = {}
        self._due: list[tuple[float, int, _Group]] = []
        self._number = itertools.count()
        self._running: set[_Group] = set()
        self._stopping = False
        self._watch = threading.Thread(target=self._run_due, name="stacks-due", daemon=True)

    def __contains__(self, name: object) -> bool:
        with self._mutex:
            return name in self._groups

    def __len__(self) -> int:
        return len(self.roots())

    @property
    def busy(self) -> int:
        return len(self._running)

    def roots(self) -> list[str]:
        with self._mutex:
            return [group.name for group in self._groups.values() if not group.is_timer]

    def begin(self) -> None:
        self._watch.start()

    # ---------------------------------------------------------------------------- groups

    def start(self, name: str, step: Step, *, is_timer: bool = False) -> bool:
        with self._mutex:
            if self._stopping or name in self._groups:
                return False
            group = self._groups[name] = _Group(name, step, is_timer)
            self._make_ready(group)
            return True

    def start_with_lock(
        self, lock: Lock[L], is_live: Callable[[str], bool], make_step: Callable[[L], Step]
    ) -> bool:
        """Start the group of a tree; its worker acquires the lock before the first step.

        ``make_step`` is called under the lock.  A step may end the group only after it released or
        lost the lock.  The group ends at once if a live engine has the lock or the tree is gone.
        Return False if the group exists already or this manager stops.
        """
        lease: L | None = None
        locked_step: Step | None = None

        def step(woken: bool) -> float | None:
            nonlocal lease, locked_step
            try:
                lease = lock.acquire(is_live) if lease is None else lease
            except (errors.Conflict, errors.NotFound) as exc:
                LOG.info("stack %s: left alone: %s", lock.root_uuid, exc)
                return None
            locked_step = make_step(lease) if locked_step is None else locked_step
            return locked_step(woken)

        return self.start(lock.root_uuid, step)

    def add_timer(self, name: str, every_s: float, call: Callable[[], object]) -> None:
        begun: list[bool] = []

        def step(woken: bool) -> float:
            if begun or woken:
                call()
            begun[:] = [True]
            return self._clock() + every_s

        self.start(name, step, is_timer=True)

    def wake(self, name: str) -> bool:
        """Step the group soon, or once more after a running step.  False: no such group."""
        with self._mutex:
            group = self._groups.get(name)
            if group is None:
                return False
            group.woken = True
            self._make_ready(group)
            return True

    def stop(self, name: str | None = None, *, grace_s: float = 0.0) -> bool:
        """End one group, or all of them for good; wait ``grace_s`` for running steps.

        A running step goes on to its end.  Return False if a step still runs.
        """
        with self._mutex:
            self._stopping = self._stopping or name is None
            for group in list(self._groups.values()):
                if name in (None, group.name):
                    self._end(group)
            self._heap_changed.notify()
            ended = self._step_ended.wait_for(
                lambda: not any(name in (None, group.name) for group in self._running), grace_s
            )
        if name is None:
            self._pool.shutdown(wait=False)  # an idle thread takes a second to notice
            if self._watch.ident is not None:
                self._watch.join()
        return ended

    # --------------------------------------------------------------------------- workers

    def _make_ready(self, group: _Group) -> None:
        if group.state is _State.PARKED and not self._stopping:
            group.state = _State.READY
            group.due_at = NEVER
            group.ready_at = self._clock()
            self._pool.submit(self._work, group)

    def _end(self, group: _Group) -> None:
        group.ended = True
        if self._groups.get(group.name) is group:
            del self._groups[group.name]

    def _work(self, group: _Group) -> None:
        with self._mutex:
            if group.ended:
                return
            group.state = _State.RUNNING
            woken, group.woken = group.woken, False
            self._running.add(group)
        METRICS.send_timer("stack_wake_lag", (self._clock() - group.ready_at) * 1000)
        try:
            with frequent_switches():
                due_at = group.step(woken)
            group.failures = 0
        except Exception as exc:  # noqa: BLE001  the supervisor: one bad step ends no worker
            group.failures += 1
            pause_s = min(2.0 ** min(group.failures, _MOST_DOUBLINGS), _MOST_PAUSE_S)
            due_at = self._clock() + pause_s
            LOG.error("stack %s: step failed: %s", group.name, secrets.trace(exc))  # noqa: TRY400
        self._park(group, due_at)

    def _park(self, group: _Group, due_at: float | None) -> None:
        with self._mutex:
            self._running.discard(group)
            group.state = _State.PARKED
            late = due_at is None and group.woken and not group.ended
            if due_at is None:
                self._end(group)
            elif not group.ended:
                self._park_until(group, due_at)
            self._step_ended.notify_all()
        if late:
            self._on_late_wake(group.name)

    def _park_until(self, group: _Group, due_at: float) -> None:
        if (group.woken and not group.failures) or due_at <= self._clock():
            self._make_ready(group)
            return
        group.due_at = due_at
        self._enter(group)

    def _enter(self, group: _Group) -> None:
        """Put a group into the heap, unless an earlier entry will bring it up again."""
        if group.due_at < group.entered_at:
            group.entered_at = group.due_at
            entry = (group.due_at, next(self._number), group)
            heapq.heappush(self._due, entry)
            if self._due[0] is entry:
                self._heap_changed.notify()

    # ------------------------------------------------------------------------- the clock

    def _run_due(self) -> None:
        with self._mutex:
            while not self._stopping:
                now = self._clock()
                while self._due and self._due[0][0] <= now:
                    self._take_due(now)
                self._heap_changed.wait(self._due[0][0] - now if self._due else None)

    def _take_due(self, now: float) -> None:
        entered_at, _, group = heapq.heappop(self._due)
        if entered_at != group.entered_at:
            return  # a stale entry
        group.entered_at = NEVER
        if group.ended or group.state is not _State.PARKED:
            return
        if group.due_at <= now:
            self._make_ready(group)
        else:
            self._enter(group)
