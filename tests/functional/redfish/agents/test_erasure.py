"""Disks that the agent erases are proved, with serial numbers and methods, and signed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from bloomery import signatures
from bloomery.cli.main import main
from bloomery.db import hardware

WHOLE = {"interface": "deploy", "step": "erase_devices"}
METADATA = {"interface": "deploy", "step": "erase_devices_metadata"}


def disk(name: str, serial: str) -> dict[str, Any]:
    return {"name": name, "serial": serial, "model": "SSD", "size": 10**12, "hctl": "0:0:0:0"}


@pytest.fixture
def erasing(server, node) -> str:
    """A node with two disks, both of which its agent erases."""
    server.inventory = {"disks": [disk("/dev/sda", "S-1"), disk("/dev/sdb", "S-2")]}
    server.results["erase_devices"] = {"/dev/sda": None, "/dev/sdb": None}
    return str(node)


def clean(stage, ramdisk, node: str, *steps: Any) -> dict[str, Any]:
    stage.ask(node, "clean", clean_steps=list(steps))
    return ramdisk.live_until(node, "manageable", "clean failed")


def prove(stage, node: str) -> dict[str, Any]:
    return stage.api.get(f"/ext/v1/nodes/{node}/erasure").json


def shown(erasure: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(each["name"], each["serial"], each["is_erased"]) for each in erasure["disks"]]


def test_whole_disks_are_proved_with_serials_methods_and_times(stage, erasing, ramdisk):
    assert prove(stage, erasing)["proof"]["erasures"] == []
    assert clean(stage, ramdisk, erasing, WHOLE)["provision_state"] == "manageable"
    (erasure,) = prove(stage, erasing)["proof"]["erasures"]
    assert shown(erasure) == [("/dev/sda", "S-1", True), ("/dev/sdb", "S-2", True)]
    assert erasure["methods"] == [
        "NVMe secure erase", "ATA secure erase", "overwrite: 1 random, then zeros",
    ]  # fmt: skip
    assert erasure["began_at"] < erasure["ended_at"]
    assert "agent_erasure" not in stage.site.node(erasing).driver_internal_info


def test_metadata_is_told_from_whole_disks_and_the_newest_comes_first(stage, erasing, ramdisk):
    clean(stage, ramdisk, erasing, WHOLE, METADATA)
    newest, whole = prove(stage, erasing)["proof"]["erasures"]
    assert (newest["step"], whole["step"]) == ("erase_devices_metadata", "erase_devices")
    assert newest["methods"] == ["metadata alone: partition tables and signatures"]
    assert shown(newest) == shown(whole)


def test_a_disk_that_was_left_out_fails_the_cleaning(stage, erasing, ramdisk):
    del ramdisk.server.results["erase_devices"]["/dev/sdb"]
    failed = clean(stage, ramdisk, erasing, WHOLE)
    assert failed["provision_state"] == "clean failed"
    assert "the agent did not erase /dev/sdb: exclude such disks by" in failed["last_error"]
    assert prove(stage, erasing)["proof"]["erasures"] == []


@pytest.mark.parametrize("way", ["by the node", "by the option"])
def test_a_disk_may_be_left_out_where_that_was_told(stage, erasing, ramdisk, monkeypatch, way):
    del ramdisk.server.results["erase_devices"]["/dev/sdb"]
    if way == "by the node":
        stage.patch(erasing, **{"properties.skip_block_devices": [{"name": "/dev/sdb"}]})
    else:
        direct = stage.site.runtime.registry.interfaces["deploy"]["direct"]
        allowing = replace(direct.conf.deploy, allow_partial_erasure=True)
        monkeypatch.setattr(direct, "conf", replace(direct.conf, deploy=allowing))
    assert clean(stage, ramdisk, erasing, WHOLE)["provision_state"] == "manageable"
    (erasure,) = prove(stage, erasing)["proof"]["erasures"]
    assert shown(erasure) == [("/dev/sda", "S-1", True), ("/dev/sdb", "S-2", False)]


def test_a_step_that_names_no_disks_proves_nothing_where_disks_are_excluded(
    stage, erasing, ramdisk
):
    hint = [{"name": "/dev/sdb"}]
    stage.patch(erasing, **{"properties.skip_block_devices": hint})
    clean(stage, ramdisk, erasing, METADATA)
    (erasure,) = prove(stage, erasing)["proof"]["erasures"]
    assert erasure["excluded"] == hint
    assert shown(erasure) == [("/dev/sda", "S-1", False), ("/dev/sdb", "S-2", False)]


def test_a_retired_machine_ends_erased_switched_off_and_proved(stage, erasing, ramdisk):
    stage.configure("deploy", erase_devices_priority=10)
    stage.site.set(erasing, provision_state="active", retired=True, power_state="power on")
    stage.ask(erasing, "deleted")
    shown_last = ramdisk.live_until(erasing, "manageable", "clean failed")
    assert (shown_last["provision_state"], shown_last["power_state"]) == ("manageable", "power off")
    assert ramdisk.machine.system.power == "Off"
    (erasure,) = prove(stage, erasing)["proof"]["erasures"]
    assert shown(erasure) == [("/dev/sda", "S-1", True), ("/dev/sdb", "S-2", True)]


def test_a_failed_erasure_proves_nothing(stage, erasing, ramdisk):
    ramdisk.server.fails["execute_clean_step"] = "sdb: Input/output error"
    assert clean(stage, ramdisk, erasing, WHOLE)["provision_state"] == "clean failed"
    assert prove(stage, erasing)["proof"]["erasures"] == []
    assert "agent_erasure" not in stage.site.node(erasing).driver_internal_info


def test_inventory_that_gets_lost_is_asked_for_again(stage, erasing, ramdisk):
    ramdisk.server.loses_answers_to.add("poll.get_hardware_info")
    assert clean(stage, ramdisk, erasing, WHOLE)["provision_state"] == "manageable"
    assert ramdisk.server.told.count("clean.execute_clean_step") == 1
    (erasure,) = prove(stage, erasing)["proof"]["erasures"]
    assert len(shown(erasure)) == 2


def test_disks_of_the_inspection_that_no_erasure_met_are_missing(stage, erasing, ramdisk):
    gone = disk("/dev/sdc", "S-3")
    inventory = {"disks": [disk("/dev/sdb", "S-1"), gone]}  # names change, serials do not
    stage.site.runtime.db.transact(
        lambda conn: hardware.replace_inventory(conn, erasing, {"inventory": inventory})
    )
    assert len(prove(stage, erasing)["proof"]["missing"]) == 2
    clean(stage, ramdisk, erasing, WHOLE)
    assert [each["serial"] for each in prove(stage, erasing)["proof"]["missing"]] == ["S-3"]


def test_anybody_can_check_the_signature_and_a_change_breaks_it(stage, erasing, ramdisk, tmp_path):
    clean(stage, ramdisk, erasing, WHOLE)
    document = prove(stage, erasing)
    file, keys = tmp_path / "proof.json", tmp_path / "keys.pem"
    other = signatures.public_key(signatures.signer(b"x" * 43 + b"="))
    keys.write_text(other + stage.site.runtime.sealer.public_keys()[0])

    def check(content: str) -> Any:
        file.write_text(content)
        command = ["node", "check-erasure", str(file), "--public-key", str(keys)]
        return CliRunner().invoke(main, command)

    text = json.dumps(document, indent=2)
    assert check(text).exit_code == 0
    changed = check(text.replace("S-2", "S-9"))
    assert (changed.exit_code, "was changed" in changed.stderr) == (1, True)
    assert "cannot check" in check("{}").stderr
    keys.write_text(other)
    assert "none of the 1 public keys" in check(text).stderr
