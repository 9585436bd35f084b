"""Booting of ISOs: what becomes of the power meanwhile, and boots without a virtual drive."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from bloomery import errors
from bloomery.drivers.redfish.boot import RedfishHttps, RedfishVirtualMedia
from bloomery.drivers.redfish.management import RedfishManagement
from bloomery.drivers.redfish.power import RedfishPower
from bloomery.lab.rack import Machine, Rack
from bloomery.outcome import DONE
from tests.kit.machines.driver_task import FakeTask, walk

ISO = "http://images.test/agent.iso"
OS = "http://user:hush@images.test/os.iso"


@pytest.fixture
def make_machine() -> Iterator[Any]:
    racks: list[Rack] = []

    def make(model: str = "generic") -> Machine:
        racks.append(Rack(1, model=model).start())
        return racks[-1].machines[0]

    yield make
    for rack in racks:
        rack.stop()


def make_task(conf: Any, machine: Machine, **values: Any) -> Any:
    task: Any = FakeTask(machine.driver_info | {"deploy_iso": ISO}, **values)
    task.driver = SimpleNamespace(power=RedfishPower(conf), management=RedfishManagement(conf))
    return task


@pytest.mark.parametrize("disable_power_off", [True, False])
def test_a_machine_that_may_not_be_off_stays_on(
    conf: Any, make_machine: Any, disable_power_off: bool
) -> None:
    """Its caller restarts it."""
    orders: list[str] = []

    def order(_task: Any, state: str) -> Any:
        orders.append(state)
        return DONE

    machine = make_machine()
    task = make_task(conf, machine, disable_power_off=disable_power_off)
    task.driver = SimpleNamespace(power=SimpleNamespace(set_power_state=order))
    boot = RedfishVirtualMedia(conf)
    assert boot.prepare_ramdisk(task, {}) == DONE
    assert machine.system.media == {"Cd": ISO}
    assert boot.clean_up_ramdisk(task) == DONE
    assert machine.system.media == {"Cd": None}
    assert orders == ([] if disable_power_off else ["power off", "power off"])


def boots(machine: Machine) -> tuple[str, str, str]:
    """Return device, duration and URL of the next boot."""
    system = machine.system
    return system.boot["target"], system.boot["enabled"], system.http_uri


def test_firmware_gets_the_url_of_an_agent_then_of_an_instance_then_none(
    conf: Any, make_machine: Any
) -> None:
    machine, boot = make_machine(), RedfishHttps(conf)
    task = make_task(conf, machine)
    walk(task, lambda: boot.prepare_ramdisk(task, {}))
    assert boots(machine) == ("UefiHttp", "Once", ISO)
    task.node.instance_info = {"boot_iso": OS}
    walk(task, lambda: boot.prepare_instance(task))
    assert boots(machine) == ("UefiHttp", "Continuous", OS)
    task.node.instance_info = {}
    walk(task, lambda: boot.prepare_instance(task))
    assert boots(machine) == ("Hdd", "Continuous", "")
    assert not any("media" in what for what in machine.system.happened)


def test_each_power_on_repeats_the_url_to_a_bmc_that_keeps_no_device(
    conf: Any, make_machine: Any
) -> None:
    machine, boot = make_machine("lenovo-xcc"), RedfishHttps(conf)
    task = make_task(conf, machine, instance_info={"boot_iso": OS})
    walk(task, lambda: boot.prepare_instance(task))
    for _ in range(2):
        for state in ("power off", "power on"):
            task.turn = 0
            walk(task, lambda state=state: task.driver.power.set_power_state(task, state), most=999)
        booted = machine.system.booted
        assert (booted["target"], booted["image"]) == ("UefiHttp", OS)


def power_on(task: Any) -> None:
    task.turn = 0
    walk(task, lambda: task.driver.power.set_power_state(task, "power on"), most=9999)


@pytest.fixture
def hasty(conf: Any) -> Any:
    """A second for a power on and for a boot device to show."""
    return dataclasses.replace(
        conf,
        conductor=dataclasses.replace(conf.conductor, power_state_change_timeout=1),
        redfish=dataclasses.replace(conf.redfish, boot_device_timeout=1),
    )


LOST = {
    "override": {"target": "None", "enabled": "Disabled"},
    "target": {"target": "Pxe"},
    "mode": {"mode": "Legacy"},
}


@pytest.fixture(params=LOST)
def lost(request: pytest.FixtureRequest, hasty: Any, make_machine: Any) -> Any:
    """A flow's task and machine, whose BMC has lost what was set of the next boot."""
    machine = make_machine()
    task = make_task(hasty, machine, provision_state="deploying", instance_info={"boot_iso": OS})
    walk(task, lambda: RedfishVirtualMedia(hasty).prepare_instance(task))
    machine.system.set_boot(**LOST[request.param])
    return task, machine


