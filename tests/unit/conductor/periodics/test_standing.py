"""How the periodics stand, as /metrics tells it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery import errors
from bloomery.conductor.periodics.table import Periodic, Periodics
from bloomery.conductor.timers import Timers
from tests.kit.servers.site import Site
from tests.kit.waiting import wait_for


def _breaks() -> None:
    raise ValueError("broken")


JOBS = tuple(
    Periodic(name=name, every_s=lambda _: 0.01, make=lambda _house, job=job: job, why="a test")
    for name, job in (("well", lambda: None), ("broken", _breaks))
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path / "site.sqlite")
    yield found
    found.close()


@pytest.mark.parametrize(
    "outage",
    [
        errors.DatabaseAway(server="db", reason="connection refused"),
        errors.ConductorUnreached(host="b", reason="the broker is away"),
    ],
)
def test_a_job_that_fails_for_an_outage_is_one_line_of_the_log(
    site: Site, caplog: pytest.LogCaptureFixture, outage: errors.Failure
) -> None:
    def away() -> None:
        raise outage from OSError("connection refused")

    job = Periodic(name="job", every_s=lambda _: 1, make=lambda _: away, why="a test")
    Periodics(site.runtime, (job,))._run(job, away)
    timers = Timers()
    timers.start()
    timers.after(0, away)
    wait_for(lambda: "timer call" in caplog.text, "the timer")
    timers.stop()
    lines = [record.getMessage() for record in caplog.records]
    assert [line for line in lines if "\n" in line] == []
    assert sum(str(outage) in line for line in lines) == 2


def test_a_job_that_never_ran_has_no_age(site: Site) -> None:
    assert Periodics(site.runtime, JOBS).ages_s() == {}


def test_a_job_that_failed_is_told_from_one_that_did_not(site: Site) -> None:
    periodics = Periodics(site.runtime, JOBS)
    for one in JOBS:
        periodics._run(one, one.make(site.runtime))
    assert periodics.failing() == {("well",): 0.0, ("broken",): 1.0}
    assert all(age >= 0 for age in periodics.ages_s().values())
