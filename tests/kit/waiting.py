"""Wait for a condition, never for a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_never = threading.Event()


def wait_for(
    condition: Callable[[], T], what: str, *, timeout_s: float = 30.0, every_s: float = 0.002
) -> T:
    """Return what ``condition`` says as soon as it is true; AssertionError when time is up."""
    give_up_at = time.monotonic() + timeout_s
    while not (said := condition()):
        if time.monotonic() > give_up_at:
            raise AssertionError(f"waited {timeout_s:g} s for {what}; it says {said!r}")
        _never.wait(every_s)
    return said