def test_a_boot_that_a_bmc_lost_is_set_again_before_the_power_on(lost: Any) -> None:
    task, machine = lost
    power_on(task)
    booted = machine.system.booted
    assert (booted["target"], booted["mode"], booted["image"]) == ("Cd", "UEFI", OS)
    assert task.node.driver_internal_info == {}


def test_a_machine_whose_boot_stays_lost_is_not_switched_on(lost: Any) -> None:
    task, machine = lost
    machine.bmc.faults.add(kind="status", status=204, body=None, method="PATCH", times=-1)
    with pytest.raises(errors.PowerStateFailure, match="boot from cdrom, and does not show it"):
        power_on(task)
    assert machine.system.power == "Off"
    assert not any(what.startswith("reset") for what in machine.system.happened)


def test_a_boot_that_was_set_by_a_request_is_no_flows(conf: Any, make_machine: Any) -> None:
    machine = make_machine()
    task = make_task(conf, machine, provision_state="manageable")
    task.driver.management.set_boot_device(task, "pxe")
    assert task.node.driver_internal_info == {}
    machine.system.set_boot(target="None", enabled="Disabled")
    power_on(task)
    assert machine.system.booted["target"] == "None"


@pytest.mark.parametrize("keeps", ["mode", "url"])
def test_what_a_bmc_drops_of_a_boot_is_noticed(
    hasty: Any, make_machine: Any, monkeypatch: Any, keeps: str
) -> None:
    """It keeps the device, and changes or loses the rest."""
    machine = make_machine()
    boot = RedfishHttps(hasty) if keeps == "url" else RedfishVirtualMedia(hasty)
    shown = {"HttpBootUri": ""} if keeps == "url" else {"BootSourceOverrideMode": "Legacy"}
    task = make_task(hasty, machine, instance_info={"boot_iso": OS})
    machine.bmc.faults.add(
        kind="shows",
        method="GET",
        path="/Systems/[^/]+$",
        document={"Boot": shown},
        times=-1,
        skip=1 if keeps == "url" else 2,  # until the device is set
    )
    with pytest.raises(errors.StepFailure, match="does not show it as done after 1 s"):
        walk(task, lambda: boot.prepare_instance(task), most=9999)


def test_a_device_that_a_bmc_forgets_is_read_back_before_each_power_on(
    hasty: Any, make_machine: Any
) -> None:
    machine, boot = make_machine("lenovo-xcc"), RedfishHttps(hasty)
    task = make_task(hasty, machine, instance_info={"boot_iso": OS})
    walk(task, lambda: boot.prepare_instance(task))
    power_on(task)
    task.turn = 0
    walk(task, lambda: task.driver.power.set_power_state(task, "power off"), most=999)
    machine.bmc.faults.add(kind="status", status=204, body=None, method="PATCH", times=-1)
    with pytest.raises(errors.PowerStateFailure, match="boot from uefihttp, and does not show it"):
        power_on(task)
    assert machine.system.power == "Off"


