"""A machine's life over real HTTP: what we say of it is what happened in the rack."""

from __future__ import annotations

import pytest

from bloomery.conductor.periodics.power_sync import PowerSync
from bloomery.lab.rack import Machine
from tests.functional.redfish.conftest import ISO, available, enrol, manageable
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for


def test_a_machine_is_verified_by_reading_its_power(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    assert stage.show(node)["power_state"] == "power off"
    assert machine.system.happened == []


def test_a_machine_that_is_deployed_runs_from_the_iso_that_was_named(stage, machine, asked) -> None:
    node = available(stage, machine)
    asked.clear()
    stage.ask(node, "active")
    shown = stage.wait_for(node, "active")
    assert shown["power_state"] == machine_power(machine) == "power on"
    assert machine.system.booted["image"] == ISO
    assert machine.system.boot == {"target": "Cd", "enabled": "Continuous", "mode": "UEFI"}
    assert machine.system.happened == [
        f"media inserted: {ISO}", "reset On", "boots from Cd in UEFI mode", "power is On",
    ]  # fmt: skip
    assert set(stage.site.node(node).driver_internal_info) == set()
    of_media = [each.partition("/VirtualMedia") for each in asked if "/VirtualMedia" in each]
    assert [f"{start.split()[0]} {end}" for start, _, end in of_media] == [
        "GET ", "GET /Cd", "POST /Cd/Actions/VirtualMedia.InsertMedia", "GET /Cd",
    ], "a plain BMC is asked once more than an order alone needs"  # fmt: skip
    until_reset = [each.partition(" ")[0] for each in asked if "Reset" not in each][:8]
    assert until_reset == ["GET", "GET", "GET", "POST", "GET", "GET", "PATCH", "GET"], asked
    assert "Reset" in asked[8], "what is read back serves the look before the power on"


def test_a_machine_that_runs_is_switched_off_before_it_is_deployed(stage, machine) -> None:
    node = available(stage, machine)
    stage.power(node, "power on")
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    happened = machine.system.happened
    assert happened.index("reset ForceOff") < happened.index(f"media inserted: {ISO}")
    assert happened[-1] == "power is On"
    assert machine.system.booted["image"] == ISO


def test_a_machine_without_a_virtual_cd_is_found_out_before_its_power_is_cut(
    stage, machine
) -> None:
    machine.system.media.clear()
    node = available(stage, machine)
    stage.power(node, "power on")
    machine.system.history.clear()
    stage.ask(node, "active")
    shown = stage.wait_for(node, "deploy failed")
    assert "offers no virtual CD" in shown["last_error"]
    assert machine.system.happened == []
    assert shown["power_state"] == machine_power(machine) == "power on"


def test_the_bmc_gets_the_signature_of_an_iso(stage: Stage, machine: Machine) -> None:
    node, signed = available(stage, machine), "https://s3.test/os.iso?X-Amz-Signature=hunter2"
    stage.patch(node, **{"instance_info.boot_iso": signed})
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    assert machine.system.media["Cd"] == signed
    assert stage.show(node)["instance_info"]["boot_iso"] == "https://s3.test/os.iso?******"


def test_an_iso_of_a_former_user_is_taken_out(stage: Stage, machine: Machine) -> None:
    machine.system.insert("http://images.test/old.iso")
    node = available(stage, machine)
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    assert machine.system.media == {"Cd": ISO}


def test_a_torn_down_machine_is_off_and_has_no_media(stage: Stage, machine: Machine) -> None:
    node = available(stage, machine)
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    stage.ask(node, "deleted")
    shown = stage.wait_for(node, "available")
    assert shown["power_state"] == machine_power(machine) == "power off"
    assert machine.system.media == {"Cd": None}
    assert machine.system.happened[-1] == "media ejected"


def test_reboot_switches_off_and_on(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    stage.power(node, "power on")
    machine.system.history.clear()
    assert stage.power(node, "rebooting")["power_state"] == "power on"
    orders = [what for what in machine.system.happened if what.startswith("reset")]
    assert orders == ["reset ForceOff", "reset On"]


def test_soft_power_off_asks_the_guest(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    stage.power(node, "power on")
    assert stage.power(node, "soft power off")["power_state"] == "power off"
    assert "reset GracefulShutdown" in machine.system.happened


def test_power_that_is_there_already_is_not_asked_for(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    assert stage.power(node, "power off")["last_error"] is None
    assert machine.system.happened == []


def machine_steps(*names: str) -> list[dict[str, str]]:
    return [{"interface": "power", "step": name} for name in names]


@pytest.mark.parametrize("flow", ["clean", "service", "deploy"])
@pytest.mark.parametrize(
    ("steps", "power"),
    [
        (("power_on",), "power on"),
        (("power_on", "power_off"), "power off"),
        (("reboot",), "power on"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else "",
)
def test_a_power_sync_leaves_a_machine_as_a_step_left_it(
    stage, machine, flow, steps, power
) -> None:
    node = node_after(stage, machine, flow, machine_steps(*steps))
    shown = stage.show(node)
    assert shown["power_state"] == power, shown["last_error"]
    ordered = list(machine.system.happened)
    sync = PowerSync(stage.site.runtime)
    sync.run()
    wait_for(lambda: sync.is_idle, "the look to end")
    stage.wait_until_free(node)
    assert machine.system.happened == ordered
    assert machine_power(machine) == stage.show(node)["power_state"] == power


def node_after(stage, machine, flow: str, steps: list[dict[str, str]]) -> str:
    """Return a node that came through a flow with these steps."""
    if flow == "clean":
        node = manageable(stage, machine)
        stage.ask(node, "clean", clean_steps=steps)
        stage.wait_for(node, "manageable")
        return node
    node = available(stage, machine)
    if flow == "deploy":  # the steps come after the machine was switched on
        numbered = [step | {"priority": 9 - n, "args": {}} for n, step in enumerate(steps)]
        stage.ask(node, "active", deploy_steps=numbered)
        stage.wait_for(node, "active")
        return node
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    stage.power(node, "power off")
    stage.ask(node, "service", service_steps=steps)
    stage.wait_for(node, "active")
    return node


def test_a_boot_device_is_set_and_read_back(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    path = f"/v1/nodes/{node}/management/boot_device"
    wanted = {"boot_device": "pxe", "persistent": True}
    assert stage.api.put(path, wanted).status == 204
    assert machine.system.boot["target"] == "Pxe"
    assert stage.api.get(path).json == wanted
    refused = stage.api.put(path, {"boot_device": "floppy"})
    assert refused.status == 400
    assert b"it knows pxe, disk, cdrom, bios, uefihttp" in refused.body


def test_a_boot_mode_that_takes_a_restart_is_followed_to_its_end(stage, make_rack) -> None:
    machine = make_rack(mode_at_boot=True).machines[0]
    node = manageable(stage, machine)
    assert stage.api.put(f"/v1/nodes/{node}/states/boot_mode", {"target": "bios"}).status == 202
    stage.wait_until_free(node)
    shown = stage.api.get(f"/v1/nodes/{node}/states").json
    assert (shown["boot_mode"], shown["last_error"]) == ("bios", None)
    assert machine.system.boot["mode"] == "Legacy"
    assert machine_power(machine) == shown["power_state"] == "power off"


def test_secure_boot_that_the_machine_cannot_have_is_told(stage, machine) -> None:
    node = manageable(stage, machine)
    path = f"/v1/nodes/{node}/states"
    assert stage.api.put(f"{path}/secure_boot", {"target": True}).status == 202
    stage.wait_until_free(node)
    assert machine.system.secure_next is True
    machine.system.set_boot(mode="Legacy")
    machine.system.secure_next = False
    stage.site.set(node, secure_boot=False)
    assert stage.api.put(f"{path}/secure_boot", {"target": True}).status == 202
    stage.wait_until_free(node)
    assert "set boot mode uefi first" in stage.show(node)["last_error"]


def test_inspection_finds_out_what_schedulers_ask_for(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    stage.patch(node, **{"properties.capabilities": "boot_mode:bios,raid:yes"})
    stage.ask(node, "inspect")
    shown = stage.wait_for(node, "manageable")
    assert shown["last_error"] is None
    assert {k: v for k, v in shown["properties"].items() if k != "vendor"} == {
        "memory_mb": 16384, "cpus": 8, "cpu_arch": "x86_64", "local_gb": 479,
        "capabilities": "raid:yes,boot_mode:uefi",
    }  # fmt: skip


def test_a_bmc_of_one_system_needs_no_system_id(stage: Stage, machine: Machine) -> None:
    info = machine.driver_info | {"redfish_address": machine.address}
    del info["redfish_system_id"]
    node = stage.enrol(driver="redfish", driver_info=info)
    stage.ask(node, "manage")
    assert stage.wait_for(node, "manageable")["power_state"] == "power off"


def test_what_is_missing_is_named_before_anything_is_tried(stage: Stage, machine: Machine) -> None:
    node = enrol(stage, machine)
    report = stage.api.get(f"/v1/nodes/{node}/validate").json
    assert report["power"] == {"result": True}
    assert report["deploy"]["result"] is False
    assert "instance_info/boot_iso is missing" in report["deploy"]["reason"]


def test_a_lost_session_is_renewed(stage: Stage, machine: Machine) -> None:
    node = manageable(stage, machine)
    machine.bmc.sessions.clear()
    assert stage.power(node, "power on")["last_error"] is None
    assert machine_power(machine) == "power on"


def machine_power(machine: Machine) -> str:
    return f"power {machine.system.power.lower()}"


def test_what_a_boot_does_not_carry_out_is_named(stage, machine, caplog) -> None:
    node = available(stage, machine)
    assert stage.api.get(f"/v1/nodes/{node}/validate").json["boot"] == {"result": True}
    link = {"id": "eth0", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:01"}
    stage.patch(
        node,
        network_data={"links": [link], "networks": [], "services": []},
        **{
            "driver_info.external_http_url": "http://images.test:8080",
            "driver_info.deploy_iso": "http://images.test/agent.iso",
            "driver_info.kernel_append_params": "quiet",
        },
    )
    names = "network_data, driver_info/external_http_url, driver_info/kernel_append_params"
    sentence = f"boot interface redfish-virtual-media does not carry out: {names}"
    answer = stage.api.get(f"/v1/nodes/{node}/validate").json["boot"]
    assert answer == {"result": True, "reason": sentence}
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    assert [r.levelname for r in caplog.records if sentence in r.getMessage()] == ["WARNING"]
