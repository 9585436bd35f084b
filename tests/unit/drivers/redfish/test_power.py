from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from bloomery import errors
from bloomery.drivers.redfish.power import RedfishPower
from bloomery.lab.rack import Rack
from bloomery.outcome import DONE, Again
from tests.kit.machines.driver_task import FakeTask, walk
from tests.kit.machines.scripted import failing
from tests.kit.waiting import wait_for

CONFLICT = {"kind": "status", "status": 409, "path": "Reset"}
STUCK = {"kind": "stuck", "path": "Reset"}


@pytest.fixture
def power(conf):
    return RedfishPower(conf)


def take(power, task, state, **more):
    return walk(task, lambda: power.set_power_state(task, state, **more), most=1000)


def orders(machine):
    return [what for what in machine.system.happened if what.startswith("reset")]


@pytest.mark.parametrize("value", [None, "Paused", 1, ["On"]])
def test_a_power_state_that_no_node_has_is_unknown(power, task, machine, value):
    body = {"Id": "1", "PowerState": value}
    machine.bmc.faults.add(kind="status", status=200, body=body, path="/Systems/", times=-1)
    assert power.get_power_state(task) is None


def test_it_asks_once_and_looks_until_it_is_so(power, task, machine):
    said = take(power, task, "power on")
    assert said
    assert {again.reason for again in said} == {"waiting for power on"}
    assert machine.system.power == "On"
    assert orders(machine) == ["reset On"]
    assert task.node.driver_internal_info == {}


def test_what_is_there_is_not_asked_for(power, task, machine):
    assert power.set_power_state(task, "power off") == DONE
    assert orders(machine) == []


def test_whoever_asks_again_after_a_crash_lands_in_the_same_place(power, task):
    with Rack(1, power_s=0.1) as rack:
        task.driver_info = rack.machines[0].driver_info
        assert isinstance(power.set_power_state(task, "power on"), Again)
        task.turn = 0
        assert isinstance(power.set_power_state(task, "power on"), Again)
        wait_for(lambda: rack.machines[0].system.power == "On", "power on")
        task.turn = 1
        assert power.set_power_state(task, "power on") == DONE


def test_a_refusal_where_it_is_so_by_now_is_no_failure(power, task, machine):
    machine.bmc.faults.add(kind="status", status=400, path="Reset")
    power.get_power_state, power._read = lambda task: "power off", lambda *_: "power on"
    assert power.set_power_state(task, "power on") == DONE


def test_a_refusal_that_will_stay_is_raised(power, task, machine):
    machine.bmc.faults.add(kind="status", status=400, path="Reset", times=-1)
    with pytest.raises(errors.BmcRefused, match="HTTP 400"):
        power.set_power_state(task, "power on")
    assert task.node.driver_internal_info == {}


def test_a_machine_that_is_busy_is_asked_again(power, task, machine):
    machine.bmc.faults.add(**CONFLICT)
    said = take(power, task, "power on")
    assert said[0].after_s == 1
    assert machine.system.power == "On"


@pytest.mark.parametrize("tries", [1, 3])
def test_a_machine_that_stays_busy_is_asked_as_often_as_configured(conf, task, machine, tries):
    asked = replace(conf.redfish, power_on_conflict_retry_attempts=tries)
    power = RedfishPower(replace(conf, redfish=asked))
    machine.bmc.faults.add(**CONFLICT, times=-1)
    with pytest.raises(errors.BmcRefused, match="HTTP 409"):
        take(power, task, "power on", timeout_s=600)
    [fault] = machine.bmc.faults.shown()
    assert fault["hits"] == tries
    assert machine.system.power == "Off"
    assert task.node.driver_internal_info == {}


def test_power_that_does_not_come_in_time_is_told_with_what_it_reads(power, task, machine):
    machine.bmc.faults.add(kind="stuck", times=-1)
    power.set_power_state(task, "power on", timeout_s=600)
    task.turn = 1
    memory = task.node.driver_internal_info["redfish_power"]
    memory.update(since="2026-01-01T00:00:00+00:00", until="2026-01-01T00:10:00+00:00")
    told = "within 600 s, asked once; at last: it reads power off"
    with pytest.raises(errors.PowerStateFailure, match=told):
        power.set_power_state(task, "power on")
    assert task.node.driver_internal_info == {}


def out_of_patience(task):
    """Let the time pass that a BMC has for an order that it took."""
    memory = task.node.driver_internal_info["redfish_power"]
    memory["ignored_at"] = "2026-01-01T00:00:00+00:00"
    task.turn += 1


def turns_of(power, task, state, patience_ends):
    """Take the first turn, and one more after each end of patience."""
    power.set_power_state(task, state, timeout_s=600)
    for _ in range(patience_ends):
        out_of_patience(task)
        power.set_power_state(task, state, timeout_s=600)


def test_an_order_that_was_taken_and_not_done_is_given_again(power, task, machine):
    machine.bmc.faults.add(**STUCK)
    turns_of(power, task, "power on", 1)
    wait_for(lambda: machine.system.power == "On", "power on")
    assert orders(machine) == ["reset On (stuck)", "reset On"]
    assert power.set_power_state(task, "power on") == DONE
    assert task.node.driver_internal_info == {}


