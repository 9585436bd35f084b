"""Dell machines by the driver idrac: a whole life, and the steps for a stubborn iDRAC."""

from __future__ import annotations

import copy
import dataclasses

import pytest

from bloomery.conf.default import Default
from bloomery.drivers import registry
from bloomery.drivers.idrac import reset
from bloomery.lab.bmc import Rules
from bloomery.outcome import Again
from tests.functional.redfish import conftest
from tests.functional.redfish.conftest import ISO
from tests.functional.redfish.test_configuration import apply, clean
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

OVERRIDE = {"verify_step_priority_override": {"management.clear_job_queue": "90"}}


@pytest.fixture
def make_stage(make_site):
    def make(**options):
        conf = dataclasses.replace(
            conftest.conf(), default=Default(enabled_hardware_types=("idrac", "redfish"))
        )
        site = make_site(registry=registry.load(conf), bmc_outage_budget=10, **options)
        return Stage(site)

    return make


@pytest.fixture
def stage(make_stage):
    made = make_stage()
    yield made
    assert made.nothing_is_left(), "a reservation is left"


@pytest.fixture
def machine(make_rack):
    return make_rack(model="dell-idrac", rules=Rules(restart_s=0.5)).machines[0]


def manageable(stage, machine):
    node = stage.enrol(driver="idrac", driver_info=machine.driver_info)
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    return node


def step(name, interface="management", **args):
    return {"interface": interface, "step": name, "args": args}


def test_a_dell_machine_is_deployed_from_its_virtual_cd_and_torn_down(stage, machine) -> None:
    node = manageable(stage, machine)
    shown = stage.show(node)
    chosen = {kind: shown[f"{kind}_interface"] for kind in ("bios", "boot", "power", "raid")}
    assert set(chosen.values()) == {"idrac-redfish", "idrac-redfish-virtual-media"}
    stage.ask(node, "inspect")
    assert stage.wait_for(node, "manageable")["last_error"] is None
    stage.ask(node, "provide")
    stage.wait_for(node, "available")
    stage.patch(node, **{"instance_info.boot_iso": ISO})
    stage.ask(node, "active")
    assert stage.wait_for(node, "active")["last_error"] is None
    booted = machine.system.booted
    assert (booted["target"], booted["image"]) == ("VCD-DVD", ISO)
    stage.ask(node, "deleted")
    assert stage.wait_for(node, "available")["last_error"] is None
    assert set(machine.system.media.values()) == {None}


def test_an_idrac_is_reset_and_its_job_queue_cleared(stage, machine) -> None:
    node = manageable(stage, machine)
    machine.system.jobs = {"BIOS"}
    ended = clean(stage, node, step("known_good_state"))
    assert (ended["provision_state"], ended["last_error"]) == ("manageable", None)
    assert machine.system.happened == ["BMC restarts", "job queue cleared"]
    assert machine.system.jobs == set()
    assert not [key for key in ended["driver_internal_info"] if key.startswith("idrac")]


@pytest.mark.parametrize("kind", ["BIOS", "RAID"])
def test_a_pending_job_is_removed_where_it_refuses_a_change(stage, machine, kind) -> None:
    node = manageable(stage, machine)
    machine.system.jobs = {kind}
    if kind == "BIOS":
        ended = clean(stage, node, apply(NumCores=4))
        assert machine.system.bios["NumCores"] == 4
    else:
        disk = {"raid_level": "0", "size_gb": 10}
        config = {"logical_disks": [disk]}
        every = {"raid_config": config, "create_nonroot_volumes": True}
        ended = clean(stage, node, step("apply_configuration", "raid", **every))
        assert len(machine.system.volumes) == 1
    assert ended["last_error"] is None
    assert "job queue cleared" in machine.system.happened


def test_a_pending_job_refuses_a_change_of_the_driver_redfish_in_words(stage, machine) -> None:
    node = conftest.manageable(stage, machine)
    machine.system.jobs = {"BIOS"}
    ended = clean(stage, node, apply(NumCores=4))
    assert "a configuration job of BIOS is pending" in ended["last_error"]


def test_the_job_queue_is_cleared_at_enrolment_where_the_options_ask_for_it(
    make_stage, machine
) -> None:
    machine.system.jobs = {"BIOS"}
    manageable(make_stage(**OVERRIDE), machine)
    assert machine.system.jobs == set()


@pytest.mark.parametrize("model", ["generic", "hpe-ilo6"])
def test_a_bmc_without_dells_services_is_verified_and_refuses_the_steps(
    make_stage, make_rack, model
) -> None:
    machine = make_rack(model=model).machines[0]
    stage = make_stage(**OVERRIDE)
    node = manageable(stage, machine)
    assert stage.show(node)["last_error"] is None
    for name, service in (("clear_job_queue", "DellJobService"), ("reset_idrac", "DelliDRAC")):
        ended = clean(stage, node, step(name))
        assert (
            f"offers no {'DeleteJobQueue' if name[0] == 'c' else 'iDRACReset'}"
            in (ended["last_error"])
        )
        assert service in ended["last_error"]
        stage.api.delete(f"/v1/nodes/{node}/maintenance")
        stage.ask(node, "manage")
        stage.wait_for(node, "manageable")
    stage.patch(node, **{"instance_info.boot_iso": ISO})


@pytest.mark.parametrize("fault", [{"kind": "reset"}, {"kind": "after"}, {"kind": "status"}])
def test_a_reset_without_an_answer_is_given_again_only_where_it_did_nothing(
    stage, machine, monkeypatch, fault
) -> None:
    monkeypatch.setattr(reset, "_UNCLEAR_S", 0.5)
    node = manageable(stage, machine)
    machine.bmc.faults.add(method="POST", path="iDRACReset", **fault)
    assert clean(stage, node, step("reset_idrac"))["last_error"] is None
    assert machine.system.happened == ["BMC restarts"]


def test_a_reset_that_a_crash_cut_off_is_waited_for_and_not_ordered_again(stage, machine) -> None:
    node = manageable(stage, machine)
    saved = []
    with stage.site.acquire(node) as task:
        task.save = lambda: saved.append(copy.deepcopy(task.node.driver_internal_info))
        assert isinstance(task.driver.management.reset_idrac(task), Again)
        task.driver_internal_info = copy.deepcopy(saved[0])
        reset_again = task.driver.management.reset_idrac
        wait_for(lambda: reset_again(task) is None, "the iDRAC", timeout_s=60, every_s=0.5)
        del task.save
    assert machine.system.happened == ["BMC restarts"]


def test_an_idrac_that_never_comes_back_fails_the_step(stage, machine, monkeypatch) -> None:
    monkeypatch.setattr(reset, "_LIMIT_S", 1.0)
    node = manageable(stage, machine)
    machine.bmc.faults.add(
        method="POST", path="GetRemoteServicesAPIStatus", kind="status", status=503, times=-1
    )
    ended = clean(stage, node, step("reset_idrac"))
    assert "the iDRAC was reset, and is not ready after" in ended["last_error"]
