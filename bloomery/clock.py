"""Monotonic time for deadlines: the wall clock at process start, plus the time since.

Deadlines are stored in rows.  A change of the wall clock would shorten or extend a deadline; this
clock is not affected.  Times for people are those of the wall clock (``db.rows.now``).

    until = clock.now() + timedelta(seconds=60)
    ...
    if clock.now() > until: ...
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


class Steady:
    """Aware UTC times that no change of the wall clock affects while the process runs."""

    def __init__(
        self,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._wall_at_first, self._first = wall(), monotonic()

    def now(self) -> datetime:
        return self._wall_at_first + timedelta(seconds=self._monotonic() - self._first)


now = Steady().now
