"""Secure boot that an instance asks for: on when it boots, off when it is gone, refused in time."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

import pytest

from bloomery.drivers import registry
from bloomery.lab.rack import Machine
from tests.functional.redfish.conftest import ISO, available, conf, manageable
from tests.kit.servers.dying import Dead, Mortal
from tests.kit.servers.site import Site, database
from tests.kit.servers.stories import Stage

ASKS = {"secure_boot": "true", "boot_mode": "uefi"}
COMMITS = 8  # of a deployment, at least


def asking(stage: Stage, node: str, **capabilities: str) -> str:
    stage.patch(node, **{"instance_info.capabilities": capabilities or ASKS})
    return node


def refusal(stage: Stage, node: str) -> str:
    """Return why the node cannot be deployed; empty: it can."""
    answer = stage.api.get(f"/v1/nodes/{node}/validate").json["deploy"]
    return "" if answer["result"] else str(answer["reason"])


def settled(stage: Stage, node: str, verb: str, state: str) -> dict[str, object]:
    stage.ask(node, verb)
    return stage.wait_for(node, state)


@pytest.mark.parametrize("late", [False, True], ids=["shown at once", "shown after a boot"])
def test_an_iso_boots_with_it_and_leaves_it_off(stage: Stage, make_rack, late: bool) -> None:
    machine = make_rack(mode_at_boot=late).machines[0]
    node = asking(stage, available(stage, machine))
    shown = settled(stage, node, "active", "active")
    assert (shown["secure_boot"], machine.system.booted["secure"]) == (True, True)
    assert machine.system.booted["image"] == ISO
    shown = settled(stage, node, "deleted", "available")
    assert (shown["secure_boot"], shown["driver_internal_info"]) == (False, {})
    assert (machine.system.secure_next is False) is not late
    assert machine.system.secure is not late


def test_what_was_on_before_stays_on(stage: Stage, machine: Machine) -> None:
    machine.system.secure = True
    node = asking(stage, available(stage, machine))
    settled(stage, node, "active", "active")
    settled(stage, node, "deleted", "available")
    assert (machine.system.secure, machine.system.secure_next) == (True, None)


def test_an_instance_that_no_longer_asks_boots_without(stage: Stage, machine: Machine) -> None:
    node = asking(stage, available(stage, machine))
    settled(stage, node, "active", "active")
    asking(stage, node, secure_boot="false")
    settled(stage, node, "rebuild", "active")
    assert machine.system.booted["secure"] is False


def test_properties_say_what_a_machine_could_do(stage: Stage, machine: Machine) -> None:
    node = available(stage, machine)
    stage.patch(node, **{"properties.capabilities": "secure_boot:true"})
    settled(stage, node, "active", "active")
    assert machine.system.booted["secure"] is False


@pytest.mark.parametrize(
    ("capabilities", "reason"),
    [
        ({"secure_boot": "true", "boot_mode": "bios"}, "it boots in mode bios"),
        ({"secure_boot": "perhaps"}, "secure_boot must be true or false"),
        ({"trusted_boot": "true"}, "cannot boot with trusted boot: no TPM is asked"),
    ],
)
def test_what_cannot_be_is_refused(
    stage: Stage, machine: Machine, capabilities: dict[str, str], reason: str
) -> None:
    node = asking(stage, available(stage, machine), **capabilities)
    assert reason in refusal(stage, node)
    answer = stage.api.put(f"/v1/nodes/{node}/states/provision", {"target": "active"})
    assert (answer.status, reason in str(answer.json)) == (400, True)


def test_a_machine_in_bios_mode_is_refused_unless_uefi_is_asked_for(stage, machine) -> None:
    machine.system.boot["mode"] = "Legacy"
    node = asking(stage, available(stage, machine), secure_boot="true")
    assert "it boots in mode bios" in refusal(stage, node)
    assert refusal(stage, asking(stage, node)) == ""


def test_a_bmc_without_the_resource_is_refused(stage: Stage, make_rack) -> None:
    machine = make_rack(model="supermicro-x10").machines[0]
    node = manageable(stage, machine)
    stage.patch(node, **{"instance_info.boot_iso": ISO})
    assert refusal(stage, node) == ""
    reason = refusal(stage, asking(stage, node))
    assert "its BMC shows no secure boot" in reason
    assert "`baremetal node secure boot on NODE`" in reason
    assert node not in reason


def test_a_deployment_that_fails_leaves_nothing_on(stage: Stage, machine: Machine) -> None:
    node = asking(stage, available(stage, machine))
    boot = {"method": "PATCH", "path": "Systems/[^/]+$"}
    machine.bmc.faults.add(kind="status", status=400, times=-1, **boot)
    settled(stage, node, "active", "deploy failed")
    assert machine.system.secure_next is True
    settled(stage, node, "deleted", "available")
    assert machine.system.secure_next is False


def test_an_undeployment_says_that_secure_boot_could_not_be_switched_off(
    stage: Stage, machine: Machine
) -> None:
    node = asking(stage, available(stage, machine))
    settled(stage, node, "active", "active")
    machine.bmc.faults.add(kind="status", status=400, times=-1, method="PATCH", path="SecureBoot$")
    shown = settled(stage, node, "deleted", "error")
    assert "cannot switch secure boot off" in shown["last_error"]


@pytest.mark.parametrize("verb", ["deleted", "rebuild"])
def test_a_management_interface_that_cannot_switch_it_off_fails_nothing(
    make_site, machine: Machine, caplog, verb: str
) -> None:
    default = dataclasses.replace(conf().default, enabled_management_interfaces=("redfish", "noop"))
    stage = Stage(make_site(registry=registry.load(dataclasses.replace(conf(), default=default))))
    node = asking(stage, available(stage, machine))
    settled(stage, node, "active", "active")
    stage.patch(node, maintenance=True)
    stage.patch(node, management_interface="noop", instance_info={"boot_iso": ISO})
    stage.patch(node, maintenance=False)
    shown = settled(stage, node, verb, {"deleted": "available", "rebuild": "active"}[verb])
    assert "secure_boot_of_instance" not in shown["driver_internal_info"]
    assert "secure boot stays on: management interface noop cannot" in caplog.text
    assert machine.system.secure is True


@pytest.mark.parametrize("commits", range(COMMITS))
def test_whenever_the_process_dies_it_is_switched_on_and_off(
    tmp_path: Path, make_rack, commits: int
) -> None:
    machine, path = make_rack(mode_at_boot=True).machines[0], tmp_path / "mortal.sqlite"
    db = database(path, Mortal)
    assert isinstance(db, Mortal)
    dead = Stage(Site(path, db=db, registry=registry.load(conf())))
    node = asking(dead, available(dead, machine))
    db.lives = db.commits + commits
    with contextlib.suppress(Dead):
        dead.ask(node, "active")
    assert db.died.wait(10)
    heir = Stage(dead.site.restarted())
    try:
        if heir.show(node)["provision_state"] == "available":
            heir.ask(node, "active")
        heir.wait_for(node, "active")
        assert machine.system.booted["secure"] is True
        settled(heir, node, "deleted", "available")
        assert machine.system.secure is False
    finally:
        heir.site.close()
