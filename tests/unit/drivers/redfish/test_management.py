from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from bloomery import errors
from bloomery.drivers.redfish import boot_device, inspect, media, reset
from bloomery.drivers.redfish.bios import RedfishBios
from bloomery.drivers.redfish.firmware import RedfishFirmware
from bloomery.drivers.redfish.management import RedfishManagement
from bloomery.drivers.redfish.power import RedfishPower
from bloomery.lab.rack import Rack
from bloomery.outcome import DONE
from tests.kit.machines.driver_task import FakeTask, walk

SENT = {"what": "set boot mode bios", "until": "2026-01-01T00:00:00+00:00", "tasks": []}
ONCE_ONLY = {"kind": "status", "status": 400, "path": "/Systems/", "method": "PATCH"}


@pytest.fixture
def management(conf):
    return RedfishManagement(conf)


def test_a_bmc_that_keeps_no_device_is_asked_for_one_boot(management, task, machine):
    machine.bmc.faults.add(times=2, **ONCE_ONLY)
    management.set_boot_device(task, "pxe", persistent=True)
    assert machine.system.boot["enabled"] == "Once"
    assert task.node.driver_internal_info == {"redfish_boot_device": "pxe"}
    management.set_boot_device(task, "disk", persistent=True)
    assert machine.system.boot == {"target": "Hdd", "enabled": "Continuous", "mode": "UEFI"}
    assert task.node.driver_internal_info == {}


def test_how_long_it_counts_is_not_repeated_when_it_is_so(management, task, machine):
    management.set_boot_device(task, "pxe", persistent=True)
    management.set_boot_device(task, "disk", persistent=True)
    assert management.get_boot_device(task) == {"boot_device": "disk", "persistent": True}


def test_no_override_is_no_device(management, task):
    assert management.get_boot_device(task) == {"boot_device": None, "persistent": None}


def test_the_boot_mode_is_set_where_it_differs(management, task, machine):
    assert management.get_boot_mode(task) == "uefi"
    assert management.set_boot_mode(task, "bios") == DONE
    assert machine.system.boot["mode"] == "Legacy"
    asked = machine.bmc.requests
    assert management.set_boot_mode(task, "bios") == DONE
    assert machine.bmc.requests <= asked + 2
    with pytest.raises(errors.InvalidParameterValue, match="it knows uefi, bios"):
        management.set_boot_mode(task, "coreboot")


@pytest.mark.parametrize("power", ["power off", "power on"])
def test_a_mode_that_takes_a_restart_gets_one_and_power_is_as_before(conf, management, power):
    with Rack(1, mode_at_boot=True) as rack:
        machine = rack.machines[0]
        machine.system._on = power == "power on"
        task = FakeTask(machine.driver_info, power_state=power)
        task.driver = SimpleNamespace(power=RedfishPower(conf))
        walk(task, lambda: management.set_boot_mode(task, "bios"), most=1000)
        assert machine.system.boot["mode"] == "Legacy"
        assert f"power {machine.system.power.lower()}" == power
        assert "boots from None in Legacy mode" in machine.system.happened
        assert task.node.driver_internal_info == {}


def test_a_mode_that_never_takes_effect_is_given_up(management, task, machine):
    task.driver = SimpleNamespace(power=RedfishPower(management.conf))
    task.turn = 1
    task.node.driver_internal_info = {
        "substeps": {"redfish_setting": 2},
        "redfish_write": SENT,
    }
    with pytest.raises(errors.StepFailure, match="order to set boot mode bios, and does not"):
        management.set_boot_mode(task, "bios")
    assert task.node.driver_internal_info == {}


def test_a_mode_that_is_so_leaves_a_machine_on_that_is_recorded_as_off(management, task, machine):
    machine.system._on, task.node.power_state = True, "power off"
    task.driver = SimpleNamespace(power=RedfishPower(management.conf))
    assert management.set_boot_mode(task, "uefi") == DONE
    assert (machine.system.power, task.saves, task.node.driver_internal_info) == ("On", 0, {})


def test_a_machine_that_was_off_is_off_again_when_a_mode_is_given_up(management, task, machine):
    machine.system._on = True
    task.driver = SimpleNamespace(power=RedfishPower(management.conf))
    task.node.driver_internal_info = {
        "substeps": {"redfish_setting": 2},
        "redfish_write": SENT | {"was_off": True},
    }
    task.node.power_state = "power on"
    with pytest.raises(errors.StepFailure, match="does not show it as done"):
        walk(task, lambda: management.set_boot_mode(task, "bios"), first=1)
    assert (machine.system.power, task.node.power_state) == ("Off", "power off")
    assert task.node.driver_internal_info == {}