def test_an_order_has_its_time_before_it_is_given_again(power, task, machine):
    machine.bmc.faults.add(**STUCK)
    for task.turn in range(5):
        power.set_power_state(task, "power on", timeout_s=600)
    assert orders(machine) == ["reset On (stuck)"]


def test_an_order_that_is_never_done_is_given_so_many_times(power, task, machine):
    machine.bmc.faults.add(kind="stuck", times=-1)
    turns_of(power, task, "power on", 9)
    assert orders(machine) == ["reset On (stuck)"] * 3
    task.node.driver_internal_info["redfish_power"]["until"] = "2026-01-01T00:00:00+00:00"
    with pytest.raises(errors.PowerStateFailure, match="asked 3 times; at last: it reads power"):
        power.set_power_state(task, "power on")


def test_a_bmc_that_is_at_it_may_refuse_to_hear_it_again(power, task, machine):
    machine.bmc.faults.add(**STUCK)
    machine.bmc.faults.add(times=-1, **CONFLICT)
    turns_of(power, task, "power on", 9)
    [_, refused] = machine.bmc.faults.shown()
    assert refused["hits"] == 2
    machine.system.reset("On")
    wait_for(lambda: machine.system.power == "On", "power on")
    assert power.set_power_state(task, "power on") == DONE


def test_a_restart_that_ended_half_way_is_finished(power, task, machine):
    machine.system._on = True
    machine.bmc.faults.add(**STUCK)
    power.set_power_state(task, "soft rebooting")
    machine.system._on = False
    out_of_patience(task)
    power.set_power_state(task, "soft rebooting")
    assert orders(machine) == ["reset GracefulRestart (stuck)", "reset On"]


def test_a_bmc_that_went_silent_is_not_said_to_have_failed_at_it(power, task, machine):
    machine.bmc.faults.add(**STUCK)
    power.set_power_state(task, "power on", timeout_s=600)
    machine.bmc.faults.add(kind="reset", times=-1)
    task.turn = 1
    task.node.driver_internal_info["redfish_power"]["until"] = "2026-01-01T00:00:00+00:00"
    with pytest.raises(errors.BmcUnreachable, match="power on: it did not get there"):
        power.set_power_state(task, "power on")
    assert task.node.driver_internal_info == {}


def test_what_another_run_left_behind_is_not_taken_up(power, task, machine):
    stale = {"asked": "power on", "since": "2026-01-01T00:00:00+00:00",
             "until": "2026-01-01T00:01:00+00:00"}  # fmt: skip
    task.node.driver_internal_info["redfish_power"] = stale
    assert isinstance(power.set_power_state(task, "power on"), Again)
    assert orders(machine) == ["reset On"]


def test_a_silent_bmc_does_not_end_the_wait_at_once(power, task, machine):
    assert isinstance(power.set_power_state(task, "power on"), Again)
    wait_for(lambda: machine.system.power == "On", "power on")
    machine.bmc.faults.add(kind="reset", times=2)
    task.turn = 1
    assert isinstance(power.set_power_state(task, "power on"), Again)
    assert power.set_power_state(task, "power on") == DONE


def test_reboot_goes_off_and_on(power, task, machine):
    take(power, task, "power on")
    walk(task, lambda: power.reboot(task), most=1000)
    assert orders(machine) == ["reset On", "reset ForceOff", "reset On"]
    assert machine.system.power == "On"


@pytest.mark.parametrize("state", ["power on", "power off"])
def test_what_was_reached_is_recorded_by_whoever_knows(power, task, machine, state):
    machine.system._on = state == "power off"
    take(power, task, state)
    assert task.node.power_state == state
    task.node.power_state = None
    take(power, task, state)
    assert task.node.power_state == state, "it was there already"


def test_a_reboot_records_its_end_alone(power, task, machine):
    machine.system._on, task.node.power_state = True, "power on"
    recorded = []

    def turn():
        outcome = power.reboot(task)
        recorded.append(task.node.power_state)
        return outcome

    walk(task, turn, most=1000)
    assert set(recorded) == {"power on"}


def test_a_machine_that_may_not_go_off_is_restarted(power, task, machine):
    task.node.disable_power_off = True
    walk(task, lambda: power.reboot(task), most=1000)
    walk(task, lambda: power.reboot(task), most=1000)
    assert orders(machine) == ["reset On", "reset ForceRestart"]


UNCLEAR = pytest.mark.parametrize(
    "fault",
    [{"kind": "after", "status": 500}, {"kind": "status", "status": 503}, {"kind": "reset"}],
)


def test_a_restart_without_a_clear_answer_is_asked_again(power, task, machine):
    take(power, task, "power on")
    task.turn = 0
    machine.bmc.faults.add(kind="status", status=503, path="Reset")
    turns_of(power, task, "rebooting", 1)
    task.turn += 1
    wait_for(lambda: power.set_power_state(task, "rebooting") == DONE, "the restart")
    assert orders(machine) == ["reset On", "reset ForceRestart"]


