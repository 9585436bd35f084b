from __future__ import annotations

import dataclasses

import pytest

from bloomery import clock, errors
from bloomery.conductor.states import Power
from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.conf.drivers import Ipmi
from bloomery.drivers.ipmi import bmc, power_sequence, tool
from bloomery.drivers.ipmi.bmc import RateLimit
from bloomery.drivers.ipmi.management import IpmitoolManagement
from bloomery.drivers.ipmi.power import IpmitoolPower
from bloomery.outcome import DONE, Again
from tests.kit.machines.driver_task import FakeTask, walk
from tests.unit.drivers.ipmi.conftest import LEAST

MUTE = tool.Failed("no answer")
NO = tool.Failed("Set Chassis Power Control failed: Command not supported in present state")


def conf(**ipmi):
    said = {"min_command_interval": 0} | ipmi
    return dataclasses.replace(
        Conf(), ipmi=Ipmi(**said), conductor=Conductor(power_state_change_timeout=2),
    )  # fmt: skip


@pytest.fixture
def power(made_up):
    return IpmitoolPower(conf())


@pytest.fixture
def task():
    return FakeTask(LEAST)


def ask(power, task, target, **more):
    return walk(task, lambda: power.set_power_state(task, target, **more))


def late(task):
    """Let the time of what is asked be up."""
    task.node.driver_internal_info[power_sequence.KEY]["until"] = power_sequence.deadline(-1)


@pytest.mark.parametrize(
    ("said", "state"),
    [("on\n", Power.ON), ("off", Power.OFF), ("on fire", Power.ERROR)],
)
def test_power_is_read_exactly(power, task, made_up, said, state):
    made_up.answers["power status"] = f"Chassis Power is {said}"
    assert power.get_power_state(task) == state


@pytest.mark.parametrize(
    ("target", "before", "commands"),
    [
        (Power.ON, "off", ["power on", "power status"]),
        (Power.OFF, "on", ["power off", "power status"]),
        (Power.REBOOT, "on", ["power off", "power status", "power on", "power status"]),
        (Power.REBOOT, "off", ["power off", "power status", "power on", "power status"]),
    ],
)
def test_it_asks_and_looks(power, task, made_up, target, before, commands):
    made_up.power = before
    said = ask(power, task, target)
    assert made_up.asked == commands
    assert {one.reason for one in said} <= {"waiting for power on", "waiting for power off"}
    assert task.node.power_state == f"power {made_up.power}"
    assert task.node.driver_internal_info == {}


def test_soft_reboot_is_off_by_the_guest_and_on_again(power, task, made_up):
    made_up.power = "on"
    made_up.answers["power status"] = ["Chassis Power is on", "Chassis Power is off"]
    ask(power, task, Power.SOFT_REBOOT)
    assert made_up.asked == [
        "power soft", "power status", "power status", "power on", "power status",
    ]  # fmt: skip


def test_a_machine_that_may_not_go_off_is_reset(power, made_up):
    task = FakeTask(LEAST, disable_power_off=True)
    made_up.power = "on"
    said = walk(task, lambda: power.reboot(task))
    assert made_up.asked == ["power reset", "power status"]
    assert [one.after_s for one in said] == [15.0]


def test_a_machine_that_may_not_go_off_is_not_rebooted_softly(power, made_up):
    with pytest.raises(errors.InvalidParameterValue, match="disable_power_off"):
        power.set_power_state(FakeTask(LEAST, disable_power_off=True), Power.SOFT_REBOOT)
    assert made_up.asked == []


def test_a_turn_never_waits_for_the_gap(made_up):
    power, task = IpmitoolPower(conf(min_command_interval=5)), FakeTask(LEAST | {"ipmi_port": 1})
    power.get_power_state(task)
    first = power.set_power_state(task, Power.ON)
    assert isinstance(first, Again)
    assert 0 < first.after_s <= 0.5
    assert made_up.asked == ["power status"]


@pytest.mark.parametrize(
    ("target", "before", "commands", "waits_s"),
    [(Power.ON, "off", 2, 1.0), (Power.REBOOT, "on", 4, 2.5)],
)
def test_power_takes_few_commands_and_short_waits(
    monkeypatch, made_up, clock, target, before, commands, waits_s
):
    monkeypatch.setattr(bmc, "RATE_LIMIT", RateLimit(clock, clock.pause))
    monkeypatch.setattr(bmc.IpmiBmc.__init__, "__defaults__", (bmc.RATE_LIMIT,))
    power, task = IpmitoolPower(conf(min_command_interval=5)), FakeTask(LEAST)
    made_up.power = before
    waited_s = 0.0
    for task.turn in range(20):
        outcome = power.set_power_state(task, target)
        if not isinstance(outcome, Again):
            break
        clock.now += outcome.after_s
        waited_s += outcome.after_s
    assert outcome == DONE
    assert (len(made_up.asked), clock.pauses) == (commands, [])
    assert waited_s <= waits_s


def test_power_that_does_not_change_is_told_when_the_time_is_up(power, task, made_up):
    made_up.answers["power status"] = "Chassis Power is off"
    for task.turn in range(5):
        assert isinstance(power.set_power_state(task, Power.ON), Again)
    late(task)
    task.turn = 5
    with pytest.raises(errors.PowerStateFailure, match="took `ipmitool power on` and still reads"):
        power.set_power_state(task, Power.ON)
    assert task.node.driver_internal_info == {}
    assert made_up.asked.count("power on") == 1


