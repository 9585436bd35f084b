"""BIOS settings and firmware by Redfish: from the steps that a user asks for to the machine."""

from __future__ import annotations

import pytest

from bloomery.lab import models
from tests.functional.redfish.conftest import manageable

RESET = {"interface": "bios", "step": "factory_reset"}


def apply(**values):
    settings = [{"name": name, "value": value} for name, value in values.items()]
    return {"interface": "bios", "step": "apply_configuration", "args": {"settings": settings}}


def clean(stage, node, *steps):
    """Run steps in a cleaning without an agent; return the node."""
    stage.ask(node, "clean", clean_steps=list(steps), disable_ramdisk=True)
    stage.site.wait_for_state(node, "manageable", "clean failed")
    stage.wait_until_free(node)
    return stage.show(node)


def shown(stage, node):
    return {
        each["name"]: each["value"] for each in stage.api.get(f"/v1/nodes/{node}/bios").json["bios"]
    }


@pytest.fixture
def node(stage, machine):
    return manageable(stage, machine)


# --------------------------------------------------------------------------------------- BIOS


@pytest.mark.parametrize("model", models.ALL)
@pytest.mark.parametrize("runs", [True, False])
def test_settings_are_applied_behind_any_make_by_one_restart(stage, make_rack, model, runs) -> None:
    machine = make_rack(model=model).machines[0]
    machine.system._on = runs
    node = manageable(stage, machine)
    ended = clean(stage, node, apply(ProcTurboMode="Disabled", NumCores="4", QuietBoot="false"))
    assert (ended["provision_state"], ended["last_error"]) == ("manageable", None)
    bios = machine.system.bios
    assert (bios["ProcTurboMode"], bios["NumCores"], bios["QuietBoot"]) == ("Disabled", 4, False)
    assert sum(what.startswith("boots from") for what in machine.system.happened) == 1
    assert machine.system.power == ("On" if runs else "Off")
    assert ended["power_state"] == f"power {machine.system.power.lower()}"
    assert shown(stage, node)["NumCores"] == "4"
    assert not [key for key in ended["driver_internal_info"] if key.startswith("redfish_setting")]


def test_settings_that_are_so_restart_nothing(stage, machine, node) -> None:
    ended = clean(stage, node, apply(ProcTurboMode="Enabled", NumCores=2))
    assert ended["last_error"] is None
    assert machine.system.happened == []


def test_settings_that_another_change_would_undo_are_set_again(stage, machine, node) -> None:
    machine.system.bios_next = {"ProcTurboMode": "Disabled"}
    assert clean(stage, node, apply(ProcTurboMode="Enabled"))["last_error"] is None
    assert machine.system.bios_next == {"ProcTurboMode": "Enabled"}
    assert machine.system.happened == []


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("ProcTurboMode", "Maybe", "it takes one of Enabled, Disabled"),
        ("NumCores", "many", "it takes a whole number"),
        ("QuietBoot", "perhaps", "it takes true or false"),
        ("Turbo", "Enabled", "the BIOS has no such setting"),
    ],
)
def test_a_setting_that_cannot_be_is_named_before_anything_is_set(
    stage, machine, node, name, value, told
) -> None:
    ended = clean(stage, node, apply(SriovGlobalEnable="Enabled", **{name: value}))
    assert ended["provision_state"] == "clean failed"
    assert f"cannot set {name} of the BIOS: {told}" in ended["last_error"]
    assert (machine.system.bios_next, machine.system.happened) == ({}, [])


def test_the_factory_settings_come_back_once_the_bios_has_started(stage, make_rack) -> None:
    machine = make_rack(post_s=0.5).machines[0]
    machine.system.bios["NumCores"] = 8
    node = manageable(stage, machine)
    ended = clean(stage, node, RESET, apply(ProcTurboMode="Disabled"))
    assert (ended["provision_state"], ended["last_error"]) == ("manageable", None)
    assert (machine.system.bios["NumCores"], machine.system.bios["ProcTurboMode"]) == (
        2,
        "Disabled",
    )
    assert (shown(stage, node)["NumCores"], machine.system.power) == ("2", "Off")


def test_an_instance_is_restarted_to_get_its_settings(stage, machine, node) -> None:
    stage.site.set(node, provision_state="active", power_state="power on")
    machine.system._on = True
    stage.ask(node, "service", service_steps=[apply(ProcTurboMode="Disabled")])
    assert stage.wait_for(node, "active")["last_error"] is None
    assert (machine.system.bios["ProcTurboMode"], machine.system.power) == ("Disabled", "On")


@pytest.mark.parametrize("step", [apply(NumCores=4), RESET])
def test_a_machine_without_bios_settings_is_told_so(stage, machine, node, step) -> None:
    machine.bmc.faults.add(kind="status", status=404, path="/Bios$", times=-1)
    ended = clean(stage, node, step)
    assert "its BMC shows no BIOS settings" in ended["last_error"]
