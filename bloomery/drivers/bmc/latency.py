"""How long a BMC takes to answer: least, median and most of the last requests."""

from __future__ import annotations

import statistics
import threading
from array import array
from dataclasses import dataclass
from typing import Final

_KEPT: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    count: int
    least_s: float
    median_s: float
    most_s: float


class Latency:
    """A ring of the last requests: 256 bytes for each BMC."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._last = array("f")
        self._count = 0

    def add(self, seconds: float) -> None:
        with self._mutex:
            if len(self._last) < _KEPT:
                self._last.append(seconds)
            else:
                self._last[self._count % _KEPT] = seconds
            self._count += 1

    def summary(self) -> Summary | None:
        """Return count of all and spread of the last requests; None before the first."""
        with self._mutex:
            last, count = list(self._last), self._count
        if not last:
            return None
        return Summary(
            count=count, least_s=min(last), median_s=statistics.median(last), most_s=max(last),
        )  # fmt: skip
