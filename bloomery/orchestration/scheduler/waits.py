"""Time as tasks see it: a clock, what they may wait for, and what happens when time is up.

A wait is asked as often as anybody likes and must be cheap; whatever can tell when it is due may be
yielded, such as a deadline of one's own or a row that another process writes.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias


class Clock(Protocol):
    def now(self) -> float:
        """Seconds that only ever grow."""

    def wait(self, until_s: float | None) -> None:
        """Return when ``until_s`` has come, or ``wake`` was called since the last return.

        None waits for a wake-up alone.  To return early is allowed, and costs a turn.
        """

    def wake(self) -> None:
        """End the present wait, or the next one; for whoever brings news, from any thread."""


class Stuck(RuntimeError):
    """Everyone waits to be woken, and nobody is left who could."""


class Simulated:
    """A clock that stands still until it is waited for, and then jumps.

    An hour of time-outs passes in no time, always in the same way.  What is to happen from
    outside is entered beforehand, and wakes whoever waits::

        clock.call_at(30, lambda: inbox.append("signal"))
    """

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s
        self._woken = False
        self._entered: list[tuple[float, int, Callable[[], object]]] = []
        self._number = itertools.count()  # keeps entries of one moment in the order they came

    def now(self) -> float:
        return self._now_s

    def wake(self) -> None:
        self._woken = True

    def call_at(self, at_s: float, action: Callable[[], object]) -> None:
        """Do ``action`` when the clock comes to ``at_s``; one that lies behind is done next."""
        heapq.heappush(self._entered, (at_s, next(self._number), action))

    def wait(self, until_s: float | None) -> None:
        """Jump to ``until_s`` or to the next entry.  Raises Stuck when there is neither."""
        if self._woken:
            self._woken = False
        elif self._entered and (until_s is None or self._entered[0][0] <= until_s):
            at_s, _number, action = heapq.heappop(self._entered)
            self._jump(at_s)
            action()
            self._woken = False  # the return is the wake-up
        elif until_s is None:
            raise Stuck("cannot wait: no time is set and nothing is entered in the clock")
        else:
            self._jump(until_s)

    def _jump(self, at_s: float) -> None:
        self._now_s = max(self._now_s, at_s)


# ---------------------------------------------------------------------- what a task may yield

NOW: Final = -math.inf
NEVER: Final = math.inf


class Wait(Protocol):
    def due_at(self, asked_at: float) -> float:
        """Tell the clock's time from which a step is worth while, as far as is known now.

        ``asked_at``: when the wish was yielded.  NEVER stands for "not before somebody wakes me".
        """


Yielded: TypeAlias = Wait | int | None  # None: on the next turn; n: on every n-th


@dataclass(frozen=True, slots=True)
class After:
    """Step me when so much time has passed; After(0) gives others a turn and waits for nothing."""

    seconds: float

    def due_at(self, asked_at: float) -> float:
        return asked_at + self.seconds


@dataclass(frozen=True, slots=True)
class Woken:
    """Step me when ``by`` turns true, or after ``timeout_s`` if that is earlier.

    Whoever makes it true calls ``wake`` of the clock; a wake-up for others changes nothing.
    """

    by: Callable[[], object]
    timeout_s: float = NEVER

    def due_at(self, asked_at: float) -> float:
        return NOW if self.by() else asked_at + self.timeout_s


# ------------------------------------------------------------------------------------ timeouts


class Timeout(BaseException):
    """A task's time is up: it is thrown into the task at the next step.

    It derives from BaseException, so that an ordinary ``except Exception`` of a plug-in does not
    swallow it.  A task that catches it may tidy up, and end or raise; if it yields on, it is
    closed, and nobody is told.
    """

    def __init__(self, task: object, at: float) -> None:
        super().__init__(f"{task} Timed out")
        self.at = at

    def earlier_than(self, other: Timeout | None) -> bool:
        """Whether this one strikes first; having no deadline strikes last."""
        return other is None or self.at < other.at

    def expired(self, now: float) -> bool:
        return now >= self.at

    def trigger(self, generator: Generator[Any, Any, Any]) -> None:
        """End the task, now.  Whatever it raises instead goes to who stepped it."""
        try:
            generator.throw(self)
        except StopIteration:
            return
        generator.close()


class TimedCancel(Timeout):
    """The grace that a cancelled task was given is over: it is closed without a word."""

    def trigger(self, generator: Generator[Any, Any, Any]) -> None:
        generator.close()