def test_secure_boot_needs_uefi(management, task, machine):
    assert management.get_secure_boot_state(task) is False
    assert management.set_secure_boot_state(task, True) == DONE
    assert machine.system.secure_next is True
    management.set_boot_mode(task, "bios")
    with pytest.raises(errors.InvalidParameterValue, match="set boot mode uefi first"):
        management.set_secure_boot_state(task, True)


def test_an_nmi_reaches_a_machine_that_runs(management, task, machine):
    with pytest.raises(errors.BmcRefused, match=r"refused: HTTP 409: Nmi: the system is Off$"):
        management.inject_nmi(task)
    machine.system._on = True
    management.inject_nmi(task)
    assert machine.system.happened[-2:][0] == "reset Nmi"


def test_vendor_and_health_are_told(management, task):
    assert management.detect_vendor(task) == "Lab"
    assert management.get_node_health(task) == "OK"


@pytest.mark.parametrize("status", [None, "OK", {}, {"Health": "Fine"}, {"Health": ["OK"]}])
def test_a_health_that_no_schema_has_is_unknown(management, task, machine, status):
    body = {"Id": "1", "Status": status}
    machine.bmc.faults.add(kind="status", status=200, body=body, path="/Systems/", times=-1)
    assert management.get_node_health(task) is None


def test_bios_settings_come_with_what_the_registry_says(conf, task):
    found = RedfishBios(conf).cache_bios_settings(task).result["bios_settings"]
    by_name = {setting["name"]: setting for setting in found}
    assert by_name["ProcTurboMode"]["value"] == "Enabled"
    assert by_name["ProcTurboMode"]["allowable_values"] == ["Enabled", "Disabled"]
    assert by_name["NumCores"] | {"value": "2", "attribute_type": "Integer"} == by_name["NumCores"]
    assert by_name["QuietBoot"]["reset_required"] is True


def test_firmware_is_that_of_bios_bmc_and_network_adapters(conf, task):
    found = RedfishFirmware(conf).cache_firmware_components(task).result["firmware"]
    assert found == [
        {
            "component": "bios", "current_version": "2.0.0", "vendor": "Lab", "model": "Simulated",
        },
        {"component": "bmc", "current_version": "1.0.0", "model": "Lab BMC"},
        {
            "component": "nic:NLABA64472E6", "current_version": "3.0.0", "model": "LAB-NIC",
            "serial_number": "NLABA64472E6", "vendor": "Lab",
        },
    ]  # fmt: skip


@pytest.fixture
def bmc_of():
    """Make a machine behind a BMC of some make, and the node that is it."""
    with contextlib.ExitStack() as racks:

        def make(model, **more):
            machine = racks.enter_context(Rack(1, model=model, **more)).machines[0]
            task = FakeTask(machine.driver_info)
            task.node.driver = "redfish"
            return machine, task

        yield make


@pytest.mark.parametrize(
    ("offered", "word"),
    [
        (("None", "Cd", "UsbCd"), "UsbCd"),
        (("None", "CD/DVD", "Usb"), "CD/DVD"),
        (("None", "UefiCd", "Usb"), "UefiCd"),
        (("None", "Usb"), "Usb"),
    ],
)
def test_a_cd_goes_by_many_names(management, bmc_of, offered, word):
    machine, task = bmc_of("supermicro-x10", targets=offered)
    management.set_boot_device(task, "cdrom")
    assert machine.system.boot["target"] == word
    assert management.get_boot_device(task) == {"boot_device": "cdrom", "persistent": False}
    assert management.get_supported_boot_devices(task) == ("cdrom",)


def test_a_device_that_the_bmc_does_not_offer_is_refused_before_it_is_asked(management, bmc_of):
    machine, task = bmc_of("generic", targets=("None", "Pxe"))
    with pytest.raises(errors.InvalidParameterValue, match=r"from cdrom: its BMC offers pxe$"):
        management.set_boot_device(task, "cdrom", persistent=True)
    assert machine.system.boot["target"] == "None"
    assert task.node.driver_internal_info == {}


