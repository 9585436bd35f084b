"""Batches: which members of a group are made, changed and deleted together.

Everything here is a function of plain values, so that a group that acts and a plan that only
foresees give the same answer.  ``resize_steps`` changes a group to a number of members with one
definition; roll-outs over machines (``rollouts``) also look at which members are ready.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bloomery import errors
from bloomery.orchestration.resources.groups import Members, in_order


class Batch(NamedTuple):
    """One batch as foreseen.

    ``changed``: members that are made or take the new definition; ``deleted``: members that leave.
    ``wait_s``: at least so long until the next batch begins.
    """

    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    wait_s: float = 0
    is_canary: bool = False
    waits_for_signal: bool = False


class Resize(NamedTuple):
    """One update of the child stack: members after it, and how many take the new definition."""

    size: int
    changed: int


def resize_steps(*, target: int, current: int, most: int, floor: int = 0) -> Iterator[Resize]:
    """Yield the steps from ``current`` members to ``target`` new ones.

    At most ``most`` members (at least 1) change in a step; ``floor`` stay in service, for which the
    group may grow beyond its target; the surplus goes in the last step::

        list(resize_steps(target=3, current=3, most=1, floor=3))
        # [Resize(4, 1), Resize(4, 1), Resize(4, 1), Resize(4, 1), Resize(3, 0)]
    """
    done = 0
    while not done >= current == target:
        changed = min(most, target - done)
        kept = min(floor, target, current)
        size = changed + max(min(current, target - changed), kept)
        yield Resize(size, changed)
        done += changed - max(size - max(current, target), 0)
        current = size


def time_of_each(count: int, *, pause_s: float, timeout_s: float) -> float:
    """Return how long one of ``count`` batches may take, in whole minutes, when all shall fit."""
    pauses_s = pause_s * max(count - 1, 0)
    if pauses_s >= timeout_s:
        raise errors.StackValidationFailed(
            reason=f"cannot change the group in {count} batches: pauses of {pauses_s:g} s do not "
            f"fit into the {timeout_s:g} s of the stack; raise max_batch_size or the stack's "
            "timeout, or lower pause_time"
        )
    return math.ceil((timeout_s - pauses_s) / 60) * 60.0


def members_after(
    present: Mapping[str, Mapping[str, Any]],
    names_after: Sequence[str],
    outdated: Sequence[str],
    changed: int,
    define: Callable[[str], Mapping[str, Any]],
) -> Members:
    """Return the members after one batch: ``names_after``, of which ``changed`` are redefined."""
    missing = [name for name in names_after if name not in present]
    redefined = {*missing, *outdated[: max(changed - len(missing), 0)]}
    return {name: define(name) if name in redefined else present[name] for name in names_after}


def slices(names: Sequence[str], most: int) -> Iterator[tuple[str, ...]]:
    for begin in range(0, len(names), most):
        yield tuple(names[begin : begin + most])


def surplus(present: Collection[str], names: Collection[str], most: int) -> list[str]:
    """Return who leaves next: those of ``present`` that ``names`` has not, the last ones first."""
    leaving = sorted(set(present).difference(names), key=in_order, reverse=True)
    return leaving[:most]
