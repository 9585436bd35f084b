"""The system event log through ipmitool: what its lines say, and its clearing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bloomery import clock as steady
from bloomery import errors
from bloomery.drivers.bmc.logs import MOST_ENTRIES
from bloomery.drivers.ipmi import bmc_log, tool
from bloomery.drivers.ipmi.info import parse as parse_info
from bloomery.outcome import DONE, Again
from tests.kit.machines.driver_task import FakeTask
from tests.unit.drivers.ipmi.conftest import LEAST

OUTPUT = """\
   1 | 11/29/2026 | 11:58:01 | Event Logging Disabled SEL | Log area reset/cleared | Asserted
   2 |  Pre-Init  |0000000041| Power Supply PS1 Status | Presence detected | Asserted
   a | 11/29/2026 | 12:04:05 UTC | Memory DIMM A3 | Uncorrectable ECC | Asserted
   b | 11/29/2026 | 12:04:06 UTC | Memory DIMM A3 | Uncorrectable ECC | Deasserted
garbage
"""


@pytest.fixture
def task():
    return FakeTask(LEAST)


def test_lines_become_entries() -> None:
    entries = bmc_log.parse(OUTPUT)
    assert [(each.id, each.severity) for each in entries] == [
        ("1", "OK"), ("2", "OK"), ("10", "Critical"), ("11", "OK"),
    ]  # fmt: skip
    assert entries[1].created_at is None
    assert entries[2].created_at == datetime(2026, 11, 29, 12, 4, 5, tzinfo=UTC)
    assert entries[2].message == "Memory DIMM A3: Uncorrectable ECC: Asserted"


@pytest.mark.parametrize(
    ("message", "severity"),
    [
        ("Memory DIMM: Correctable ECC: Asserted", "Warning"),
        ("Memory DIMM: Correctable ECC logging limit reached: Asserted", "Warning"),
        ("Memory DIMM: Uncorrectable ECC: Asserted", "Critical"),
        (
            "Temperature CPU: Upper Critical going high: Asserted: Reading 99 > Threshold 90",
            "Critical",
        ),
        ("Temperature CPU: Upper Non-critical going high: Asserted", "Warning"),
        ("Temperature CPU: Upper Non-recoverable going high: Asserted", "Critical"),
        ("Temperature CPU: Upper Critical going high: Deasserted", "OK"),
        ("Power Supply PS2: Failure detected: Asserted", "Critical"),
        ("Power Supply PS2: Power Supply AC lost: Asserted", "Critical"),
        ("Power Supply: Redundancy Lost: Asserted", "Warning"),
        ("Drive Slot 3: Drive Fault: Asserted", "Critical"),
        ("Drive Slot 3: Predictive Failure: Asserted", "Warning"),
        ("Processor CPU1: IERR: Asserted", "Critical"),
        ("Processor CPU1: Thermal Trip: Asserted", "Critical"),
        ("Critical Interrupt: PCI SERR: Asserted", "Critical"),
        ("System Boot Initiated: Initiated by power up: Asserted", "OK"),
        ("OS Boot: C: boot completed: Asserted", "OK"),
    ],
)
def test_severities_follow_from_the_words(message, severity) -> None:
    assert bmc_log._severity(message) == severity


def test_the_log_is_read_with_its_clock(make_bmc, made_up, task) -> None:
    ahead = datetime.now(UTC) + timedelta(hours=1)
    made_up.answers = {
        "-Z sel time get": f"{ahead:%m/%d/%Y %H:%M:%S}\n",
        f"-Z sel elist last {MOST_ENTRIES}": OUTPUT,
    }
    bmc = make_bmc(task)
    log = bmc_log.read(bmc)
    assert (log["name"], log["total"]) == ("SEL", 4)
    assert [each["id"] for each in log["entries"]] == ["11", "10", "1", "2"]
    assert log["clock_difference_s"] == pytest.approx(3600, abs=3)
    assert bmc.describe()["clock_difference_s"] == log["clock_difference_s"]


def test_a_clock_that_is_not_set_and_an_empty_log(make_bmc, made_up, task) -> None:
    made_up.answers["-Z sel time get"] = "Unspecified\n"
    made_up.answers[f"-Z sel elist last {MOST_ENTRIES}"] = "SEL has no entries\n"
    log = bmc_log.read(make_bmc(task))
    assert (log["clock_difference_s"], log["total"], log["entries"]) == (None, 0, [])


def test_a_list_is_asked_for_in_lines() -> None:
    patience = tool.Patience(retries=1, interval_s=1)
    lines = [
        tool.command(parse_info(LEAST), words, suite=3, patience=patience, password_file="f")
        for words in (bmc_log.LIST, bmc_log.CLEAR)
    ]
    assert ["-v" in line for line in lines] == [False, True]


def turns(bmc, task, clock, *, most=100):
    """Take the turns of the clearing, and the time between them."""
    for task.turn in range(most):
        outcome = bmc_log.clear(bmc, task)
        if outcome == DONE:
            return task.turn
        assert isinstance(outcome, Again)
        clock.now += outcome.after_s
    raise AssertionError("it never ends")


def test_the_log_is_cleared_once_and_read_until_it_is_empty(make_bmc, made_up, task, clock) -> None:
    made_up.answers["sel info"] = ["Entries : 12\n", "Entries          : 1 \n"]
    turns(make_bmc(task), task, clock)
    assert made_up.asked == ["sel clear", "sel info", "sel info"]
    assert task.node.driver_internal_info == {}


def test_a_log_that_stays_fails_the_step(make_bmc, made_up, task, clock, monkeypatch) -> None:
    began_at, first = steady.now(), clock.now
    monkeypatch.setattr(
        bmc_log.clock, "now", lambda: began_at + timedelta(seconds=clock.now - first)
    )
    made_up.answers["sel info"] = ["Entries : 12\n"] * 99
    with pytest.raises(errors.StepFailure, match="still shows 12 entries after 60 s"):
        turns(make_bmc(task), task, clock)
    assert "ipmi_log_cleared_until" not in task.node.driver_internal_info
    assert made_up.asked.count("sel clear") == 1