@pytest.mark.parametrize(
    ("target", "timeout_s", "own_s"),
    [
        (Power.ON, None, 2), (Power.ON, 30, 30), (Power.SOFT_OFF, None, 600),
        (Power.SOFT_OFF, 30, 30), (Power.SOFT_REBOOT, 30, 30),
    ],
)  # fmt: skip
def test_each_request_has_its_time(power, task, target, timeout_s, own_s):
    before = clock.now()
    power.set_power_state(task, target, timeout_s)
    until = power_sequence.datetime.fromisoformat(
        task.node.driver_internal_info[power_sequence.KEY]["until"]
    )
    assert own_s <= (until - before).total_seconds() < own_s + 1


def test_a_refusal_is_forgiven_if_it_reads_as_wanted(power, task, made_up):
    made_up.answers["power off"] = NO
    assert len(ask(power, task, Power.OFF)) == 1
    assert task.node.power_state == Power.OFF


def test_a_refusal_counts_if_it_does_not(power, task, made_up):
    made_up.answers["power on"] = NO
    with pytest.raises(errors.PowerStateFailure, match="not supported in present state"):
        ask(power, task, Power.ON)


def test_silence_is_borne_for_a_while(power, task, made_up):
    made_up.answers |= {"power on": [MUTE, MUTE], "power status": [MUTE]}
    ask(power, task, Power.ON)
    assert made_up.asked == ["power on"] * 3 + ["power status"] * 2


def test_silence_that_lasts_is_told(power, task, made_up):
    made_up.answers["power on"] = [MUTE] * 9
    power.set_power_state(task, Power.ON)
    task.turn = 1
    task.node.driver_internal_info[power_sequence.KEY]["silent_since"] = power_sequence.deadline(
        -61
    )
    with pytest.raises(errors.BmcUnreachable, match="no answer"):
        power.set_power_state(task, Power.ON)
    assert task.node.driver_internal_info == {}


def test_another_process_goes_on_where_this_one_was(power, task, made_up):
    made_up.power = "on"
    power.reboot(task)
    task.turn = 1
    power.reboot(task)
    stored = dict(task.node.driver_internal_info)
    next_one = FakeTask(LEAST, driver_internal_info=stored)
    next_one.turn = 1
    made_up.asked.clear()
    assert isinstance(power.reboot(next_one), Again)
    next_one.turn = 2
    assert power.reboot(next_one) == DONE
    assert made_up.asked == ["power on", "power status"]


@pytest.mark.parametrize("change", ["first turn", "other target", "long ago"])
def test_what_was_left_behind_does_not_count(power, task, made_up, change):
    power.set_power_state(task, Power.ON)
    task.turn = 0 if change == "first turn" else 1
    if change == "long ago":
        task.node.driver_internal_info[power_sequence.KEY]["until"] = power_sequence.deadline(-61)
    made_up.asked.clear()
    target = Power.OFF if change == "other target" else Power.ON
    power.set_power_state(task, target)
    assert made_up.asked == [target]


# ----------------------------------------------------------- boot devices that must be forced

FORCED = LEAST | {"ipmi_force_boot_device": True}
LONGER, DISK = "raw 0x00 0x08 0x03 0x08", "raw 0x00 0x08 0x05 0xa0 0x08 0x00 0x00 0x00"
PXE = DISK.replace("0xa0 0x08", "0xa0 0x04")


def test_a_persistent_device_is_set_before_each_power_on(power, made_up):
    task, management = FakeTask(FORCED), IpmitoolManagement(power.conf)
    management.set_boot_device(task, "disk", persistent=True)
    assert made_up.asked == [LONGER, DISK]
    assert management.get_boot_device(task) == {"boot_device": "disk", "persistent": True}
    for _ in range(2):
        made_up.asked.clear()
        ask(power, task, Power.REBOOT)
        assert made_up.asked == [
            "power off", "power status", LONGER, DISK, "power on", "power status",
        ]  # fmt: skip


def test_a_device_for_one_boot_is_left_alone_once(power, made_up):
    task, management = FakeTask(FORCED), IpmitoolManagement(power.conf)
    management.set_boot_device(task, "disk", persistent=True)
    management.set_boot_device(task, "pxe")
    assert made_up.asked[-1] == PXE
    ask(power, task, Power.OFF)
    made_up.asked.clear()
    ask(power, task, Power.ON)
    assert made_up.asked == ["power on", "power status"]
    made_up.asked.clear()
    ask(power, task, Power.ON)
    assert made_up.asked == [LONGER, DISK, "power on", "power status"]


def test_a_device_that_cannot_be_forced_fails_the_power_on(power, made_up):
    task = FakeTask(FORCED, driver_internal_info={"persistent_boot_device": "disk"})
    made_up.answers[DISK] = tool.Failed("Unable to send RAW command: Invalid data field in request")
    with pytest.raises(errors.BmcRefused, match="Invalid data field"):
        ask(power, task, Power.ON)
    assert "power on" not in made_up.asked


@pytest.mark.parametrize(
    ("options", "keys", "told"),
    [
        ({}, {}, True),
        ({"disable_boot_timeout": False}, {}, False),
        ({"disable_boot_timeout": False}, {"ipmi_disable_boot_timeout": "true"}, True),
        ({}, {"ipmi_disable_boot_timeout": "no"}, False),
    ],
)
def test_the_bmc_is_told_not_to_forget(made_up, options, keys, told):
    task = FakeTask(LEAST | keys, properties={"capabilities": "boot_mode:bios"})
    IpmitoolManagement(conf(**options)).set_boot_device(task, "pxe", persistent=True)
    commands = ["chassis bootdev pxe options=persistent"]
    assert made_up.asked == ([LONGER] if told else []) + commands
    assert task.saves == 1


def test_an_nmi_is_sent_once(made_up):
    made_up.answers["power diag"] = [MUTE]
    with pytest.raises(errors.BmcUnreachable):
        IpmitoolManagement(conf()).inject_nmi(FakeTask(LEAST))
    assert made_up.asked == ["power diag"]
