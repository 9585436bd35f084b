"""RAID by Redfish: from the target that the API takes to the volumes that a BMC has."""

from __future__ import annotations

import copy
import dataclasses

import pytest

from bloomery import errors
from bloomery.conf.drivers import Redfish
from bloomery.drivers import registry
from bloomery.drivers.redfish import volumes
from bloomery.lab.bmc import Rules
from tests.functional.redfish import conftest
from tests.functional.redfish.conftest import manageable
from tests.kit.servers.stories import Stage

GIB = 1 << 30
MIRROR = {"raid_level": "1", "size_gb": 100, "is_root_volume": True, "volume_name": "root"}
REST = {"raid_level": "0", "size_gb": "MAX"}
CREATE = {"interface": "raid", "step": "create_configuration"}
DELETE = {"interface": "raid", "step": "delete_configuration"}


@pytest.fixture
def stage(make_site):
    """A site that looks at a task of a BMC after a second."""
    plain = conftest.conf()
    soon = Redfish(
        connect_timeout=1, read_timeout=5, raid_config_status_interval=1,
        power_on_conflict_retry_interval=1,
    )  # fmt: skip
    site = make_site(registry=registry.load(dataclasses.replace(plain, redfish=soon)))
    stage = Stage(site)
    yield stage
    assert stage.nothing_is_left(), "a reservation is left"


@pytest.fixture
def machine(make_rack):
    return make_rack(disks_gib=(480, 480, 960, 960)).machines[0]


@pytest.fixture
def node(stage, machine):
    return manageable(stage, machine)


def aim(stage, node, *disks):
    answer = stage.api.put(f"/v1/nodes/{node}/states/raid", {"logical_disks": list(disks)})
    assert answer.status == 204, answer.body


def clean(stage, node, *steps):
    stage.ask(node, "clean", clean_steps=list(steps))
    stage.site.wait_for_state(node, "manageable", "clean failed")
    stage.wait_until_free(node)
    return stage.show(node)


def made(machine):
    return [
        (v["RAIDType"], v.get("CapacityBytes", 0) // GIB,
         [link["@odata.id"][-1] for link in v["Links"]["Drives"]])
        for v in machine.system.volumes
    ]  # fmt: skip


def test_volumes_of_the_target_are_made_and_shown(stage, machine, node):
    aim(stage, node, REST, MIRROR)
    shown = clean(stage, node, CREATE)
    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    assert made(machine) == [("RAID1", 100, ["0", "1"]), ("RAID0", 0, ["2"])]
    assert machine.system.volumes[0]["Name"] == "root"
    assert shown["raid_config"] == {
        "logical_disks": [
            {"controller": "1", "physical_disks": ["0", "1"], "volume_name": "root",
             "raid_level": "1", "size_gb": 100},
            {"controller": "1", "physical_disks": ["2"], "volume_name": "Volume 2",
             "raid_level": "0"},
        ]
    }  # fmt: skip
    assert "redfish_raid" not in shown["driver_internal_info"]


@pytest.mark.parametrize(
    ("args", "types"),
    [
        ({"create_nonroot_volumes": False}, ["RAID1"]),
        ({"create_root_volume": False}, ["RAID0"]),
    ],
)
def test_a_part_of_the_target_may_be_made(stage, machine, node, args, types):
    aim(stage, node, MIRROR, REST)
    clean(stage, node, CREATE | {"args": args})
    assert [volume["RAIDType"] for volume in machine.system.volumes] == types


def test_what_is_there_may_be_deleted_before(stage, machine, node):
    aim(stage, node, MIRROR)
    clean(stage, node, CREATE)
    shown = clean(stage, node, CREATE | {"args": {"delete_existing": True}})
    assert made(machine) == [("RAID1", 100, ["0", "1"])]
    assert [volume["Id"] for volume in machine.system.volumes] == ["2"]
    assert len(shown["raid_config"]["logical_disks"]) == 1
    assert clean(stage, node, DELETE)["raid_config"] == {}
    assert machine.system.volumes == []


def test_a_bmc_may_take_its_time(stage, make_rack):
    machine = make_rack(disks_gib=(480, 480), rules=Rules(volume_s=0.3)).machines[0]
    node = manageable(stage, machine)
    aim(stage, node, MIRROR)
    shown = clean(stage, node, CREATE)
    assert made(machine) == [("RAID1", 100, ["0", "1"])]
    assert shown["raid_config"]["logical_disks"][0]["raid_level"] == "1"


def test_a_plan_does_not_outlive_its_flow(stage, machine, node, monkeypatch):
    def broken(*args):
        raise KeyError("a fault of any kind")

    aim(stage, node, MIRROR)
    with monkeypatch.context() as patch:
        patch.setattr(volumes, "create", broken)
        shown = clean(stage, node, CREATE)
    assert shown["provision_state"] == "clean failed"
    assert "redfish_raid" not in shown["driver_internal_info"]


