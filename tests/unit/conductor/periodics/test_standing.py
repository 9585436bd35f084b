"""How the periodics stand, as /metrics tells it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery.conductor.periodics.table import Periodic, Periodics
from tests.kit.site import Site


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


def test_a_job_that_never_ran_has_no_age(site: Site) -> None:
    assert Periodics(site.runtime, JOBS).ages_s() == {}


def test_a_job_that_failed_is_told_from_one_that_did_not(site: Site) -> None:
    periodics = Periodics(site.runtime, JOBS)
    for one in JOBS:
        periodics._run(one, one.make(site.runtime))
    assert periodics.failing() == {("well",): 0.0, ("broken",): 1.0}
    assert all(age >= 0 for age in periodics.ages_s().values())
