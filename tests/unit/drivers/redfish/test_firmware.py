"""An updated component counts once its BMC has shown it several times in a row."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from bloomery import errors
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
