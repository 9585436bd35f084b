"""Flows that nobody walks: take them up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bloomery.conductor import recovery
from bloomery.conductor.house import House


def make(house: House) -> Callable[[], None]:
    return partial(run, house)


def run(house: House) -> None:
    recovery.adopt_all(house)
