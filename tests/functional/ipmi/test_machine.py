"""A machine with an IPMI BMC is enrolled, powered, and told what to boot."""

from __future__ import annotations

import pytest

from bloomery.lab import ipmi as lab
from bloomery.outcome import Again

RAW = {"interface": "vendor", "step": "send_raw", "args": {"raw_bytes": "0x00 0x08 0x03 0x08"}}


def reset(**args):
    return {"interface": "vendor", "step": "bmc_reset", "args": args}


@pytest.fixture
def node(stage, machine):
    node = stage.enrol(driver="ipmi", driver_info=machine.driver_info)
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    return node


@pytest.fixture
def keyed(tmp_path, monkeypatch):
    """A machine whose BMC wants a Kg key."""
    with_key = lab._LAN.replace("  guid {guid}", '  guid {guid}\n  bmc_key "two-way"')
    monkeypatch.setattr(lab, "_LAN", with_key)
    with lab.IpmiRack(tmp_path / "keyed", nodes=1) as rack:
        yield rack.machines[0]


@pytest.mark.parametrize(
    ("key", "state", "told"),
    [
        (b"two-way".hex(), "manageable", None),
        ((b"two-way" + bytes(13)).hex(), "manageable", None),
        (b"one-way".hex(), "enroll", "ipmi_password (or ipmi_hex_kg_key) is wrong"),
    ],
)
def test_a_kg_key_opens_the_bmc_and_stays_a_secret(stage, keyed, key, state, told):
    node = stage.enrol(driver="ipmi", driver_info=keyed.driver_info | {"ipmi_hex_kg_key": key})
    stage.ask(node, "manage")
    stage.wait_for(node, state)
    shown = stage.show(node)
    assert shown["driver_info"]["ipmi_hex_kg_key"] == "******"
    assert told is None or told in shown["last_error"]
    assert key not in str(stage.site.everything())


def test_verifying_reads_the_power(stage, machine, node):
    assert stage.show(node)["power_state"] == "power off"
    assert machine.calls == ["get power"]


def test_every_interface_but_boot_and_deploy_is_usable(stage, node):
    said = stage.api.get(f"/v1/nodes/{node}/validate").json
    assert [kind for kind in ("power", "management", "network") if said[kind]["result"]] == [
        "power", "management", "network",
    ]  # fmt: skip
    assert said["deploy"]["reason"].startswith("Driver ipmi does not support deploy")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("before", "target", "after", "asked"),
    [
        ("0", "power on", True, ["set power 1"]),
        ("1", "power off", False, ["set power 0"]),
        ("1", "rebooting", True, ["set power 0", "set power 1"]),
        ("0", "rebooting", True, ["set power 0", "set power 1"]),
        ("1", "soft power off", False, ["set shutdown 1"]),
        ("1", "soft rebooting", True, ["set shutdown 1", "set power 1"]),
    ],
)
def test_power(stage, machine, node, before, target, after, asked):
    (machine.folder / "power").write_text(before)
    shown = stage.power(node, target)
    assert (shown["last_error"], shown["target_power_state"]) == (None, None)
    assert machine.is_on is after
    assert shown["power_state"] == ("power on" if after else "power off")
    assert [call for call in machine.calls if call.startswith("set")] == asked
    assert shown["driver_internal_info"].keys() == {"last_power_state_change"}


def test_a_machine_that_may_not_go_off_is_reset(stage, machine, node):
    stage.patch(node, disable_power_off=True)
    (machine.folder / "power").write_text("1")
    with stage.site.acquire(node) as task:
        assert task.driver.power.reboot(task) == Again(after_s=15, reason="waiting for power on")
    assert machine.calls[-1] == "set reset 1"


@pytest.mark.sampled
@pytest.mark.parametrize("uefi", [True, False])
def test_boot_device(stage, machine, node, uefi):
    stage.patch(node, **{"properties.capabilities": f"boot_mode:{'uefi' if uefi else 'bios'}"})
    place = f"/v1/nodes/{node}/management/boot_device"
    for device, kept in (("pxe", "pxe"), ("cdrom", "cdrom"), ("disk", "default")):
        answer = stage.api.put(place, {"boot_device": device, "persistent": True})
        assert answer.status == 204, answer.body
        assert machine.boot_device == kept
    stage.api.put(place, {"boot_device": "pxe", "persistent": False})
    assert stage.api.get(place).json == {"boot_device": "pxe", "persistent": False}
    assert stage.api.get(f"{place}/supported").json == {
        "supported_boot_devices": ["pxe", "disk", "safe", "cdrom", "bios"]
    }


@pytest.mark.parametrize(
    ("setting", "target", "way"),
    [
        ("boot_mode", "bios", "set capability boot_mode in properties to uefi or bios"),
        ("secure_boot", True, "use the machine's setup, or driver redfish"),
    ],
)
def test_a_boot_mode_and_secure_boot_alone_are_refused_with_the_way_out(
    stage, node, setting, target, way
):
    stage.api.put(f"/v1/nodes/{node}/states/{setting}", {"target": target})
    stage.wait_until_free(node)
    assert way in stage.show(node)["last_error"]


