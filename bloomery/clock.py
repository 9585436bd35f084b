"""Time for deadlines: what the wall said when the process began, and what has passed since.

Whoever waits remembers in rows until when.  The clock on the wall may be set meanwhile, and a
deadline of a minute would hold for an hour, or be over at once; this one only goes forward, a
second each second.  Times that people read are those of the wall (``db.rows.now``).

    until = clock.now() + timedelta(seconds=60)
    ...
    if clock.now() > until: ...
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


class Steady:
    """Aware UTC times that no setting of the clock changes, as long as the process lives."""

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