@pytest.mark.parametrize(
    ("disk", "told"),
    [
        ({"raid_level": "1", "size_gb": 961}, "1:0 (480 GiB)"),
        ({"raid_level": "5", "size_gb": 1}, "RAID level 5"),  # the lab's controller makes 0 and 1
        ({"raid_level": "0", "size_gb": 1, "disk_type": "hdd"}, "no controller has free drives"),
        ({"raid_level": "0", "size_gb": 1, "controller": "x"}, "no controller has free drives"),
        ({"raid_level": "0", "size_gb": 1, "number_of_physical_disks": 5}, "no controller"),
    ],
)
def test_drives_that_do_not_do_fail_the_step_and_name_those_that_are_free(
    stage, machine, node, disk, told
):
    aim(stage, node, disk)
    shown = clean(stage, node, CREATE)
    assert (shown["provision_state"], told in shown["last_error"]) == ("clean failed", True), shown[
        "last_error"
    ]
    assert machine.system.volumes == []
    assert "redfish_raid" not in shown["driver_internal_info"]


@pytest.mark.parametrize(
    ("disk", "taken"),
    [
        ({"raid_level": "0", "size_gb": 900}, ["2"]),
        ({"raid_level": "0", "size_gb": 961}, ["2", "3"]),
        ({"raid_level": "0", "size_gb": 900, "number_of_physical_disks": 3}, ["0", "1", "2"]),
        ({"raid_level": "0", "size_gb": 10, "physical_disks": ["3"], "controller": "1"}, ["3"]),
        ({"raid_level": "1", "size_gb": 500, "controller": "Lab RAID"}, ["2", "3"]),
        ({"raid_level": "0", "size_gb": 0, "disk_type": "ssd", "interface_type": "sas"}, ["0"]),
    ],
)  # fmt: skip
def test_drives_are_chosen_as_the_target_says(stage, machine, node, disk, taken):
    aim(stage, node, disk)
    assert clean(stage, node, CREATE)["last_error"] is None
    assert made(machine)[0][2] == taken


@pytest.mark.parametrize(
    ("disk", "told"),
    [
        ({"raid_level": "JBOD", "size_gb": 1}, "logical_disks/0/raid_level: redfish makes 0, 1"),
        ({"raid_level": "0", "size_gb": 1, "share_physical_disks": True}, "whole drives"),
        ({"raid_level": "0", "size_gb": 1, "controller": "c", "physical_disks": [{}, {}]}, "hints"),
        ({"raid_level": "0"}, "size_gb"),
    ],
)
def test_what_redfish_does_not_make_is_refused_as_a_target(stage, node, disk, told):
    answer = stage.api.put(f"/v1/nodes/{node}/states/raid", {"logical_disks": [disk]})
    assert (answer.status, told in answer.said) == (400, True), answer.said


def test_a_configuration_may_be_named_in_the_step(stage, machine, node):
    apply = {"interface": "raid", "step": "apply_configuration"}
    config = {"raid_config": {"logical_disks": [MIRROR, REST]}}
    clean(stage, node, apply | {"args": config})
    assert [volume["RAIDType"] for volume in machine.system.volumes] == ["RAID1"]
    assert "size_gb" in clean(stage, node, apply | {"args": {"raid_config": {"logical_disks": [
        {"raid_level": "1"}]}}})["last_error"]  # fmt: skip


def test_without_a_target_there_is_nothing_to_make(stage, node):
    assert "has no target_raid_config" in clean(stage, node, CREATE)["last_error"]


def test_the_driver_tells_what_a_disk_may_be(stage):
    answer = stage.api.get("/v1/drivers/redfish/raid/logical_disk_properties")
    assert (answer.status, "raid_level" in answer.json) == (200, True)


@pytest.mark.parametrize("fault", [{"kind": "after", "status": 503}, {"kind": "truncate"}])
def test_an_answer_that_is_lost_makes_no_volume_twice(stage, machine, node, fault):
    aim(stage, node, REST)
    machine.bmc.faults.add(method="POST", path="/Volumes", **fault)
    assert clean(stage, node, CREATE)["last_error"] is None
    assert made(machine) == [("RAID0", 0, ["0"])]


def test_a_step_that_a_crash_cut_off_goes_on(stage, machine, node):
    aim(stage, node, MIRROR, REST)
    with stage.site.acquire(node) as task:
        task.turn = 0
        machine.bmc.faults.add(kind="status", status=400, method="POST", path="/Volumes", skip=1)
        saved = []
        task.save = lambda: saved.append(copy.deepcopy(task.node.driver_internal_info))
        with pytest.raises(errors.BmcRefused):
            task.driver.raid.create_configuration(task)
        task.node.driver_internal_info = saved[-1]  # as its successor finds it
        outcome = task.driver.raid.create_configuration(task)
        del task.save
    assert len(outcome.result["node"]["raid_config"]["logical_disks"]) == 2
    assert made(machine) == [("RAID1", 100, ["0", "1"]), ("RAID0", 0, ["2"])]


def test_a_volume_that_is_gone_already_is_no_failure(stage, machine, node):
    aim(stage, node, MIRROR)
    clean(stage, node, CREATE)
    machine.bmc.faults.add(kind="after", status=503, method="DELETE", path="/Volumes")
    assert clean(stage, node, DELETE)["last_error"] is None
    assert machine.system.volumes == []
