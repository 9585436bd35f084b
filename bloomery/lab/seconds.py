"""Durations: a number of seconds, or a distribution to draw from."""

from __future__ import annotations

import random
from typing import NamedTuple, TypeAlias


class Distribution(NamedTuple):
    """``uniform``: least and most; ``lognormal``: median and sigma."""

    kind: str
    first: float
    second: float


Seconds: TypeAlias = float | Distribution


def draw(seconds: Seconds, source: random.Random) -> float:
    """Return one value."""
    if not isinstance(seconds, Distribution):
        return seconds
    if seconds.kind == "uniform":
        return source.uniform(seconds.first, seconds.second)
    return seconds.first * source.lognormvariate(0, seconds.second)
