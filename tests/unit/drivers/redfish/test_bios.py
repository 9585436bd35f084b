"""Which values a setting of a BIOS takes, and what becomes of steps that are cut off."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bloomery import errors
from bloomery.drivers.redfish import bios
from bloomery.drivers.redfish.bios import RedfishBios
from bloomery.drivers.redfish.power import RedfishPower
from bloomery.lab.rack import Rack
from bloomery.outcome import Again
from tests.kit.machines.driver_task import FakeTask, walk

SETTINGS = [{"name": "NumCores", "value": 6}]


def facts(kind, **more):
    names = ("allowable_values", "lower_bound", "upper_bound", "min_length", "max_length")
    return dict.fromkeys(names) | {"attribute_type": kind, "read_only": False} | more


CORES = facts("Integer", lower_bound=1, upper_bound=8)
TAG = facts("String", min_length=1, max_length=4)


@pytest.mark.parametrize(
    ("value", "current", "known", "written"),
    [
        ("4", 2, CORES, 4),
        (4, None, CORES, 4),
        (12, "rack", TAG, "12"),
        ("TRUE", None, facts("Boolean"), True),
        ("on", "off", facts("Enumeration", allowable_values=["on", "off"]), "on"),
        ("4", 2, None, 4),
        ("0", True, None, False),
    ],
)
def test_a_value_is_written_as_the_bios_writes_it(value, current, known, written):
    assert bios._checked("Name", value, {"Name": current}, known) == written


@pytest.mark.parametrize(
    ("value", "known", "told"),
    [
        (9, CORES, "a whole number of at least 1 and of at most 8"),
        (True, CORES, "a whole number"),
        ("rack-4", TAG, "a text of a length of at least 1 and of at most 4"),
        (None, TAG, "a text"),
        (2, facts("Integer", read_only=True), "it is read only"),
        ("x", facts("Password"), "it is a password"),
        ("high", facts("Enumeration", allowable_values=["on", "off"]), "it takes one of on, off"),
    ],
)
def test_a_value_that_the_registry_rules_out_is_refused(value, known, told):
    with pytest.raises(errors.InvalidParameterValue, match=f"cannot set Name of .*: .*{told}"):
        bios._checked("Name", value, {"Name": None}, known)


def test_a_change_that_a_crash_cut_off_is_asked_for_again(conf):
    with Rack(1) as rack:
        machine, interface = rack.machines[0], RedfishBios(conf)
        task = FakeTask(machine.driver_info, power_state="power off")
        task.driver = SimpleNamespace(power=RedfishPower(conf))
        assert isinstance(interface.apply_configuration(task, SETTINGS), Again)
        walk(task, lambda: interface.apply_configuration(task, SETTINGS), most=1000)
        assert (machine.system.bios["NumCores"], machine.system.power) == (6, "Off")


def test_settings_that_never_come_are_named(conf):
    with Rack(1) as rack:
        task = FakeTask(rack.machines[0].driver_info, power_state="power on")
        task.turn = 1
        until = "2026-01-01T00:00:00+00:00"
        task.node.driver_internal_info = {
            "substeps": {"redfish_setting": 2},
            "redfish_write": {
                "what": "set the BIOS configuration of NumCores",
                "until": until,
                "tasks": [],
            },
        }
        with pytest.raises(
            errors.StepFailure, match="order to set the BIOS configuration of NumCores, and"
        ):
            RedfishBios(conf).apply_configuration(task, SETTINGS)
        assert task.node.driver_internal_info == {}
