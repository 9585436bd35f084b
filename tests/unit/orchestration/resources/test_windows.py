"""When the window of a roll-out is open."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bloomery import errors
from bloomery.orchestration.resources.windows import Window

NIGHT = {"days": ["sat"], "begin": "22:00", "end": "04:00", "time_zone": "Europe/Berlin"}
CRON = {"cron": "0 22 * * sat", "length": 21600, "time_zone": "Europe/Berlin"}
HOUR = 3600.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("document", "now", "wait_s"),
    [
        # Saturday 5 December 2026; Berlin is one hour ahead of UTC
        (NIGHT, "2026-12-05T20:59:00", 60),
        (NIGHT, "2026-12-05T21:00:00", 0),
        (NIGHT, "2026-12-05T21:00:00.5", 0),
        (NIGHT, "2026-12-06T02:59:59", 0),
        (NIGHT, "2026-12-06T03:00:00", 7 * 24 * HOUR - 6 * HOUR),
        (CRON, "2026-12-05T20:59:00", 60),
        (CRON, "2026-12-05T21:00:00", 0),
        (CRON, "2026-12-06T03:00:00", 7 * 24 * HOUR - 6 * HOUR),
        ({"days": ["sat", "sun"]}, "2026-12-06T12:00:00", 0),
        ({"days": ["sat", "sun"]}, "2026-12-07T00:00:00", 5 * 24 * HOUR),
        ({"begin": "22:00"}, "2026-12-07T21:00:00", HOUR),
        ({"begin": "22:00", "end": "22:00"}, "2026-12-07T21:00:00", 0),
        ({"end": "04:00"}, "2026-12-07T04:00:00", 20 * HOUR),
        # summer time begins on 29 March and ends on 25 October: the window ends at 4 by the clocks
        (NIGHT, "2027-03-28T01:59:00", 0),
        (NIGHT, "2027-03-28T02:00:00", 7 * 24 * HOUR - 6 * HOUR),
        (NIGHT, "2026-10-25T02:59:00", 0),
        (NIGHT, "2026-10-25T03:00:00", 7 * 24 * HOUR - 6 * HOUR),
        # longer than the time between two openings: always open
        ({"cron": "0 * * * *", "length": 7200}, "2026-12-07T04:30:00", 0),
        ({"cron": "0 0 29 2 *", "length": 60}, "2026-12-31T00:00:00", 425 * 24 * HOUR),
    ],
)  # fmt: skip
def test_a_window_opens_by_the_clocks_of_its_time_zone(document, now, wait_s) -> None:
    window = Window.of(document)
    assert window is not None
    assert window.wait_s(at(now)) == wait_s


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"cron": "0 0 30 2 *", "length": 60}, "it never opens"),
        ({"cron": "61 * * * *", "length": 60}, "it never opens"),
        ({"cron": "0 0 * * *"}, "cron needs a length"),
        ({"length": 60}, "length belongs to cron"),
        ({"cron": "0 0 * * *", "length": 60, "days": ["sat"]}, "give cron and length, or days"),
        ({"time_zone": "Europe/Berlin"}, "a time zone alone is no window"),
    ],
)
def test_a_window_that_cannot_be_is_refused(document, reason) -> None:
    with pytest.raises(errors.StackValidationFailed, match=reason):
        Window.of(document)


@pytest.mark.parametrize("document", [None, {}, {"time_zone": "UTC", "days": None}])
def test_without_a_window_nothing_waits(document) -> None:
    assert Window.of(document) is None


def test_a_window_is_written_in_its_time_zone() -> None:
    window = Window.of(NIGHT)
    assert window is not None
    assert str(window) == "sat 22:00-04:00 Europe/Berlin"
    assert window.local(at("2026-12-05T21:00:00")) == "Sat 2026-12-05 22:00 CET"
