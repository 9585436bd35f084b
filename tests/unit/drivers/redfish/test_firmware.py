"""An updated component counts once its BMC has shown it several times in a row."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from types import SimpleNamespace

import pytest

from bloomery import clock, errors
from bloomery.drivers.redfish import firmware
from bloomery.outcome import Again
from tests.kit.machines.driver_task import FakeTask

SILENT = errors.BmcUnreachable(node="n", address="bmc", reason="restarts")
PAST, FUTURE = "2026-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00"


def validate(conf, answers, *, required=3, validates_by=FUTURE):
    """Take the stage's turns with these answers of the BMC; return how often it waited."""
    script = iter(answers)

    def read(_task, _look):
        answer = next(script)
        if isinstance(answer, Exception):
            raise answer
        return answer

    redfish = dataclasses.replace(conf.redfish, firmware_update_required_successes=required)
    interface = SimpleNamespace(
        access=SimpleNamespace(read=read), conf=SimpleNamespace(redfish=redfish)
    )
    update = firmware._Update(interface, FakeTask({}), [{"component": "bios", "url": "http://f/2"}])
    update._memory["now"] = {
        "before": "2.0", "answers": 0, "validates_by": validates_by, "was_off": False,
        "stage": "validate",
    }  # fmt: skip
    waits = 0
    while isinstance(update._validate(), Again):
        waits += 1
    assert (update._now["stage"], list(script)) == ("wait", [])
    return waits


@pytest.mark.parametrize(
    ("answers", "waits", "more"),
    [
        pytest.param(["2.1"] * 3, 2, {}, id="stable"),
        pytest.param(["2.1", SILENT, "2.1", "2.1", "2.1"], 4, {}, id="silent-once"),
        pytest.param(["2.1", "2.1", None, "2.1", "2.1", "2.1"], 5, {}, id="part-is-missing-once"),
        pytest.param([], 0, {"required": 0}, id="no-answer-wanted"),
        pytest.param([], 0, {"validates_by": None}, id="no-time-for-it"),
    ],
)
def test_a_bmc_answers_so_often_in_a_row(conf, answers, waits, more) -> None:
    assert validate(conf, answers, **more) == waits


def test_a_bmc_that_never_becomes_stable_is_named(conf) -> None:
    with pytest.raises(errors.StepFailure, match="shown it 1 of 3 times in a row within 480 s"):
        validate(conf, ["2.1"], validates_by=PAST)


@pytest.mark.parametrize(
    ("component", "driver_info", "entry", "rest_s"),
    [
        ("bmc", {}, {}, 7), ("bios", {}, {}, 0), ("bmc", {}, {"wait": 5}, 5),
        ("bmc", {firmware._REST: 3}, {}, 3), ("bmc", {firmware._REST: "2.5"}, {}, 2.5),
        ("bmc", {firmware._REST: "soon"}, {}, None), ("bmc", {firmware._REST: -1}, {}, None),
        ("bmc", {firmware._REST: None}, {}, None),
    ],
    ids=str,
)  # fmt: skip
def test_a_component_rests_as_step_node_or_option_say(
    conf, monkeypatch, component, driver_info, entry, rest_s
) -> None:
    redfish = dataclasses.replace(conf.redfish, firmware_update_wait_unresponsive_bmc=7)
    interface = SimpleNamespace(access=None, conf=SimpleNamespace(redfish=redfish))
    entries = [{"component": component, "url": "http://f/2"} | entry]
    update = firmware._Update(interface, FakeTask(driver_info), entries)
    update._memory["now"] = {
        "answers": 0, "validates_by": None, "was_off": False, "before": None,
    }  # fmt: skip
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now)
    if rest_s is None:
        with pytest.raises(errors.InvalidParameterValue, match="unresponsive_bmc_wait takes"):
            update._validate()
        return
    assert update._validate() is None
    left = datetime.fromisoformat(update._now["waits_until"]) - now
    assert left.total_seconds() == rest_s


@pytest.mark.parametrize(
    ("component", "interval", "stage", "longest"),
    [("bmc", 4, "settle", 4), ("bmc", 0, "settle", 0.1), ("bmc", 4, "poll", 60),
     ("bios", 4, "settle", 60)],
)  # fmt: skip
def test_the_version_of_a_bmc_has_an_interval_of_its_own(
    conf, component, interval, stage, longest
) -> None:
    redfish = dataclasses.replace(conf.redfish, firmware_update_bmc_version_check_interval=interval)
    interface = SimpleNamespace(access=None, conf=SimpleNamespace(redfish=redfish))
    entries = [{"component": component, "url": "http://f/2"}]
    update = firmware._Update(interface, FakeTask({}), entries)
    update._memory.update(until=PAST, now={"stage": stage})
    assert update._again("it waits").after_s == longest


@pytest.mark.parametrize(("component", "start_s"), [("nic:1", 5), ("bios", 30)])
def test_a_network_adapter_has_a_time_of_its_own_to_start(
    conf, monkeypatch, component, start_s
) -> None:
    redfish = dataclasses.replace(conf.redfish, firmware_update_nic_starting_wait=5)
    interface = SimpleNamespace(access=None, conf=SimpleNamespace(redfish=redfish))
    entries = [{"component": component, "url": "http://f/2"}]
    update = firmware._Update(interface, FakeTask({}), entries)
    update._memory["now"] = {}
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now)
    update._follow(None)
    assert (datetime.fromisoformat(update._now["starts_by"]) - now).total_seconds() == start_s
