"""Windows: the times at which the batches of a roll-out may begin.

    window = Window.of({"days": ["sat"], "begin": "22:00", "end": "04:00", "time_zone": "UTC"})
    window.wait_s(now)  # 0 while it is open; else the seconds until it opens
    str(window)         # sat 22:00-04:00 UTC

Times are seconds since the epoch.  A window lasts as long by the clocks of its time zone, so that
summer time does not move its end.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self

from bloomery import errors

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
CLOCK: Final = r"([01]\d|2[0-3]):[0-5]\d"
_DAY_S: Final = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """``cron``: when it opens, in ``zone``; ``length_s``: how long it stays open."""

    cron: str
    length_s: float
    zone: zoneinfo.ZoneInfo
    text: str

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, document: Mapping[str, Any] | None) -> Self | None:
        """Return the window of a policy that its schema has checked, None for no window.

        Raises StackValidationFailed for one that never opens, or is given in two ways.
        """
        given = {key: value for key, value in (document or {}).items() if value is not None}
        if not given.keys() - {"time_zone"}:
            if given.get("time_zone", "UTC") != "UTC":
                raise _refusal("a time zone alone is no window: give days, begin and end, or cron")
            return None
        name = str(given.get("time_zone") or "UTC")
        zone = zoneinfo.ZoneInfo(name)
        if cron := given.get("cron"):
            if given.keys() & {"days", "begin", "end"}:
                raise _refusal("give cron and length, or days, begin and end")
            if not given.get("length"):
                raise _refusal("cron needs a length, in seconds")
            length_s = float(given["length"])
            window = cls(cron=str(cron), length_s=length_s, zone=zone,
                         text=f"{cron} for {length_s:g} s, {name}")  # fmt: skip
        else:
            if "length" in given:
                raise _refusal("length belongs to cron: give end")
            days = list(dict.fromkeys(given.get("days") or DAYS))
            begin, end = str(given.get("begin") or "00:00"), str(given.get("end") or "00:00")
            hour, minute = begin.split(":")
            span_s = (_seconds(end) - _seconds(begin)) % _DAY_S or _DAY_S
            window = cls(cron=f"{int(minute)} {int(hour)} * * {','.join(days)}", length_s=span_s,
                         zone=zone, text=f"{','.join(days)} {begin}-{end} {name}")  # fmt: skip
        try:
            window.wait_s(datetime.now(UTC).timestamp())
        except ValueError as exc:  # of croniter, whose errors are such
            raise _refusal(f"it never opens: {exc}") from exc
        return window

    def wait_s(self, now: float) -> float:
        """Return 0 while the window is open, else the seconds until it opens."""
        from croniter import croniter

        local = datetime.fromtimestamp(now, self.zone)
        try:  # a beginning at this very second counts
            began = croniter(self.cron, local + timedelta(seconds=1)).get_prev(datetime)
        except ValueError:  # it opens for the first time
            began = None
        length = timedelta(seconds=self.length_s)
        if began is not None and began.timestamp() <= now < (began + length).timestamp():
            return 0
        opens: datetime = croniter(self.cron, local).get_next(datetime)
        return opens.timestamp() - now

    def local(self, at: float) -> str:
        """Return a moment in the time zone of the window, such as Sat 2026-12-05 22:00 CET."""
        return f"{datetime.fromtimestamp(at, self.zone):%a %Y-%m-%d %H:%M %Z}"


def _seconds(clock: str) -> int:
    hours, minutes = clock.split(":")
    return int(hours) * 3600 + int(minutes) * 60


def _refusal(reason: str) -> errors.StackValidationFailed:
    return errors.StackValidationFailed(reason=f"cannot use the window of rolling_update: {reason}")
