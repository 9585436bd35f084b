"""The clock of a BMC by Redfish: read, and set.

    bmc_clock.difference_s(bmc_clock.time_of(manager.json), now)    # 3600.0: an hour ahead

Source: DMTF DSP0268, Manager, properties DateTime and DateTimeLocalOffset.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, NamedTuple

from bloomery import clock, errors
from bloomery.drivers import base
from bloomery.drivers.redfish import reading
from bloomery.drivers.redfish.access import Access
from bloomery.drivers.redfish.bmc_write import MEMORY, BmcWrite
from bloomery.outcome import Outcome

ALLOWED_S: Final = 1.0  # as in Ironic
_OFFSET: Final = re.compile(r"[+-]\d\d:\d\d")
_RESOLUTION_S: Final = 0.5  # half of the second that most BMCs show
_SHOWN_WITHIN_S: Final = 15.0


class Reading(NamedTuple):
    """How far a BMC's clock is ahead, and what resolution and travel of the answer may hide."""

    difference_s: float
    uncertainty_s: float

    @property
    def is_off(self) -> bool:
        return abs(self.difference_s) - self.uncertainty_s > ALLOWED_S


def parse(text: Any, zone: tzinfo | None = None) -> datetime | None:
    """Return a time of a document, in ``zone`` or UTC if it names none; None for another text."""
    try:
        at = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=zone or UTC)


def time_of(document: dict[str, Any]) -> datetime | None:
    """Return the clock that a manager or a log service shows, or None."""
    return parse(document.get("DateTime"), _zone(document.get("DateTimeLocalOffset")))


def is_offset(text: Any) -> bool:
    return isinstance(text, str) and _OFFSET.fullmatch(text) is not None and _zone(text) is not None


def _zone(offset: Any) -> tzinfo | None:
    """Return the zone of an offset such as -06:00, or None."""
    at = parse(f"2000-01-01T00:00:00{offset}") if isinstance(offset, str) and offset else None
    return None if at is None else at.tzinfo


def difference_s(shown: datetime, now: datetime) -> float:
    """Return how far a clock is ahead; one that shows whole seconds is half a second further."""
    half_s = 0.0 if shown.microsecond else _RESOLUTION_S
    return round((shown - now).total_seconds() + half_s, 1)


def read(system: Any) -> tuple[Any, Reading | None]:
    """Return the manager of a sushy system, and its clock, None where it shows none.

    Raises InvalidParameterValue for a system without a manager.
    """
    began_at = time.monotonic()
    manager = next(reading.managers(system), None)
    if manager is None:
        raise errors.InvalidParameterValue(reason="the BMC shows no manager, which has the clock")
    took_s = time.monotonic() - began_at
    shown = time_of(manager.json)
    if shown is None:
        return manager, None
    middle = datetime.now(UTC) - timedelta(seconds=took_s / 2)
    return manager, Reading(difference_s(shown, middle), took_s / 2 + _RESOLUTION_S)


def set_time(
    access: Access, task: base.DriverTask, target: datetime | None, offset: str | None = None
) -> Outcome:
    """Set the clock to ``target``, None: to this host's; and its ``offset`` from UTC, if named.

    The time is sent in whole seconds and in the BMC's own zone: many take no other.  A ``target``
    goes on from the first attempt.
    """

    def due(memory: dict[str, Any]) -> datetime:
        """Return the time that the BMC shall show now."""
        if target is None:
            return datetime.now(UTC)
        begun_at = memory.setdefault("begun_at", clock.now().isoformat())
        return target + (clock.now() - datetime.fromisoformat(begun_at))

    def send(system: Any) -> bool | None:
        memory = task.node.driver_internal_info[MEMORY]
        manager, _ = read(system)
        shown = time_of(manager.json)
        zone = _zone(offset) or (None if shown is None else shown.tzinfo) or UTC
        at = due(memory) + timedelta(seconds=_RESOLUTION_S)
        text = at.astimezone(zone).replace(microsecond=0).isoformat()
        document = {"DateTime": text} | ({"DateTimeLocalOffset": offset} if offset else {})
        began_at = time.monotonic()
        manager._conn.patch(manager.path, data=document, etag=manager._get_etag())  # noqa: SLF001
        memory["took_s"] = round(time.monotonic() - began_at, 3)
        return None

    def is_so(system: Any) -> bool:
        memory = task.node.driver_internal_info[MEMORY]
        manager, shown = read(system)
        access.bmc(task).note_clock(None if shown is None else shown.difference_s)
        if shown is None or (offset and manager.json.get("DateTimeLocalOffset") != offset):
            return False
        ahead_s = (due(memory) - datetime.now(UTC)).total_seconds()
        uncertainty_s = shown.uncertainty_s + memory.get("took_s", 0.0)
        return not Reading(shown.difference_s - ahead_s, uncertainty_s).is_off

    return BmcWrite(
        access=access, task=task, change=send, is_so=is_so, limit_s=_SHOWN_WITHIN_S,
        what=f"set its clock{f' to {target.isoformat()}' if target else ''}",
    ).apply()  # fmt: skip
