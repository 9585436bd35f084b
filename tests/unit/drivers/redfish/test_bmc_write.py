"""A write is done when the BMC shows it, and fails with the BMC's own words."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery import errors
from bloomery.drivers.redfish.bmc_write import BmcWrite
from tests.kit.machines.driver_task import FakeTask, walk

FAILURES = (errors.StepFailure, errors.BmcRefused)  # of a step, of a request
PATCH = {"method": "PATCH", "path": "/Systems/"}


def write(way: Any, task: FakeTask, *, limit_s: float = 20) -> BmcWrite:
    """Return a write of the asset tag, as a step or a request makes it."""

    def change(system: Any) -> None:
        system.root._conn.patch(system.path, data={"AssetTag": "rack 7"})

    return BmcWrite(
        access=way, task=task, what="set the asset tag", change=change, limit_s=limit_s,
        is_so=lambda system: system.json["AssetTag"] == "rack 7", pause_s=0.01,
    )  # fmt: skip


@pytest.fixture(params=["step", "request"])
def apply(request: pytest.FixtureRequest, way: Any, task: FakeTask) -> Any:
    def run(limit_s: float = 20) -> None:
        made = write(way, task, limit_s=limit_s)
        if request.param == "step":
            walk(task, made.apply, most=5000)
        else:
            made.apply_now()

    return run


@pytest.mark.parametrize(
    "fault",
    [
        None,
        {"kind": "later", "seconds": 0.2},
        {"kind": "task", "seconds": 0.2},
        {"kind": "status", "status": 500},
        {"kind": "status", "status": 202, "body": None, "times": -1},
        {"kind": "status", "status": 202, "body": "accepted", "times": -1},
    ],
    ids=["at once", "later", "task", "5xx", "202 without a task", "202 of a text"],
)
def test_a_write_lasts_until_the_bmc_shows_it(apply, machine, task, fault, monkeypatch) -> None:
    if fault:
        machine.bmc.faults.add(**PATCH, **fault)
    if fault and fault.get("status") == 202:  # no task tells more: what the system shows counts
        machine.system.asset = "rack 7"
    monkeypatch.setattr("time.sleep", lambda _: None)
    apply()
    assert machine.system.asset == "rack 7"
    assert task.node.driver_internal_info == {}


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (
            {"kind": "status", "status": 204, "body": None}, FAILURES,
            "accepted the order to set the asset tag, and does not show it as done after 0 s",
        ),
        (
            {"kind": "task", "seconds": 0.05, "message": "the flash is worn out"},
            FAILURES, "could not set the asset tag: the flash is worn out",
        ),
        ({"kind": "status", "status": 400}, errors.BmcRefused, "lab fault"),
        ({"kind": "status", "status": 500, "times": -1}, errors.BmcRefused, "HTTP 500"),
    ],
    ids=["ignored", "task fails", "refused", "5xx for ever"],
)  # fmt: skip
def test_a_write_without_an_effect_fails_with_what_the_bmc_says(
    apply, machine, task, fault, error, words, monkeypatch
) -> None:
    machine.bmc.faults.add(**PATCH, **fault)
    monkeypatch.setattr("bloomery.drivers.redfish.bmc_write._TRY_PAUSE_S", 0.01)
    with pytest.raises(error, match=words):
        apply(limit_s=0 if "status" in fault else 20)
    assert machine.system.asset == ""
    assert "redfish_write" not in task.node.driver_internal_info
