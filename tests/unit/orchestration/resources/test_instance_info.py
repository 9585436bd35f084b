"""What an Instance writes on its node, and what a change of its properties comes to."""

from __future__ import annotations

import json

import pytest

from bloomery.orchestration.plan.plans import Unknown
from bloomery.orchestration.resources.effects import NO_EFFECT
from bloomery.orchestration.resources.instance_fields import info_of, properties_of
from bloomery.orchestration.resources.instance_info import (
    changes,
    config_drive,
    effect_of_repair,
    effect_of_update,
)

POLICIES = {"image_update_policy": "rebuild", "user_data_update_policy": "ignore"}


@pytest.mark.parametrize(
    ("names", "policies", "expected"),
    [
        (["name"], {}, {"patch"}),
        (["image"], {}, {"rebuild"}),
        (["image"], {"image_update_policy": "rebuild_preserve_ephemeral"}, {"rebuild"}),
        (["image"], {"image_update_policy": "replace"}, {"replace"}),
        (["image"], {"image_update_policy": "ignore"}, {"later"}),
        (["user_data"], {}, {"later"}),
        (["ssh_keys"], {"user_data_update_policy": "rebuild"}, {"rebuild"}),
        (["meta_data"], {"user_data_update_policy": "replace"}, {"replace"}),
        (["deploy_steps", "power"], {}, {"rebuild", "power"}),
        (["networks"], {}, {"attach"}),
        (["selector"], {}, {"replace"}),
    ],
)
def test_a_change_says_what_it_does(names, policies, expected):
    assert changes(POLICIES | policies, dict.fromkeys(names)) == expected


def test_a_plan_says_what_is_lost():
    assert "root disk is lost" in effect_of_update({}, POLICIES, {"image"}).reason
    assert effect_of_update({}, POLICIES, {"name"}) == NO_EFFECT


@pytest.mark.parametrize(
    ("after", "is_written"),
    [
        ({"image": {"source": "http://a"}}, True),
        ({"image": {"boot_iso": "http://a"}}, False),
        ({"image": {"source": "http://a", "boot_iso": "http://a"}}, True),
        ({"image": {"boot_iso": "http://a"}, "custom_deploy": {"deploy": "ramdisk"}}, False),
        ({"image": {"boot_iso": "http://a"}, "custom_deploy": {"deploy": "custom-agent"}}, True),
        ({"image": {"boot_iso": "http://a"}, "deploy_steps": [{"step": "create"}]}, True),
        ({"image": {"boot_iso": "http://a"}, "traits": ["CUSTOM_RAID"]}, True),
        ({"image": Unknown()}, True),
        ({"image": {"boot_iso": "http://a", "source": Unknown()}}, True),
    ],
)
def test_a_rebuild_that_only_boots_an_iso_loses_no_data(after, is_written):
    effect = effect_of_update({}, POLICIES | after, {"image"})
    assert (effect.verbs, effect.loses_data) == (("rebuild",), is_written)
    assert ("no disk is written" in effect.reason) is not is_written
    assert effect_of_repair(POLICIES | after, ()).loses_data is is_written


def test_what_is_not_said_is_not_written():
    image = {"source": "http://a", "os_hash_algo": "sha256", "os_hash_value": None}
    properties = {"image": image, "root_gb": 0, "traits": [], "secure_boot": True,
                  "capabilities": {"a": "b"}, "custom_deploy": {"deploy": "ramdisk"}}  # fmt: skip
    assert info_of(properties) == {
        "image_source": "http://a", "image_os_hash_algo": "sha256", "root_gb": 0,
        "capabilities": {"a": "b", "secure_boot": "true"}, "deploy_interface": "ramdisk",
    }  # fmt: skip


def test_a_config_drive_is_made_of_its_parts():
    assert config_drive({"ssh_keys": []}, "web") is None
    assert config_drive({"configdrive": "http://drive"}, "web") == "http://drive"
    drive = config_drive({"ssh_keys": ["ssh-ed25519 A"], "meta_data": {"a": 1}}, "web")
    names = {"hostname": "web", "name": "web"}
    assert drive == {"meta_data": {**names, "a": 1, "public_keys": {"0": "ssh-ed25519 A"}}}
    users = [{"name": "ann", "ssh_keys": ["k"], "sudo": "ALL=(ALL) ALL"}]
    head, _, text = config_drive({"users": users}, "web")["user_data"].partition("\n")
    assert head == "#cloud-config"
    default, ann = json.loads(text)["users"]
    assert (default, ann["name"], ann["lock_passwd"]) == ("default", "ann", True)


@pytest.mark.parametrize(
    ("info", "properties", "left"),
    [
        ({}, {}, []),
        ({"image_source": "http://a", "kernel": "http://k", "boot_iso": ""},
         {"image": {"source": "http://a", "kernel": "http://k"}}, []),
        ({"deploy_interface": "ramdisk"}, {"custom_deploy": {"deploy": "ramdisk"}}, []),
        ({"root_gb": 20, "traits": ["A"], "tags": [], "extra": {"a": 1}},
         {"root_gb": 20, "traits": ["A"], "extra": {"a": 1}}, []),
        ({"root_gb": "20", "swap_mb": 1}, {"swap_mb": 1}, ["root_gb"]),
        ({"capabilities": {"boot_mode": "uefi", "secure_boot": "false"}},
         {"boot_mode": "uefi", "secure_boot": False, "capabilities": {}}, []),
        ({"capabilities": {"boot_mode": "odd", "secure_boot": "True"}},
         {"capabilities": {"boot_mode": "odd", "secure_boot": "True"}}, []),
        ({"capabilities": "boot_mode:uefi"}, {}, ["capabilities"]),
        ({"configdrive": "c2", "stack": {"id": "1"}, "mine": 1}, {}, ["configdrive", "mine"]),
    ],
)  # fmt: skip
def test_properties_are_read_from_what_is_written(info, properties, left):
    """The way back loses nothing that it does not name."""
    read, unread = properties_of(info)
    assert ({"capabilities": {}} | read, unread) == ({"capabilities": {}} | properties, left)
    rest = {key: value for key, value in info.items() if key not in [*left, "stack"] and value}
    assert info_of(read) == rest