def test_a_bmc_that_tells_no_devices_is_asked_in_the_standard_s_words():
    shown = {"BootSourceOverrideTarget": "None"}
    system = SimpleNamespace(boot=None, manufacturer="Supermicro", json={"Boot": shown})
    assert [boot_device.target_for(system, d) for d in ("pxe", "cdrom")] == ["Pxe", "Cd"]
    assert boot_device.supported(system) == ["pxe", "disk", "cdrom", "bios", "uefihttp"]


def test_the_devices_of_a_mute_bmc_are_those_that_redfish_knows(management, task, machine):
    machine.bmc.faults.add(kind="hang", seconds=5, times=-1)
    known = ("pxe", "disk", "cdrom", "bios", "uefihttp")
    assert management.get_supported_boot_devices(task) == known


def test_what_a_bmc_cannot_do_is_remembered_until_it_can(conf, bmc_of):
    machine, task = bmc_of("openbmc-gb300")
    power = RedfishPower(conf)
    machine.system._on = True
    with pytest.raises(errors.InvalidParameterValue, match="no GracefulRestart: its resets are On"):
        power.set_power_state(task, "soft rebooting")
    assert "redfish_power" not in task.node.driver_internal_info
    assert "soft rebooting" not in power.get_supported_power_states(task)
    task.node.driver_internal_info[reset.MEMORY] = ["soft power off"]  # as of another firmware
    walk(task, lambda: power.set_power_state(task, "rebooting"), most=1000)
    assert "soft power off" in power.get_supported_power_states(task)


def drives(management, task):
    return management.access.read(task, inspect.look)["disks"]


def test_a_drive_that_answers_500_twice_is_left_out_and_once_is_not(management, task, machine):
    fault = {"kind": "status", "status": 500, "path": "Drives/1"}
    machine.bmc.faults.add(times=1, **fault)
    assert len(drives(management, task)) == 2
    machine.bmc.faults.add(times=2, **fault)
    assert len(drives(management, task)) == 1


@pytest.mark.parametrize("body", [{}, {"Id": "1", "CapacityBytes": "much"}, ["odd"]])
def test_a_drive_that_makes_no_sense_is_left_out(management, task, machine, body):
    machine.bmc.faults.add(kind="status", status=200, path="Drives/1", body=body, times=-1)
    assert [drive["name"] for drive in drives(management, task)] == ["Drive 0"]


def test_a_registry_that_makes_no_sense_leaves_the_settings(conf, task, machine):
    machine.bmc.faults.add(
        kind="status", status=200, path="LabBios.1.0/en", body={"RegistryEntries": 7}, times=-1,
    )  # fmt: skip
    found = RedfishBios(conf).cache_bios_settings(task).result["bios_settings"]
    assert {"name": "NumCores", "value": "2"} in found


@pytest.mark.parametrize("kind", ["nojson", "truncate"])
def test_an_answer_that_is_no_document_is_no_document_that_is_missing(
    management, task, machine, kind
):
    machine.bmc.faults.add(kind=kind, path="Drives/1", times=-1)
    with pytest.raises(errors.BmcUnreachable):
        drives(management, task)


def test_silence_is_no_document_that_is_missing(management, task, machine):
    machine.bmc.faults.add(kind="reset", path="Drives/1", times=-1)
    with pytest.raises(errors.BmcUnreachable):
        drives(management, task)


@pytest.mark.parametrize(("model", "has"), [("generic", True), ("supermicro-x10", False)])
def test_a_virtual_drive_is_looked_for_without_changing_anything(management, bmc_of, model, has):
    machine, task = bmc_of(model)
    assert management.access.read(task, media.has_drive) is has
    assert machine.system.happened == []


def test_a_virtual_drive_that_stumbles_is_no_drive_that_is_missing(management, task, machine):
    machine.bmc.faults.add(
        kind="status", status=500, path="VirtualMedia/Cd", method="GET", times=-1
    )
    with pytest.raises(errors.BmcUnreachable):
        management.access.read(task, media.has_drive)


@pytest.mark.parametrize(("model", "requests"), [("generic", 6), ("dell-idrac", 8)])
def test_a_registry_is_asked_for_by_its_name_first(conf, bmc_of, model, requests):
    machine, task = bmc_of(model)
    found = RedfishBios(conf).cache_bios_settings(task).result["bios_settings"]
    assert found[0]["attribute_type"]
    assert machine.bmc.requests == requests  # root, login, system, BIOS, and two; else all files
