"""The BMC's own log and clock in the life of a node: read, cleared, set."""

from __future__ import annotations

import dataclasses

import pytest

from bloomery.drivers import registry
from tests.functional.redfish.conftest import conf, manageable
from tests.kit.servers.stories import Stage

HOUR_S = 3600


def read_log(stage, node):
    answer = stage.api.get(f"/ext/v1/nodes/{node}/bmc_log")
    assert answer.status == 200, answer.body
    return answer.json


def clean(stage, node, **step):
    steps = [{"interface": "management", **step}]
    stage.ask(node, "clean", clean_steps=steps, disable_ramdisk=True)
    stage.wait_until_free(node)
    return stage.show(node)


def test_the_log_is_read_and_cleared_by_a_step(stage, machine) -> None:
    node = manageable(stage, machine)
    machine.system.log_event("DIMM A3 uncorrectable ECC")
    machine.system.log_event("Fan 3 slow", "Warning")
    log = read_log(stage, node)
    assert [(each["severity"], each["message"]) for each in log["entries"]] == [
        ("Warning", "Fan 3 slow"), ("Critical", "DIMM A3 uncorrectable ECC"),
    ]  # fmt: skip
    assert (log["name"], log["total"]) == ("Sel", 2)
    shown = clean(stage, node, step="clear_bmc_log")
    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    assert [each["message"] for each in read_log(stage, node)["entries"]] == ["Log cleared"]


def test_the_read_does_not_wait_for_the_lock(stage, make_rack) -> None:
    machine = make_rack(power_s=1.0).machines[0]
    node = manageable(stage, machine)
    assert stage.try_power(node, "power on").status == 202
    assert read_log(stage, node)["entries"] == []
    stage.wait_until_free(node)


def test_a_bmc_that_refuses_or_is_silent_is_named(stage, machine) -> None:
    node = manageable(stage, machine)
    machine.bmc.faults.add(kind="status", status=403, path="/Systems/", times=-1)
    answer = stage.api.get(f"/ext/v1/nodes/{node}/bmc_log")
    assert answer.status == 400
    machine.bmc.faults.clear()
    machine.bmc.faults.add(kind="reset", path="/Systems/", times=-1)
    assert stage.api.get(f"/ext/v1/nodes/{node}/bmc_log").status == 502


def test_hardware_without_a_log_is_refused(make_site) -> None:
    stage = Stage(make_site())
    answer = stage.api.get(f"/ext/v1/nodes/{stage.enrol()}/bmc_log")
    assert answer.status == 400
    assert "does not support read_bmc_log" in str(answer.body)


@pytest.mark.parametrize("target", [None, "2030-01-01T00:00:00+00:00"])
def test_the_clock_is_set_by_a_step(stage, machine, target) -> None:
    node = manageable(stage, machine)
    machine.system.clock_s = -HOUR_S
    args = {} if target is None else {"args": {"target_datetime": target}}
    shown = clean(stage, node, step="set_bmc_clock", **args)
    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    assert [each for each in machine.system.happened if "clock set" in each] != []
    if target is None:
        assert machine.system.clock_s == pytest.approx(0, abs=3)
    else:
        assert f"clock set to {target[:16]}" in str(machine.system.happened)


@pytest.mark.parametrize("is_on", [False, True])
def test_the_verb_manage_sets_the_clock_where_that_is_switched_on(
    make_site, machine, is_on
) -> None:
    redfish = dataclasses.replace(conf().redfish, enable_verify_bmc_clock=is_on)
    options = dataclasses.replace(conf(), redfish=redfish)
    stage = Stage(make_site(registry=registry.load(options)))
    machine.system.clock_s = -HOUR_S
    manageable(stage, machine)
    assert machine.system.clock_s == pytest.approx(0 if is_on else -HOUR_S, abs=3)


def test_a_bmc_that_takes_no_time_fails_a_step_of_manage_alone(make_site, make_rack) -> None:
    redfish = dataclasses.replace(conf().redfish, enable_verify_bmc_clock=True)
    options = dataclasses.replace(conf(), redfish=redfish)
    stage = Stage(make_site(registry=registry.load(options)))
    machine = make_rack(sets_clock=False).machines[0]
    machine.system.clock_s = -HOUR_S
    node = manageable(stage, machine)
    history = stage.api.get(f"/v1/nodes/{node}/history").json["history"]
    (failed,) = [each["event"] for each in history if each["severity"] == "ERROR"]
    assert "read only property" in failed
    assert "verify step management.verify_bmc_clock" in failed
