"""Exhaustive tests have all their cases, or a share of them that the seed chooses.

    @pytest.mark.sampled                       # a table: its rows thin out when they are collected
    @pytest.mark.parametrize("seed", range(200))

    for commits in some(range(most)):          # a loop within a test

    @settings(max_examples=count(400))         # examples that hypothesis draws

BLOOMERY_SAMPLE=8 keeps each eighth case, and at least one of each test; without it all are kept.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Final, TypeVar

import pytest

EACH: Final = int(os.environ.get("BLOOMERY_SAMPLE", "1"))
SEED: Final = int(os.environ.get("BLOOMERY_SEED", "1"))

Case = TypeVar("Case")


def some(cases: Sequence[Case], each: int = EACH, seed: int = SEED) -> list[Case]:
    """Return each eighth case in the order given; the next seed has others.

    The cases are shuffled first: a table is often a product, whose rows come at even distances.
    """
    step = max(1, min(each, len(cases)))
    shuffled = random.Random(len(cases)).sample(range(len(cases)), len(cases))
    return [cases[number] for number in sorted(shuffled[seed % step :: step])]


def count(cases: int) -> int:
    return max(1, cases // EACH)


@pytest.hookimpl(trylast=True)  # those that -m and -k leave
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is left out of the tables marked as sampled."""
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and hasattr(item, "callspec"):
            tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = {item for rows in tables.values() for item in set(rows).difference(some(rows))}
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=list(left_out))
