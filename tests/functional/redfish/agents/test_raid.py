"""The RAID interface ``agent``: the agent builds what the node asks for, and says what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.machines.agent_server import step

MIRROR = {
    "logical_disks": [
        {"size_gb": 100, "raid_level": "1", "controller": "software", "is_root_volume": True},
        {"size_gb": "MAX", "raid_level": "0", "controller": "software"},
    ],
}
CREATE = {"interface": "raid", "step": "create_configuration"}
DELETE = {"interface": "raid", "step": "delete_configuration"}


@pytest.fixture
def mirrored(stage, node, server) -> str:
    """A manageable node that asks for a mirror, and whose agent can build it."""
    for phase in ("clean", "deploy", "service"):
        server.steps[phase] += [
            step(name, interface="raid")
            for name in ("create_configuration", "delete_configuration", "apply_configuration")
        ]
    server.steps["deploy"][-1]["argsinfo"] = {"raid_config": {"required": True}}
    server.results = dict.fromkeys(("create_configuration", "apply_configuration"), MIRROR)
    stage.patch(node, raid_interface="agent")
    return str(node)


def set_target(stage, node: str, config: Any = MIRROR) -> None:
    stage.api.put(f"/v1/nodes/{node}/states/raid", config)


def clean(stage, ramdisk, node: str, *steps: Any) -> dict[str, Any]:
    stage.ask(node, "clean", clean_steps=list(steps))
    return ramdisk.live_until(node, "manageable", "clean failed")


def test_the_agent_deletes_and_builds_and_the_node_tells_what_is_there(stage, mirrored, ramdisk):
    set_target(stage, mirrored)
    shown = clean(stage, ramdisk, mirrored, DELETE, CREATE)
    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    assert shown["raid_config"]["logical_disks"] == MIRROR["logical_disks"]
    assert shown["raid_config"].keys() == {"logical_disks", "last_updated"}
    assert shown["properties"]["local_gb"] == 100
    asked = ramdisk.server.params["clean.execute_clean_step"]
    assert asked["node"]["target_raid_config"] == MIRROR
    assert ramdisk.server.told.count("clean.execute_clean_step") == 2
    assert clean(stage, ramdisk, mirrored, DELETE)["raid_config"] == {}


def test_a_root_device_that_the_agent_names_becomes_the_nodes(stage, mirrored, ramdisk):
    set_target(stage, mirrored)
    root = {"size_gb": "MAX", "raid_level": "1", "is_root_volume": True}
    hint = {"wwn": "0x5000"}
    ramdisk.server.results["create_configuration"] = {
        "logical_disks": [root | {"root_device_hint": hint}]
    }
    shown = clean(stage, ramdisk, mirrored, CREATE)
    assert shown["properties"]["root_device"] == hint
    assert "local_gb" not in shown["properties"]


def test_what_to_build_must_be_set_first(stage, mirrored, ramdisk):
    shown = clean(stage, ramdisk, mirrored, CREATE)
    assert shown["provision_state"] == "clean failed"
    assert "no target_raid_config: PUT states/raid sets it" in shown["last_error"]
    assert "clean.execute_clean_step" not in ramdisk.server.told


@pytest.mark.parametrize("answer", [{"logical_disks": 7}, "built", {"logical_disks": ["sda"]}])
def test_an_answer_that_is_no_configuration_fails_the_step(stage, mirrored, ramdisk, answer):
    set_target(stage, mirrored)
    ramdisk.server.results["create_configuration"] = answer
    shown = clean(stage, ramdisk, mirrored, CREATE)
    assert shown["provision_state"] == "clean failed"
    assert "the agent's answer is no RAID configuration" in shown["last_error"]


def test_a_deployment_builds_before_it_writes(stage, mirrored, ramdisk):
    stage.site.set(mirrored, provision_state="available")
    stage.patch(mirrored, **{"instance_info.image_rootfs_uuid": "r-7"})
    apply = {
        "interface": "raid", "step": "apply_configuration", "priority": 90,
        "args": {"raid_config": MIRROR},
    }  # fmt: skip
    stage.ask(mirrored, "active", deploy_steps=[apply])
    shown = ramdisk.live_until(mirrored, "active", "deploy failed")
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    assert ramdisk.server.told == [
        "boot", "deploy.get_deploy_steps", "deploy.execute_deploy_step", "standby.prepare_image",
        "image.install_bootloader", "standby.power_off",
    ]  # fmt: skip
    sent = ramdisk.server.params
    assert sent["deploy.execute_deploy_step"]["step"]["args"] == {"raid_config": MIRROR}
    assert sent["image.install_bootloader"]["root_uuid"] == "r-7"
    assert shown["raid_config"]["logical_disks"] == MIRROR["logical_disks"]


def test_the_steps_are_those_of_the_raid_interface_alone(stage, mirrored, ramdisk):
    """With another RAID interface, the agent's steps for RAID are not offered."""
    stage.patch(mirrored, raid_interface="no-raid")
    shown = clean(stage, ramdisk, mirrored, CREATE)
    assert shown["provision_state"] == "clean failed"
    assert "raid.create_configuration" in shown["last_error"]
    assert "clean.execute_clean_step" not in ramdisk.server.told


def test_a_deploy_interface_without_an_agent_is_named(stage, mirrored):
    stage.patch(mirrored, deploy_interface="ramdisk")
    refusal = stage.api.get(f"/v1/nodes/{mirrored}/validate").json["raid"]
    assert refusal["result"] is False
    assert "deploy interface ramdisk does not boot: use direct" in refusal["reason"]
