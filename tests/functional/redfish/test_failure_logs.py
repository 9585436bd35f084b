"""What a BMC logged while a flow failed stands beside the failure, and never delays it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from bloomery.conductor import failure_logs, tasks
from tests.functional.redfish.conftest import manageable
from tests.kit.servers.stories import full_pool
from tests.kit.waiting import wait_for

BREAKS = {"interface": "bios", "step": "apply_configuration"}
ARGS = {"settings": [{"name": "NumCores", "value": 4}]}
HOUR_S = 3600


@pytest.fixture
def node(stage, machine):
    node = manageable(stage, machine)
    machine.bmc.faults.add(kind="status", status=400, path="/Bios", method="PATCH", times=-1)
    return node


def fail(stage, node) -> dict:
    """Let a cleaning fail, and return its explanation at once."""
    stage.ask(node, "clean", clean_steps=[BREAKS | {"args": ARGS}], disable_ramdisk=True)
    stage.wait_for(node, "clean failed")
    return explain(stage, node)


def explain(stage, node) -> dict:
    return stage.api.get(f"/ext/v1/nodes/{node}/why").json


def wait_for_readers(stage) -> None:
    wait_for(lambda: not stage.site.runtime.log_readers.in_use, "the logs to be read")


@pytest.mark.parametrize("clock_s", [0, -HOUR_S, 7 * 24 * HOUR_S])
def test_why_says_what_the_bmc_logged_by_the_clock_of_the_conductor(
    stage, machine, node, clock_s
) -> None:
    system = machine.system
    system.clock_s = clock_s
    system.log_event("an old fault", at=system.bmc_time - 600)
    system.log_event("a later fault", at=system.bmc_time + 1)
    system.log_event("Fan 3 slow", "Warning", at=system.bmc_time + 2)
    system.log_event("power button pressed", "OK", at=system.bmc_time + 2)
    at = datetime.now(UTC) + timedelta(seconds=1)
    fail(stage, node)
    wait_for(lambda: "BMC logged" in explain(stage, node)["cause"], "the log")
    why = explain(stage, node)
    logged = why["last_error"]["bmc_logged"]
    assert logged.startswith("the BMC logged: a later fault at ")
    shown = datetime.fromisoformat(f"{at:%Y-%m-%d}T{logged.partition(' at ')[2][:8]}+00:00")
    assert abs(shown - at) <= timedelta(seconds=3) or at.hour in (0, 23)
    assert "; Fan 3 slow at " in logged
    assert logged.endswith("(warning)")
    assert "(clean step bios.apply_configuration); the BMC logged" in why["cause"]
    assert ("certificates may look invalid" in why["cause"]) == (clock_s != 0)


def test_a_machine_that_logged_nothing_has_its_failure_alone(stage, machine, node) -> None:
    machine.system.log_event("an old fault", at=time.time() - 600)
    fail(stage, node)
    wait_for_readers(stage)
    assert explain(stage, node)["last_error"]["bmc_logged"] is None


def test_the_log_of_an_earlier_failure_goes_with_it(stage, machine, node) -> None:
    machine.system.log_event("DIMM A3")
    fail(stage, node)
    wait_for(lambda: "DIMM A3" in explain(stage, node)["cause"], "the log")
    machine.system.log.clear()
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    assert stage.api.delete(f"/v1/nodes/{node}/maintenance").status == 202
    assert "DIMM A3" not in fail(stage, node)["cause"]
    wait_for_readers(stage)
    assert "DIMM A3" not in explain(stage, node)["cause"]


def test_a_slow_log_delays_no_failure_and_no_order_after_it(stage, machine, node) -> None:
    machine.bmc.faults.add(kind="hang", seconds=60, path="/LogServices", times=-1)
    why = fail(stage, node)
    assert stage.show(node)["reservation"] is None
    assert why["last_error"]["bmc_logged"] is None
    machine.bmc.faults.clear()
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    wait_for_readers(stage)


def test_a_broken_log_changes_nothing(stage, machine, node) -> None:
    machine.bmc.faults.add(kind="nojson", path="/LogServices", times=-1)
    why = fail(stage, node)
    wait_for_readers(stage)
    assert explain(stage, node)["last_error"]["now"] == why["last_error"]["now"]
    assert explain(stage, node)["last_error"]["bmc_logged"] is None


def test_a_silent_bmc_is_not_asked_for_its_log(stage, make_rack, asked) -> None:
    machine = make_rack().machines[0]
    node = manageable(stage, machine)
    machine.bmc.faults.add(kind="reset", times=-1)
    stage.ask(node, "clean", clean_steps=[BREAKS | {"args": ARGS}], disable_ramdisk=True)
    stage.wait_for(node, "clean failed")
    wait_for_readers(stage)
    assert [each for each in asked if "LogServices" in each] == []


@pytest.mark.parametrize(
    ("group", "options", "is_read"),
    [
        ("bmc", {"failure_log_timeout": 10}, True),
        ("bmc", {"failure_log_timeout": 0}, False),
        ("conductor", {"node_history": False}, False),
    ],
)
def test_the_read_can_be_switched_off(stage, machine, node, asked, group, options, is_read) -> None:
    stage.configure(group, **options)
    fail(stage, node)
    wait_for_readers(stage)
    if is_read:
        wait_for(lambda: any("LogServices" in each for each in asked), "the read")
    assert any("LogServices" in each for each in asked) == is_read


def test_a_reading_waits_for_a_free_worker(stage, machine, node, monkeypatch) -> None:
    monkeypatch.setattr(failure_logs, "_RETRY_S", 0.01)
    machine.system.log_event("DIMM A3", at=time.time() + 1)
    runtime = stage.site.runtime
    since = datetime.now(UTC)
    with full_pool(stage.site):
        context = tasks.background_context(runtime)
        failure_logs._start(failure_logs._Reading(context, node, since))
        assert runtime.log_readers.in_use == 0
    wait_for(lambda: "DIMM A3" in str(stage.api.get(f"/v1/nodes/{node}/history").json), "the log")


def entry(message, after_s, severity="Critical"):
    at = datetime(2026, 11, 29, 12, tzinfo=UTC) + timedelta(seconds=after_s)
    return {"created_at": at.isoformat(), "severity": severity, "message": message, "id": "1"}


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([], None),
        ([entry("old", -60), entry("fine", 5, "OK"), entry("odd", 5, None)], None),
        ([entry("a", 5) | {"created_at": None}], None),
        ([entry("a", 5)], "the BMC logged: a at 12:00:05 UTC"),
        ([entry("w", 9, "Warning"), entry("a", 5), entry("b", 6)],
         "the BMC logged: b at 12:00:06 UTC; a at 12:00:05 UTC; w at 12:00:09 UTC (warning)"),
        ([entry(f"m{n}", n) for n in range(5)],
         "the BMC logged: m4 at 12:00:04 UTC; m3 at 12:00:03 UTC; m2 at 12:00:02 UTC; and 2 more"),
    ],
)  # fmt: skip
def test_the_worst_and_newest_entries_are_kept(entries, text) -> None:
    log = {"entries": entries, "clock_difference_s": None}
    assert failure_logs.describe(log, datetime(2026, 11, 29, 12, tzinfo=UTC)) == text
