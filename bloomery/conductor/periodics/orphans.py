"""Flows that nobody walks: take them up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bloomery.conductor import recovery
from bloomery.conductor.runtime import ConductorRuntime


def make(runtime: ConductorRuntime) -> Callable[[], None]:
    return partial(run, runtime)


def run(runtime: ConductorRuntime) -> None:
    recovery.adopt_all(runtime)
