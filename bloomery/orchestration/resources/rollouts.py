"""Roll-outs over machines that are alike: who changes next, and what a failure comes to.

Everything here is a function of what there is, so that a roll-out may stop after any batch and go
on in another process::

    pace = Pace.of(update_policy, count=20)
    next_batch(members, pace, count=20, is_canary=True)  # ["19"]
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from bloomery.orchestration.resources.composite import in_order


class Order(StrEnum):
    INDEX_DESC = "index_desc"
    INDEX_ASC = "index_asc"
    OLDEST = "oldest"
    UNHEALTHY_FIRST = "unhealthy_first"


class OnFailure(StrEnum):
    """What more failures than are allowed come to."""

    PAUSE = "pause"  # until a signal says how it goes on
    STOP = "stop"  # those that are left keep what they have
    CONTINUE = "continue"
    ROLLBACK_BATCH = "rollback_batch"  # the batch gets what it had, then it stops


class Signal(StrEnum):
    CONTINUE = "continue"
    PAUSE = "pause"  # after the present batch
    ABORT = "abort"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One machine of a group.

    ``is_current``: it has, or is being given, the definition that is rolled out.  ``is_ready``: it
    does its work.  ``since``: when it was deployed, as text that sorts.
    """

    name: str
    is_current: bool
    is_ready: bool
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast a roll-out may go; shares of the group are numbers of members here.

    ``create_batch_size``: how many new members are made at a time.
    """

    create_batch_size: int
    batch_size: int = 1
    max_unavailable: int = 1
    max_surge: int = 0
    pause_s: float = 0
    order: Order = Order.INDEX_DESC
    on_failure: OnFailure = OnFailure.PAUSE
    max_failures: int = 0
    settle_s: float = 0
    checks_health: bool = True
    canary: int = 0
    soak_s: float = 0
    requires_signal: bool = False
    delete_batch_size: int = 10

    @classmethod
    def of(cls, update_policy: Mapping[str, Any], count: int) -> Self:
        """Return the pace of an update of ``count`` members."""
        rolling = update_policy.get("rolling_update") or {}
        canary = update_policy.get("canary") or {}
        gate = rolling.get("health_gate") or {}
        return cls(
            create_batch_size=_all_or(update_policy.get("batch_create"), count),
            batch_size=int(rolling.get("batch_size") or 1),
            max_unavailable=share(rolling.get("max_unavailable", 1), count, up=False),
            max_surge=share(rolling.get("max_surge", 0), count, up=True),
            pause_s=float(rolling.get("pause_time") or 0),
            order=Order(rolling.get("order") or Order.INDEX_DESC),
            on_failure=OnFailure(rolling.get("failure_policy") or OnFailure.PAUSE),
            max_failures=int(rolling.get("max_failures") or 0),
            settle_s=float(gate.get("settle_seconds", SETTLE_S)),
            checks_health=bool(gate.get("check", True)),
            canary=int(canary.get("size") or 0),
            soak_s=float(canary.get("soak_seconds") or 0),
            requires_signal=bool(canary.get("require_signal")),
            delete_batch_size=int((update_policy.get("deletion") or {}).get("batch_size") or 10),
        )

    @classmethod
    def of_creation(cls, update_policy: Mapping[str, Any], count: int) -> Self:
        """Return the pace at which ``count`` members are made."""
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
    """Return how many of ``count`` a number or a percentage ("25%") is, rounded ``up`` or down."""
    text = str(value)
    if not text.endswith("%"):
        return int(text)
    part = count * int(text[:-1]) / 100
    return math.ceil(part) if up else math.floor(part)


def next_batch(members: Sequence[Member], pace: Pace, count: int, *, is_canary: bool) -> list[str]:
    """Return who takes the new definition next; nobody where too few are ready.

    So many go down that ``count`` less ``max_unavailable`` stay ready; who is not ready anyway
    takes nothing away.  At least one may go down where the group may not grow instead.  ``count``:
    the size of the group without those whose failure is accepted.
    """
    most_down = pace.max_unavailable or (0 if pace.max_surge else 1)
    spare = sum(member.is_ready for member in members) - (count - most_down)
    limit = pace.canary if is_canary and pace.canary else pace.batch_size
    batch: list[str] = []
    for member in sorted_by(pace.order, (m for m in members if not m.is_current)):
        if len(batch) == limit:
            break
        if member.is_ready and spare <= 0:
            continue
        spare -= member.is_ready
        batch.append(member.name)
    return batch


def sorted_by(order: Order, members: Any) -> list[Member]:
    """Return members in the order in which they are to change."""
    ascending = sorted(members, key=lambda member: in_order(member.name))
    descending = ascending[::-1]
    if order is Order.INDEX_ASC:
        return ascending
    if order is Order.OLDEST:
        return sorted(ascending, key=lambda member: member.since)
    if order is Order.UNHEALTHY_FIRST:
        return sorted(descending, key=lambda member: member.is_ready)
    return descending


def surplus(present: Collection[str], names: Collection[str], most: int) -> list[str]:
    """Return who leaves next: those of ``present`` that ``names`` has not, the last ones first."""
    leaving = sorted(set(present).difference(names), key=in_order, reverse=True)
    return leaving[:most]