@UNCLEAR
def test_an_order_without_a_clear_answer_has_its_time_too(power, task, machine, fault):
    machine.system._on = True
    machine.bmc.faults.add(**fault, path="Reset", times=-1)
    for task.turn in range(9):
        assert isinstance(power.set_power_state(task, "rebooting", timeout_s=600), Again)
    [fault] = machine.bmc.faults.shown()
    assert fault["hits"] == 1


@UNCLEAR
def test_a_machine_whose_bmc_never_answers_clearly_is_restarted_so_many_times(
    power, task, machine, fault
):
    machine.system._on = True
    machine.bmc.faults.add(**fault, path="Reset", times=-1)
    turns_of(power, task, "rebooting", 9)
    [fault] = machine.bmc.faults.shown()
    assert fault["hits"] == 3
    task.node.driver_internal_info["redfish_power"]["until"] = "2026-01-01T00:00:00+00:00"
    with pytest.raises(errors.PowerStateFailure, match="asked 3 times; at last: "):
        power.set_power_state(task, "rebooting")


def test_an_order_that_the_bmc_was_not_told_counts_for_nothing(power, task, machine, monkeypatch):
    alone = errors.BmcLeftAlone(node="n", address="b", reason="left alone", retry_after_s=1.5)
    monkeypatch.setattr(power.access, "change", lambda *_, **__: failing(alone)(task))
    for task.turn in range(9):
        assert power.set_power_state(task, "power on", timeout_s=600).after_s == 1.5
    monkeypatch.undo()
    power.set_power_state(task, "power on")
    assert orders(machine) == ["reset On"]
    assert task.node.driver_internal_info["redfish_power"]["orders"] == 1


def test_a_boot_device_that_does_not_last_is_set_before_each_power_on(power, task, machine):
    task.node.driver_internal_info = {"redfish_boot_device": "pxe"}
    for _ in range(2):
        take(power, task, "power on")
        assert machine.system.booted["target"] == "Pxe"
        take(power, task, "power off")


def test_a_state_that_redfish_does_not_know_is_refused(power, task):
    with pytest.raises(errors.InvalidParameterValue, match="it takes power on, power off"):
        power.set_power_state(task, "standby")


def test_what_is_remembered_of_the_bmc_is_shown_without_asking_it(power, task, machine):
    assert power.describe_bmc(task)["last_contact_at"] is None
    power.get_power_state(task)
    asked = machine.bmc.requests
    shown = power.describe_bmc(task)
    assert (shown["address"], shown["left_alone"]) == (machine.address, False)
    assert shown["latency"]["count"] == asked == machine.bmc.requests


def test_a_mistake_is_named_before_the_bmc_is_asked(power):
    stranger = FakeTask({})
    stranger.driver = SimpleNamespace(power=power)
    with pytest.raises(errors.MissingParameterValue, match="redfish_address"):
        power.validate(stranger)


def answers(status, **more):
    info = [{"MessageId": "Base.1.8.ResourceInUse", "Message": "Busy.", "Severity": "Warning"}]
    body = {"error": {"code": "Base.1.8.ResourceInUse", "@Message.ExtendedInfo": info}}
    return {"kind": "status", "status": status, "path": "Reset", "body": body} | more


@pytest.mark.parametrize("body", [None, answers(409)["body"]], ids=["no reason", "in use"])
@pytest.mark.parametrize("state", ["power off", "soft power off"])
def test_a_power_off_is_put_off_while_the_bmc_is_busy(power, task, machine, state, body):
    machine.system._on = True
    machine.bmc.faults.add(**answers(409, body=body, times=3))
    outcomes = take(power, task, state)
    assert {type(each) for each in outcomes[:3]} == {Again}
    assert machine.system.power == "Off"
    assert task.node.driver_internal_info.get("redfish_power") is None


def test_the_pause_that_a_bmc_asks_for_is_heeded(power, task, machine):
    machine.system._on = True
    machine.bmc.faults.add(**answers(409, headers={"Retry-After": "17"}))
    assert power.set_power_state(task, "power off", timeout_s=600).after_s == 17


def test_an_order_is_looked_at_while_calls_to_the_bmc_are_paused(power, task, machine):
    """A BMC answers each look after the order with 503, and then shows the state."""
    power.set_power_state(task, "power on", timeout_s=600)
    breaker = power.access.bmc(task).breaker
    for _ in range(5):
        breaker.failed(errors.BmcUnreachable(node="n", address="a", reason="503"))
    wait_for(lambda: machine.system.power == "On", "power on")
    task.turn = 1
    assert power.set_power_state(task, "power on") == DONE


def test_503_with_retry_after_is_an_answer(power, task, machine):
    machine.bmc.faults.add(
        kind="status", status=503, path="/Systems/", headers={"Retry-After": "3"}, times=-1
    )
    for _ in range(9):
        with pytest.raises(errors.BmcBusy):
            power.get_power_state(task)
    assert power.access.bmc(task).breaker.failures == 0
