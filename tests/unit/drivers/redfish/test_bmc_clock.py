"""The clock of a BMC: set in its own zone, and read back."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest

from bloomery import errors
from bloomery.drivers.redfish import bmc_clock
from bloomery.drivers.redfish.management import RedfishManagement
from bloomery.lab.rack import Rack
from bloomery.outcome import DONE
from tests.kit.machines.driver_task import FakeTask

HOUR_S = 3600


@pytest.fixture
def management(conf):
    return RedfishManagement(conf)


@pytest.fixture
def verifying(conf):
    redfish = dataclasses.replace(conf.redfish, enable_verify_bmc_clock=True)
    return RedfishManagement(dataclasses.replace(conf, redfish=redfish))


@pytest.mark.parametrize("offset", ["+00:00", "-06:00", "+05:30"])
def test_the_clock_is_set_in_the_zone_of_the_bmc(management, task, machine, offset) -> None:
    machine.system.clock_s, machine.system.utc_offset = -HOUR_S, offset
    assert management.set_bmc_clock(task) == DONE
    assert machine.system.clock_s == pytest.approx(0, abs=2)
    assert machine.system.utc_offset == offset
    assert task.node.driver_internal_info == {}


def test_why_forgets_a_wrong_clock_once_it_is_set(management, task, machine) -> None:
    machine.system.clock_s = -HOUR_S
    management.read_bmc_log(task)
    bmc = management.access.bmc(task)
    assert bmc.clock_difference_s == pytest.approx(-HOUR_S, abs=3)
    management.set_bmc_clock(task)
    assert bmc.clock_difference_s == pytest.approx(0, abs=3)


def test_a_time_and_a_zone_are_set(management, task, machine) -> None:
    target = datetime(2030, 1, 1, tzinfo=UTC)
    ahead_s = (target - datetime.now(UTC)).total_seconds()
    assert management.set_bmc_clock(task, target.isoformat(), "+02:00") == DONE
    assert machine.system.clock_s == pytest.approx(ahead_s, abs=2)
    assert machine.system.utc_offset == "+02:00"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tomorrow",), "target_datetime takes a time in ISO 8601"),
        ((5,), "target_datetime takes a time in ISO 8601"),
        ((None, "CET"), "datetime_local_offset takes an offset"),
        ((None, "+99:00"), "datetime_local_offset takes an offset"),
    ],
)
def test_odd_arguments_are_refused_before_a_request(
    management, task, machine, arguments, message
) -> None:
    with pytest.raises(errors.InvalidParameterValue, match=message):
        management.set_bmc_clock(task, *arguments)
    assert machine.bmc.requests == 0


@pytest.mark.parametrize("clock_s", [0, -HOUR_S, 30])
def test_verify_sets_a_clock_that_differs_and_no_other(verifying, task, machine, clock_s) -> None:
    machine.system.clock_s = clock_s
    assert verifying.verify_bmc_clock(task) in (None, DONE)
    assert machine.system.clock_s == pytest.approx(0, abs=2)
    assert [each for each in machine.system.happened if "clock" in each] != [] or not clock_s


def test_verify_asks_nothing_unless_it_is_switched_on(management, task, machine) -> None:
    machine.system.clock_s = HOUR_S
    assert management.verify_bmc_clock(task) is None
    assert (machine.bmc.requests, machine.system.clock_s) == (0, HOUR_S)


def test_a_bmc_that_takes_no_time_says_so(conf) -> None:
    management = RedfishManagement(conf)
    refusal = "DateTime is a read only property"
    with Rack(1, sets_clock=False) as rack, pytest.raises(errors.BmcRefused, match=refusal):
        management.set_bmc_clock(FakeTask(rack.machines[0].driver_info))


def test_a_clock_that_does_not_move_is_no_success(management, task, machine) -> None:
    machine.system.clock_s = -HOUR_S
    machine.bmc.faults.add(kind="later", path="/Managers/", method="PATCH", seconds=60)
    management.set_bmc_clock(task)
    memory = task.node.driver_internal_info["redfish_write"]
    memory["until"] = "2026-01-01T00:00:00+00:00"
    memory.pop("is_fresh", None)
    task.turn = 1
    with pytest.raises(
        errors.StepFailure, match="accepted the order to set its clock, and does not"
    ):
        management.set_bmc_clock(task)


@pytest.mark.parametrize(
    ("shown", "difference_s", "is_off"),
    [
        ("2026-11-29T12:00:00+00:00", 0.5, False),
        ("2026-11-29T11:59:59+00:00", -0.5, False),
        ("2026-11-29T12:00:02+00:00", 2.5, True),
        ("2026-11-29T11:59:57.250+00:00", -2.8, True),
        ("2026-11-29T06:00:00-06:00", 0.5, False),
    ],
)
def test_whole_seconds_are_read_as_their_middle(shown, difference_s, is_off) -> None:
    now = datetime(2026, 11, 29, 12, tzinfo=UTC)
    assert bmc_clock.difference_s(bmc_clock.parse(shown), now) == difference_s
    assert bmc_clock.Reading(difference_s, 0.5).is_off == is_off