@pytest.mark.parametrize("interface", [RedfishVirtualMedia, RedfishHttps])
def test_an_iso_that_nobody_hands_out_is_given_to_no_machine(
    conf: Any, make_machine: Any, interface: Any
) -> None:
    looks = dataclasses.replace(conf.conductor, preflight_timeout=5)
    machine, boot = make_machine(), interface(dataclasses.replace(conf, conductor=looks))
    task = make_task(conf, machine, instance_info={"boot_iso": "http://127.0.0.1:9/none.iso"})
    with pytest.raises(
        errors.InvalidParameterValue, match=r"cannot fetch http://127\.0\.0\.1:9/none"
    ):
        walk(task, lambda: boot.prepare_instance(task))
    assert (machine.system.media, machine.system.http_uri) == ({"Cd": None}, "")


@pytest.mark.parametrize("ends", ["clean_up_ramdisk", "clean_up_instance"])
def test_the_bmc_keeps_no_url_of_a_boot_that_is_over(
    conf: Any, make_machine: Any, ends: str
) -> None:
    machine, boot = make_machine(), RedfishHttps(conf)
    task = make_task(conf, machine, instance_info={"boot_iso": OS})
    walk(task, lambda: boot.prepare_instance(task))
    assert boots(machine) == ("UefiHttp", "Continuous", OS)
    task.turn = 0
    walk(task, lambda: getattr(boot, ends)(task), most=999)
    assert boots(machine) == ("Hdd", "Once", "")


def test_a_bmc_that_quotes_the_url_spreads_no_login(conf: Any, make_machine: Any) -> None:
    machine, boot = make_machine("lenovo-xcc"), RedfishHttps(conf)
    task = make_task(conf, machine, instance_info={"boot_iso": OS})
    body = {"error": {"code": "Base.1.0.GeneralError", "message": f"cannot fetch {OS}"}}

    def refuse() -> None:
        machine.bmc.faults.add(kind="status", status=400, method="PATCH", body=body, times=-1)

    refuse()
    with pytest.raises(errors.BmcRefused, match="cannot fetch") as refused:
        walk(task, lambda: boot.prepare_instance(task))
    assert "hush" not in str(refused.value)
    machine.bmc.faults.clear()
    task.turn = 0
    walk(task, lambda: boot.prepare_instance(task))
    walk(task, lambda: task.driver.power.set_power_state(task, "power off"), most=999)
    machine.system.set_boot(target="None", enabled="Disabled")
    refuse()
    task.turn = 0
    with pytest.raises(errors.BmcRefused, match="cannot fetch") as refused:
        walk(task, lambda: task.driver.power.set_power_state(task, "power on"), most=999)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("targets", "reason"),
    [
        (("Pxe", "Hdd"), "cannot boot from uefihttp: its BMC offers pxe, disk"),
        (("Pxe", "UefiHttp"), "cannot boot from a URL: its BMC has no HttpBootUri"),
    ],
)
def test_a_machine_that_boots_from_no_url_is_refused_while_it_runs(
    conf: Any, make_machine: Any, targets: tuple[str, ...], reason: str
) -> None:
    machine = make_machine("dmtf-rackmount1")
    machine.system.spec = dataclasses.replace(machine.system.spec, targets=targets)
    machine.system._on = True
    task = make_task(conf, machine)
    with pytest.raises(errors.InvalidParameterValue, match=reason):
        RedfishHttps(conf).prepare_ramdisk(task, {})
    assert (machine.system.power, machine.system.happened) == ("On", [])


@pytest.mark.parametrize(
    "values",
    [{"properties": {"capabilities": "boot_mode:bios"}}, {"boot_mode": "bios"}],
    ids=["asked", "found"],
)
def test_a_node_of_boot_mode_bios_is_refused(conf: Any, make_machine: Any, values: Any) -> None:
    task = make_task(conf, make_machine(), **values)
    with pytest.raises(errors.InvalidParameterValue, match="boot_mode:uefi"):
        RedfishHttps(conf).validate(task)
