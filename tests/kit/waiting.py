"""Wait for a condition, never for a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LEAST_S, MOST_S = 0.002, 0.05  # between two looks
_never = threading.Event()


def wait_for(
    condition: Callable[[], T], what: str, *, timeout_s: float = 30.0, every_s: float | None = None
) -> T:
    """Return what ``condition`` says once it is true; AssertionError when time is up.

    It is asked after each tenth of the time that was waited, so that waiting costs little, or
    after each ``every_s``.
    """
    began = time.monotonic()
    while not (said := condition()):
        if (waited_s := time.monotonic() - began) > timeout_s:
            raise AssertionError(f"waited {timeout_s:g} s for {what}; it says {said!r}")
        _never.wait(min(max(waited_s / 10, LEAST_S), MOST_S) if every_s is None else every_s)
    return said
