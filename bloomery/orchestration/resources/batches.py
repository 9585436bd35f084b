"""How many members of a group are changed at a time, and how far it grows meanwhile.

list(batches.batches(target=3, current=3, most=1, floor=3))
# [Batch(4, 1), Batch(4, 1), Batch(4, 1), Batch(4, 1), Batch(3, 0)]: one more, while they change
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from bloomery import errors


class Batch(NamedTuple):
    """One update of the child stack: members after it, and how many take the new definition."""

    size: int
    changed: int


def batches(*, target: int, current: int, most: int, floor: int) -> Iterator[Batch]:
    """Yield the steps from ``current`` members to ``target`` new ones.

    At most ``most`` members (at least 1) change in a step; ``floor`` stay in service, for which the
    group may grow beyond its target; the surplus goes in the last step.
    """
    done = 0
    while not done >= current == target:
        changed = min(most, target - done)
        kept = min(floor, target, current)
        size = changed + max(min(current, target - changed), kept)
        yield Batch(size, changed)
        done += changed - max(size - max(current, target), 0)
        current = size


def time_of_each(count: int, *, pause_s: float, timeout_s: float) -> float:
    """How long one of ``count`` updates may take, in whole minutes, when all shall fit."""
    pauses_s = pause_s * max(count - 1, 0)
    if pauses_s >= timeout_s:
        raise errors.StackValidationFailed(
            reason=f"cannot change the group in {count} batches: pauses of {pauses_s:g} s do not "
            f"fit into the {timeout_s:g} s of the stack; raise max_batch_size or the stack's "
            "timeout, or lower pause_time"
        )
    return math.ceil((timeout_s - pauses_s) / 60) * 60.0
