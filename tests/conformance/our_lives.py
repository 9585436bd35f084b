"""Lives of stacks led in a Bloomery of our own, over REST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

PATIENCE_S: Final = 4

Observations = list[dict[str, Any]]


def lead(lives: Sequence[Mapping[str, Any]], theirs: Sequence[Observations]) -> list[Observations]:
    """Lead each life; ``theirs`` says how many events a race has to wait for."""
    raise NotImplementedError
