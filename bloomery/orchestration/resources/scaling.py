"""Groups that signals scale, and the arithmetic of their capacity.

The oldest member is deleted first, and updated first.  Member names derive from the resource's UUID
and a serial number that is never used again.  ``data`` holds the names in the order of their age.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.resources import base, batches, groups, rolling
from bloomery.orchestration.resources.states import Action, Status

AGES: Final = "ages"  # names of the members, the oldest first
SERIAL: Final = "serial"  # the number of members so far
COOLS_UNTIL: Final = "cools_until"


class Adjustment(enum.StrEnum):
    """The meaning of ``scaling_adjustment``."""

    CHANGE = "change_in_capacity"
    EXACT = "exact_capacity"
    PERCENT = "percent_change_in_capacity"


def capacity_after(
    current: int,
    amount: float,
    adjustment: Adjustment,
    *,
    least: int,
    most: int,
    min_step: int | None = None,
) -> int:
    """Return the number of members after an adjustment, within the bounds of the group.

    Percentages are rounded towards 0, but to at least one member::

        capacity_after(3, 50, Adjustment.PERCENT, least=0, most=9)  # 4
    """
    if adjustment is Adjustment.EXACT:
        capacity = int(amount)
    elif adjustment is Adjustment.CHANGE:
        capacity = current + int(amount)
    else:
        change = current * amount / 100
        size = max(math.floor(abs(change)), 1, min_step or 0) if change else 0
        capacity = current + int(math.copysign(size, change))
    return max(least, min(most, capacity))


def after_batch(
    present: Mapping[str, Mapping[str, Any]],
    batch: batches.Resize,
    definition: Mapping[str, Any],
    new_names: Iterator[str],
) -> groups.Members:
    """Return the members after a batch; these and ``present`` are sorted, the oldest first.

    The surplus is deleted: members with an old definition first, the oldest of them first.
    """
    outdated = [name for name, body in present.items() if body != definition]
    leaving = [*outdated, *(name for name in present if name not in outdated)]
    gone = set(leaving[: max(len(present) - batch.size, 0)])
    names = [name for name in present if name not in gone]
    names += [next(new_names) for _ in range(batch.size - len(present))]
    outdated = [name for name in outdated if name not in gone]
    return batches.members_after(present, names, outdated, batch.changed, lambda _: definition)


class ScaledGroup(rolling.Rolling):
    """The base class of groups that a scaling policy can resize."""

    def member(self) -> Mapping[str, Any]:
        raise NotImplementedError

    def bounds(self) -> tuple[int, int]:
        raise NotImplementedError

    def first_capacity(self) -> int:
        raise NotImplementedError

    def new_capacity(self, prop_diff: Mapping[str, Any]) -> int:
        raise NotImplementedError

    def pace(self) -> Mapping[str, Any]:
        """Return ``min_in_service``, ``max_batch_size`` and ``pause_time`` of an update."""
        raise NotImplementedError

    def child_document(self) -> Mapping[str, Any]:
        capacity = self.capacity() if self.ages() else self.first_capacity()
        present = dict.fromkeys(self.ages(), self.member())
        return self._document(present, batches.Resize(capacity, 0))

    def document_after(self, batch: batches.Resize) -> Mapping[str, Any]:
        document = self._document(self.aged(), batch)
        self._remember(document)
        return document

    def _document(self, present: groups.Members, batch: batches.Resize) -> Mapping[str, Any]:
        return groups.document(after_batch(present, batch, self.member(), self._new_names()))

    def _new_names(self) -> Iterator[str]:
        number = int(self.record.data.get(SERIAL, 0))
        while True:
            yield base.short_id(self.derived_id(f"member {number}"))
            number += 1

    def _remember(self, document: Mapping[str, Any]) -> None:
        names, before = list(groups.members_of(document)), set(self.ages())
        added = sum(name not in before for name in names)
        self.record.data[SERIAL] = int(self.record.data.get(SERIAL, 0)) + added
        self.record.data[AGES] = names

    def ages(self) -> list[str]:
        return list(self.record.data.get(AGES, ()))

    def aged(self) -> groups.Members:
        """Return the members of the child, the oldest first."""
        present = self.current_members()
        return {name: present[name] for name in self.ages() if name in present}

    def capacity(self) -> int:
        return len(self.ages())

    def handle_create(self) -> Any:
        document = self.child_document()
        self.begin_child(self.blueprint(document))
        self._remember(document)
        return None

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        self.forget_batches()
        capacity, pace, present = self.new_capacity(prop_diff), self.pace(), self.aged()
        steps = list(
            batches.resize_steps(
                target=capacity,
                current=len(present),
                most=pace["max_batch_size"],
                floor=pace["min_in_service"],
            )
        )
        if not steps or all(body == self.member() for body in present.values()):
            document = self.document_after(batches.Resize(capacity, 0))
            return self.change_child(self.blueprint(document))
        self.plan_batches(steps, pace["pause_time"])
        self.next_batch()
        return None

    def adjust(
        self,
        amount: float,
        adjustment: Adjustment,
        *,
        min_step: int | None = None,
        cooldown_s: float = 0,
    ) -> tuple[int, int]:
        """Begin to change the number of members; return the old and the new number.

        Raises NoActionRequired if the group is busy, suspended, cools down or has the number.
        """
        child, now = self.child(), self.context.utc()
        if child is None or child.status is Status.IN_PROGRESS or child.action is Action.SUSPEND:
            raise base.NoActionRequired
        if self.record.status is Status.IN_PROGRESS or now < self.record.data.get(COOLS_UNTIL, 0):
            raise base.NoActionRequired
        least, most = self.bounds()
        if self.context.limits.resources >= 0:
            most = min(most, self.context.limits.resources)
        current = len(self.aged())
        capacity = capacity_after(
            current, amount, adjustment, least=least, most=most, min_step=min_step
        )
        if capacity == current:
            raise base.NoActionRequired
        blueprint = self.blueprint(self.document_after(batches.Resize(capacity, 0)))
        self.children().update(child.id, blueprint)
        self.record.data[COOLS_UNTIL] = now + cooldown_s
        return current, capacity

    def get_reference_id(self) -> Any:
        exists = self.record.physical_id is not None
        return self.physical_resource_name() if exists else self.record.name

    def members(self) -> dict[str, Any]:
        members = super().members()
        ages = [name for name in self.ages() if name in members]
        return {name: members[name] for name in [*ages, *(members.keys() - set(ages))]}


def check_bounds(least: int, most: int, first: int | None) -> None:
    if least > most:
        raise errors.StackValidationFailed(
            reason=f"cannot have at least {least} and at most {most} members: min_size is greater"
            " than max_size"
        )
    if first is not None and not least <= first <= most:
        raise errors.StackValidationFailed(
            reason=f"cannot begin with {first} members: desired_capacity must be between min_size"
            f" ({least}) and max_size ({most})"
        )
