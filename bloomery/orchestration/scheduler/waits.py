"""What a task may yield: when its next step is worth while.

A wish is asked as often as anybody likes and must be cheap; whatever can tell when it is due may be
yielded, such as a deadline of one's own or a row that another process writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

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
