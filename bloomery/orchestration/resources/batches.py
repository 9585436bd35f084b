"""Batches: the members of a group that are created, updated and deleted together.

These are functions of plain values, so that a group and a plan compute the same batches.
``resize_steps`` is for groups whose members have one definition.  Roll-outs over machines
(``rollouts``) also consider which members are ready.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bloomery import errors
from bloomery.orchestration.resources.groups import Members, in_order
from bloomery.orchestration.resources.windows import Window


class Batch(NamedTuple):
    """A planned batch.

    ``changed``: members that are created or updated; ``deleted``: members that are deleted.
    ``wait_s``: the least time until the next batch begins, in seconds.  ``window``: the times at
    which the batch may begin, None for any time.
    """

    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    wait_s: float = 0
    is_canary: bool = False
    waits_for_signal: bool = False
    window: Window | None = None


class Resize(NamedTuple):
    """An update of the child stack: its number of members, and how many it redefines."""

    size: int
    changed: int


def resize_steps(*, target: int, current: int, most: int, floor: int = 0) -> Iterator[Resize]:
    """Yield the steps from ``current`` members to ``target`` new members.

    At most ``most`` members (at least 1) change in a step.  ``floor`` members stay in service: the
    group may grow beyond its target for them, and the last step deletes the surplus::

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
    """Return the timeout of each of ``count`` batches: seconds, in whole minutes.

    Raises StackValidationFailed where the pauses do not fit into the timeout of the stack.
    """
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
    """Return at most ``most`` members that are not in ``names``, the highest indices first."""
    leaving = sorted(set(present).difference(names), key=in_order, reverse=True)
    return leaving[:most]
