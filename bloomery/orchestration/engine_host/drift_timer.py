"""The times of the drift watch: page by page, spread over ``[engine]drift_interval``.

A round goes over all resources that are machines, in the order of their rows.  Each engine reads
every page, and compares the trees that it owns.  The live engine with the highest digest of engine
ID and tree ID owns a tree.  If engines disagree on which are alive, two may compare a tree; each
difference is still reported once, because reported differences are rows.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from bloomery.db import stack_drift
from bloomery.db.engine import Database

PAGE: Final = 100


class Watch(Protocol):
    """The part of ``drift_watch.DriftWatch`` used here; the class is imported when needed."""

    def look(self, after_id: int, size: int, owns: Callable[[str], bool]) -> int | None:
        """Compare the page after a row; return the id of its last row, None: no rows are left."""


class DriftTimer:
    """``step`` is a timer of the engine's workers; ``make_watch`` is called if machines exist."""

    def __init__(
        self,
        db: Database,
        interval_s: float,
        *,
        make_watch: Callable[[], Watch],
        live_ids: Callable[[], Sequence[str]],
        random: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db, self._interval_s, self._make_watch = db, interval_s, make_watch
        self._live_ids, self._random, self._clock = live_ids, random, clock
        self._after_id: int | None = None
        self._pause_s = 0.0
        self._has_begun = False

    @property
    def is_between_rounds(self) -> bool:
        """Return whether no round is under way."""
        return self._after_id is None

    def step(self, woken: bool) -> float:
        """Compare one page, or begin with a random delay; return when the next step is due."""
        if self._has_begun or woken:
            self._pause_s = self.look()
        else:
            self._pause_s = self._interval_s * self._random()
        self._has_begun = True
        return self._clock() + self._pause_s

    def look(self) -> float:
        if self._after_id is None:
            with self._db.read() as conn:
                pages = math.ceil(stack_drift.count(conn) / PAGE)
            if not pages:
                return self._interval_s
            self._after_id, self._pause_s = 0, self._interval_s / pages
        self._after_id = self._make_watch().look(self._after_id, PAGE, self._ownership())
        return self._pause_s

    def _ownership(self) -> Callable[[str], bool]:
        """Return a function that says whether this engine owns a tree."""
        ours, *others = self._live_ids()
        if not others:
            return lambda root: True
        return lambda root: all(_weight(ours, root) > _weight(other, root) for other in others)


def _weight(engine_id: str, root: str) -> bytes:
    return hashlib.blake2b(f"{engine_id}{root}".encode(), digest_size=8).digest()
