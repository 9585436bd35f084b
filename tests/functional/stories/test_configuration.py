"""Steps that configure a machine: its BIOS, its volumes, its firmware."""

from __future__ import annotations

import pytest

from bloomery.db import rows

BOOT = {"name": "boot", "value": "uefi"}
CORES = {"name": "cores", "value": 8}
ROOT = {"size_gb": 100, "raid_level": "1", "is_root_volume": True}
DATA = {"size_gb": "MAX", "raid_level": "5"}


@pytest.fixture
def node(stage):
    return stage.bring_to("manageable")


def clean(stage, node, interface, step, *, state="manageable", **args):
    steps = [{"interface": interface, "step": step, "args": args}]
    stage.ask(node, "clean", clean_steps=steps)
    return stage.wait_for(node, state)


def bios(stage, node):
    settings = stage.api.get(f"/v1/nodes/{node}/bios").json["bios"]
    return {setting["name"]: setting["value"] for setting in settings}


def test_bios_settings_are_those_that_were_applied_last(stage, node):
    clean(stage, node, "bios", "apply_configuration", settings=[BOOT, CORES])
    assert bios(stage, node) == {"boot": "uefi", "cores": "8"}
    clean(stage, node, "bios", "apply_configuration", settings=[BOOT | {"value": None}])
    assert bios(stage, node) == {"boot": None}
    clean(stage, node, "bios", "factory_reset")
    assert bios(stage, node) == {}


@pytest.mark.parametrize(
    ("interface", "settings"),
    [
        ("bios", "boot"), ("bios", None), ("bios", [{"name": "boot"}]),
        ("bios", [["boot", "uefi"]]),
        ("bios", [{"name": 7, "value": "x"}]), ("bios", [{"name": "n" * 256, "value": "x"}]),
        ("firmware", [{"component": "bmc"}]),
    ],
    ids=str,
)  # fmt: skip
def test_settings_of_another_form_fail_the_step_by_name(stage, node, interface, settings):
    step = {"bios": "apply_configuration", "firmware": "update"}[interface]
    shown = clean(stage, node, interface, step, state="clean failed", settings=settings)
    assert "settings" in shown["last_error"]
    assert bios(stage, node) == {}


def test_firmware_takes_an_update(stage, node):
    settings = [{"component": "bmc", "url": "http://images/bmc.bin"}]
    assert clean(stage, node, "firmware", "update", settings=settings)["last_error"] is None


@pytest.mark.parametrize(
    ("args", "volumes"),
    [
        ({}, [ROOT, DATA]),
        ({"create_root_volume": False}, [DATA]),
        ({"create_nonroot_volumes": False}, [ROOT]),
    ],
)
def test_volumes_are_those_of_the_target(stage, node, args, volumes):
    stage.site.set(node, target_raid_config=rows.dump({"logical_disks": [ROOT, DATA]}))
    shown = clean(stage, node, "raid", "create_configuration", **args)
    assert shown["raid_config"] == {"logical_disks": volumes}
    assert clean(stage, node, "raid", "delete_configuration")["raid_config"] == {}
    assert stage.show(node)["target_raid_config"] == {"logical_disks": [ROOT, DATA]}


def test_without_a_target_nothing_is_created(stage, node):
    shown = clean(stage, node, "raid", "create_configuration", state="clean failed")
    assert "has no target_raid_config" in shown["last_error"]


def test_a_deployment_brings_its_own_volumes(stage):
    node = stage.bring_to("available")
    config = {"logical_disks": [ROOT]}
    step = {"interface": "raid", "step": "apply_configuration", "priority": 95}
    stage.ask(node, "active", deploy_steps=[step | {"args": {"raid_config": config}}])
    assert stage.wait_for(node, "active")["raid_config"] == config
    step = {"interface": "raid", "step": "apply_configuration"}
    more = {"raid_config": {"logical_disks": [DATA]}, "delete_existing": False}
    stage.ask(node, "service", service_steps=[step | {"args": more}])
    assert stage.wait_for(node, "active")["raid_config"] == {"logical_disks": [ROOT, DATA]}


@pytest.mark.parametrize("config", [{}, "all", {"logical_disks": []}, {"logical_disks": [{}]}])
def test_volumes_that_cannot_be_fail_the_deployment(stage, config):
    node = stage.bring_to("available")
    step = {"interface": "raid", "step": "apply_configuration", "priority": 95}
    stage.ask(node, "active", deploy_steps=[step | {"args": {"raid_config": config}}])
    shown = stage.wait_for(node, "deploy failed")
    assert "(deploy step raid.apply_configuration" in shown["last_error"]
    assert shown["raid_config"] == {}