def test_a_boot_mode_that_ipmi_does_not_know_is_warned_of(stage, node):
    stage.patch(node, **{"properties.capabilities": "boot_mode:UEFI"})
    validated = stage.api.get(f"/v1/nodes/{node}/validate").json["management"]
    assert validated["result"]
    assert "does not carry out: capability boot_mode:UEFI" in validated["reason"]
    stage.patch(node, **{"properties.capabilities": "boot_mode:uefi"})
    assert stage.api.get(f"/v1/nodes/{node}/validate").json["management"] == {"result": True}


def test_unknown_boot_device_is_refused(stage, node):
    answer = stage.api.put(f"/v1/nodes/{node}/management/boot_device", {"boot_device": "tape"})
    assert answer.status == 400
    assert "pxe, disk, safe, cdrom, bios" in answer.said


def test_vendor(stage, node):
    with stage.site.acquire(node) as task:
        assert task.driver.management.detect_vendor(task) == "montavista software, inc."


def test_raw_commands_and_a_reset_of_the_bmc_are_steps(stage, node):
    stage.site.provision(node, "clean", steps=[RAW, reset(warm=False)], disable_ramdisk=False)
    stage.site.wait_for_state(node, "manageable", "clean failed")
    assert stage.show(node)["last_error"] is None
    names = [name for name, _ in stage.steps(node, "clean")]
    assert [name for name in names if name.startswith("vendor.")] == [
        "vendor.send_raw", "vendor.bmc_reset",
    ]  # fmt: skip


def test_what_the_bmc_refuses_fails_the_step(stage, node):
    stage.ask(node, "clean", clean_steps=[reset()])  # ipmi_sim knows no warm reset
    stage.wait_for(node, "clean failed")
    assert "refused: MC reset command failed: Invalid command" in stage.show(node)["last_error"]


def passthru(stage, node, method, **info):
    answer = stage.api.post(f"/v1/nodes/{node}/vendor_passthru/{method}", info)
    if answer.status == 202:
        stage.wait_until_free(node)
    return answer


def test_raw_commands_and_a_reset_of_the_bmc_are_called_by_name(stage, node):
    methods = stage.api.get(f"/v1/nodes/{node}/vendor_passthru/methods").json
    assert set(methods) == {"send_raw", "bmc_reset"}
    answer = passthru(stage, node, "send_raw", raw_bytes=RAW["args"]["raw_bytes"])
    assert (answer.status, answer.body) == (202, b"")
    assert passthru(stage, node, "bmc_reset", warm="false").status == 202
    assert stage.show(node)["last_error"] is None
    assert stage.steps(node, "vendor") == [("vendor.passthru", "done")] * 2


def test_what_the_bmc_refuses_of_a_call_is_told_in_last_error(stage, node):
    assert passthru(stage, node, "bmc_reset", warm=True).status == 202
    assert "refused: MC reset command failed" in stage.show(node)["last_error"]


@pytest.mark.parametrize(
    ("method", "info", "told"),
    [
        ("send_raw", {}, "Parameter 'raw_bytes' not passed"),
        ("send_raw", {"raw_bytes": "0x100 1"}, "raw_bytes must be two bytes or more"),
        ("bmc_reset", {"warm": "maybe"}, "Invalid warm"),
        ("bmc_reset", {"cold": True}, "Parameter 'cold' is none of method 'bmc_reset'"),
    ],
)
def test_a_call_of_no_use_is_refused_before_anything_is_sent(stage, node, method, info, told):
    answer = passthru(stage, node, method, **info)
    assert (answer.status, told in answer.said) == (400, True), answer.said


def test_an_nmi_is_asked_of_the_bmc(stage, node):
    answer = stage.api.put(f"/v1/nodes/{node}/management/inject_nmi", {})  # ipmi_sim has none
    assert answer.status == 400
    assert "refused: Set Chassis Power Control to Diag failed" in answer.said


def test_lights_and_media_are_none_of_ipmi(stage, node):
    for path in ("management/indicators", "vmedia"):
        answer = stage.api.get(f"/v1/nodes/{node}/{path}")
        assert (answer.status, "Driver ipmi does not support" in answer.said) == (400, True)


def test_why_tells_of_the_bmc(stage, machine, node):
    told = stage.why(node)["contact"]["bmc"]
    assert told["address"] == f"127.0.0.1:{machine.port}"
    assert told["last_error"] is None


def test_the_properties_of_the_driver(stage):
    properties = stage.api.get("/v1/drivers/ipmi/properties").json
    assert properties["ipmi_address"].startswith("Required.")
    assert "ipmi_force_boot_device" in properties
