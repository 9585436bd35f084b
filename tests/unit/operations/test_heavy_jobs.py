"""Heavy jobs take turns, and do not take every thread of an API."""

from __future__ import annotations

import sys
import threading

import pytest

from bloomery import errors
from bloomery.operations.heavy_jobs import HeavyJobs
from tests.kit.waiting import wait_for


def test_switches_are_frequent_while_a_job_runs_and_usual_afterwards() -> None:
    usual_s = sys.getswitchinterval()
    with HeavyJobs().enter():
        assert sys.getswitchinterval() == pytest.approx(0.0005)
    assert sys.getswitchinterval() == usual_s


def test_one_runs_one_waits_and_the_next_is_sent_away() -> None:
    jobs, go_on, order = HeavyJobs(patient=1, hasty_s=0.01), threading.Event(), list[str]()

    def job(name: str, until: threading.Event | None = None) -> None:
        with jobs.enter():
            order.append(name)
            assert until is None or until.wait(10)

    first = threading.Thread(target=job, args=("first", go_on))
    second = threading.Thread(target=job, args=("second",))
    first.start()
    wait_for(lambda: order, "the first to begin")
    second.start()
    wait_for(lambda: jobs._turn.waiting, "the second to wait")
    with pytest.raises(errors.HeavyJobsBusy, match="cannot validate the template now: 2 others"):
        job("third")
    go_on.set()
    for thread in (first, second):
        thread.join(10)
    assert order == ["first", "second"]
    job("fourth")  # whoever was sent away left nothing behind


def test_a_job_that_fails_lets_the_next_begin() -> None:
    jobs = HeavyJobs()
    with pytest.raises(ZeroDivisionError), jobs.enter():
        _ = 1 / 0
    with jobs.enter():
        pass


def test_a_part_of_a_job_does_not_wait_for_the_job() -> None:
    jobs = HeavyJobs(patient_s=0, hasty_s=0)
    with jobs.enter(), jobs.enter():
        pass
    with jobs.enter():
        pass
