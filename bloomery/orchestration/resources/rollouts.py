"""Roll-outs over identical machines: the next batch, and the failure policy.

Each function takes the current members, so that another process can continue a roll-out after any
batch::

    pace = Pace.of(update_policy, count=20)
    next_batch(members, pace, count=20, is_canary=True)  # ["19"]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from bloomery import errors
from bloomery.orchestration.resources import batches
from bloomery.orchestration.resources.groups import in_order
from bloomery.orchestration.resources.windows import Window


class RolloutOrder(StrEnum):
    INDEX_DESC = "index_desc"
    INDEX_ASC = "index_asc"
    OLDEST = "oldest"
    UNHEALTHY_FIRST = "unhealthy_first"


class OnFailure(StrEnum):
    """The policy after more failures than ``max_failures``."""

    PAUSE = "pause"  # until a signal
    STOP = "stop"  # the remaining members keep their definition
    CONTINUE = "continue"
    ROLLBACK_BATCH = "rollback_batch"  # the batch gets the old definition, then STOP


class Signal(StrEnum):
    CONTINUE = "continue"
    PAUSE = "pause"  # after the current batch
    ABORT = "abort"
    ROLLBACK = "rollback"


ENDS_OF_PAUSE: Final = tuple(word for word in Signal if word is not Signal.PAUSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a group.

    ``is_current``: the member has the new definition, or is being updated to it.  ``is_ready``: the
    member is in service.  ``since``: the time of its deployment, as text that sorts.
    """

    name: str
    is_current: bool
    is_ready: bool
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The update policy of a group, with percentages converted to numbers of members.

    ``create_batch_size``: the number of new members in a batch.
    """

    create_batch_size: int
    batch_size: int = 1
    max_unavailable: int = 1
    max_surge: int = 0
    pause_s: float = 0
    order: RolloutOrder = RolloutOrder.INDEX_DESC
    on_failure: OnFailure = OnFailure.PAUSE
    max_failures: int = 0
    settle_s: float = 0
    checks_health: bool = True
    canary: int = 0
    soak_s: float = 0
    requires_signal: bool = False
    delete_batch_size: int = 10
    window: Window | None = None

    @classmethod
    def of(cls, update_policy: Mapping[str, Any], count: int) -> Self:
        rolling = update_policy.get("rolling_update") or {}
        canary = update_policy.get("canary") or {}
        gate = rolling.get("health_gate") or {}
        return cls(
            create_batch_size=_all_or(update_policy.get("batch_create"), count),
            batch_size=int(rolling.get("batch_size") or 1),
            max_unavailable=share(rolling.get("max_unavailable", 1), count, up=False),
            max_surge=share(rolling.get("max_surge", 0), count, up=True),
            pause_s=float(rolling.get("pause_time") or 0),
            order=RolloutOrder(rolling.get("order") or RolloutOrder.INDEX_DESC),
            on_failure=OnFailure(rolling.get("failure_policy") or OnFailure.PAUSE),
            max_failures=int(rolling.get("max_failures") or 0),
            settle_s=float(gate.get("settle_seconds", SETTLE_S)),
            checks_health=bool(gate.get("check", True)),
            canary=int(canary.get("size") or 0),
            soak_s=float(canary.get("soak_seconds") or 0),
            requires_signal=bool(canary.get("require_signal")),
            delete_batch_size=int((update_policy.get("deletion") or {}).get("batch_size") or 10),
            window=Window.of(rolling.get("window")),
        )

    @classmethod
    def of_creation(cls, update_policy: Mapping[str, Any], count: int) -> Self:
        batches = update_policy.get("batch_create") or {}
        return cls(
            create_batch_size=_all_or(batches, count),
            pause_s=float(batches.get("pause_time") or 0),
            on_failure=OnFailure.STOP,
            max_failures=int(batches.get("max_failures") or 0),
        )


SETTLE_S: Final = 60


def _all_or(batches: Mapping[str, Any] | None, count: int) -> int:
    return int((batches or {}).get("max_batch_size") or max(count, 1))


def share(value: Any, count: int, *, up: bool) -> int:
    """Return a number, or a percentage ("25%") of ``count``, rounded ``up`` or down.

    Raises StackValidationFailed for any other text, such as the value of a reference.
    """
    text = str(value)
    try:
        number = int(text.removesuffix("%"))
    except ValueError as exc:
        raise errors.StackValidationFailed(
            reason=f"cannot take {text!r} for a number of members: give one, or a percentage"
        ) from exc
    if not text.endswith("%"):
        return number
    part = count * number / 100
    return math.ceil(part) if up else math.floor(part)


def next_batch(members: Sequence[Member], pace: Pace, count: int, *, is_canary: bool) -> list[str]:
    """Return the next members to update; none where too few are ready.

    ``count`` less ``max_unavailable`` members stay ready.  A member that is not ready may always
    change.  If ``max_unavailable`` and ``max_surge`` are both 0, one member may change.  ``count``:
    the size of the group without the members whose failure is accepted.
    """
    outdated = sorted_by(pace.order, (member for member in members if not member.is_current))
    ready = sum(member.is_ready for member in members)
    return [member.name for member in _batch(outdated, ready, pace, count, is_canary=is_canary)]


def _batch(
    outdated: Sequence[Member], ready: int, pace: Pace, count: int, *, is_canary: bool
) -> list[Member]:
    most_down = pace.max_unavailable or (0 if pace.max_surge else 1)
    spare = ready - (count - most_down)
    limit = pace.canary if is_canary and pace.canary else pace.batch_size
    batch: list[Member] = []
    for member in outdated:
        if len(batch) == limit:
            break
        if member.is_ready and spare <= 0:
            continue
        spare -= member.is_ready
        batch.append(member)
    return batch


def sorted_by(order: RolloutOrder, members: Any) -> list[Member]:
    ascending = sorted(members, key=lambda member: in_order(member.name))
    descending = ascending[::-1]
    if order is RolloutOrder.INDEX_ASC:
        return ascending
    if order is RolloutOrder.OLDEST:
        return sorted(ascending, key=lambda member: member.since)
    if order is RolloutOrder.UNHEALTHY_FIRST:
        return sorted(descending, key=lambda member: member.is_ready)
    return descending


def rollout_steps(
    members: Sequence[Member],
    pace: Pace,
    *,
    names: Sequence[str],
    surge_names: Sequence[str] = (),
    leaving: Collection[str] = (),
) -> Iterator[batches.Batch]:
    """Yield the batches of a roll-out without failures and signals.

    ``members``  current members that stay; ``leaving``: current members that are deleted
    ``names``    of the final members; ``surge_names``: during the roll-out, if a member changes

    The batches end where too few members are ready for the next batch: the roll-out pauses there.
    """
    present = {member.name for member in members}
    outdated = sorted_by(pace.order, (member for member in members if not member.is_current))
    new = [name for name in (surge_names if outdated else names) or names if name not in present]
    window = pace.window if outdated else None  # members that are only added wait for none
    for created in batches.slices(new, pace.create_batch_size):
        pause_s = pace.pause_s if outdated or created[-1] != new[-1] else 0
        wait_s = pause_s + (pace.settle_s if outdated else 0)
        yield batches.Batch(created, wait_s=wait_s, window=window)
    ready, is_canary = sum(member.is_ready for member in members) + len(new), bool(pace.canary)
    while changing := _batch(outdated, ready, pace, len(names), is_canary=is_canary):
        ready += sum(not member.is_ready for member in changing)
        changed = {member.name for member in changing}
        outdated = [member for member in outdated if member.name not in changed]
        wait_s = pace.settle_s + (pace.pause_s if outdated else 0)
        yield batches.Batch(
            changed=tuple(member.name for member in changing),
            wait_s=wait_s + (pace.soak_s if is_canary else 0),
            is_canary=is_canary,
            waits_for_signal=is_canary and pace.requires_signal,
            window=pace.window,
        )
        is_canary = False
    if not outdated:
        gone = batches.surplus({*present, *new, *leaving}, names, sys.maxsize)
        for deleted in batches.slices(gone, pace.delete_batch_size):
            yield batches.Batch(deleted=deleted, window=pace.window)
