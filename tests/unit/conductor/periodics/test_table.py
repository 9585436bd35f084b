"""The register of periodics: what runs, how it stands, and that a bad job harms nobody."""

from __future__ import annotations

import dataclasses
import threading

import pytest

from bloomery.conductor.periodics import table
from bloomery.conductor.periodics.table import Periodic, Periodics
from bloomery.conf import Conf
from bloomery.conf.agent import Pxe
from bloomery.conf.conductor import Conductor
from bloomery.conf.drivers import SensorData
from bloomery.model.request import IN_LOG
from tests.kit.servers.stories import full_pool
from tests.kit.waiting import wait_for

SOON = 0.005


def job(work, name="job", every_s=SOON):
    return Periodic(
        name=name, every_s=lambda _: every_s, make=lambda _: work, why="the test wants it",
    )  # fmt: skip


@pytest.fixture
def start(site):
    started = []

    def begin(*jobs, runtime=site.runtime):
        periodics = Periodics(runtime, tuple(jobs))
        periodics.start()
        started.append(periodics)
        return periodics

    yield begin
    for periodics in started:
        periodics.stop()


def test_job_runs_again_and_again_and_its_standing_shows(start):
    periodics = start(job(lambda: None))
    standing = periodics.states["job"]
    wait_for(lambda: standing.runs > 2, "a third run")
    assert standing.last_started is not None
    assert standing.last_took_s >= 0
    assert standing.last_error is None


def test_each_run_is_logged_under_a_request_of_its_own(start):
    names = []
    start(job(lambda: names.append(IN_LOG.get().request_id)))
    wait_for(lambda: len(names) > 2, "a third run")
    assert len(set(names)) == len(names)


def test_failing_job_is_tried_again_and_ends_no_other(start):
    def broken():
        raise RuntimeError("out of luck")

    periodics = start(job(broken, "broken"), job(lambda: None, "sound"))
    wait_for(lambda: periodics.states["broken"].runs > 2, "a third failure")
    wait_for(lambda: periodics.states["sound"].runs > 2, "a third run")
    assert periodics.states["broken"].last_error == "RuntimeError: out of luck"
    assert periodics.states["sound"].last_error is None


def test_error_is_forgotten_when_the_next_run_is_well(start):
    said = iter([RuntimeError("once")])

    def flaky():
        if (exc := next(said, None)) is not None:
            raise exc

    standing = start(job(flaky)).states["job"]
    wait_for(lambda: standing.runs > 1, "a second run")
    assert standing.last_error is None


def test_job_is_never_run_beside_itself(start):
    inside, most = threading.Semaphore(1), []

    def work():
        most.append(inside.acquire(blocking=False))
        inside.release()

    standing = start(job(work)).states["job"]
    wait_for(lambda: standing.runs > 5, "some runs")
    assert all(most)


def test_zero_switches_a_job_off(start):
    periodics = start(job(lambda: None, "off", every_s=0), job(lambda: None, "on"))
    wait_for(lambda: periodics.states["on"].runs > 2, "a third run")
    assert periodics.states["off"].runs == 0


def test_nothing_runs_after_the_end(start):
    periodics = start(job(lambda: None))
    standing = periodics.states["job"]
    wait_for(lambda: standing.runs, "a run")
    periodics.stop()
    other = start(job(lambda: None, "other")).states["other"]
    runs = standing.runs
    wait_for(lambda: other.runs > 3, "time to pass")
    assert standing.runs <= runs + 1, "one that had begun may end"


def test_full_pool_delays_a_job_and_loses_it_not(start, site, monkeypatch):
    monkeypatch.setattr(table, "_NO_WORKER_RETRY_S", SOON)
    with full_pool(site):
        standing = start(job(lambda: None)).states["job"]
    wait_for(lambda: standing.runs, "a run")


def test_names_are_unique_and_periods_are_options_or_short():
    names = [periodic.name for periodic in table.TABLE]
    assert len(set(names)) == len(names)
    conf = Conf(
        sensor_data=SensorData(send_sensor_data=True), pxe=Pxe(boot_retry_timeout=60),
        conductor=Conductor(failed_flow_retries=1),
    )  # fmt: skip
    assert all(periodic.every_s(conf) > 0 for periodic in table.TABLE)


def test_sensors_are_read_on_request_only():
    [periodic] = [one for one in table.TABLE if one.name == "send_sensors"]
    assert periodic.every_s(Conf()) == 0


def test_boots_are_retried_on_request_only():
    [periodic] = [one for one in table.TABLE if one.name == "retry_boots"]
    assert periodic.every_s(Conf()) == 0


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("sync_power_state_interval", "sync_power"),
        ("power_failure_recovery_interval", "recover_power"),
        ("check_provision_state_interval", "time_out"),
        ("node_history_cleanup_interval", "trim_history"),
    ],
)
def test_option_that_is_zero_switches_its_job_off(option, name):
    ours = Conf(conductor=dataclasses.replace(Conductor(), **{option: 0}))
    [periodic] = [one for one in table.TABLE if one.name == name]
    assert periodic.every_s(ours) == 0
