"""Allocations that nobody looks after: their conductor died, or a wake-up was lost."""

from __future__ import annotations

from collections.abc import Callable

from bloomery.conductor import allocator
from bloomery.conductor.runtime import ConductorRuntime


def make(runtime: ConductorRuntime) -> Callable[[], None]:
    def run() -> None:
        allocator.adopt(runtime)

    return run
