"""A bootable container is installed by the agent; autodetect asks its registry what it is."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from bloomery.conf import Conf
from tests.functional.redfish.agents.conftest import Ramdisk
from tests.kit.servers import registry
from tests.kit.servers.registry import Registry
from tests.kit.servers.stories import Stage

LOGIN = "puller:open-sesame-9"
AUTH = base64.b64encode(LOGIN.encode()).decode()
STEPS = [
    "deploy.prepare", "deploy.deploy", "deploy.execute_bootc_install", "deploy.set_boot_to_disk",
    "deploy.tear_down_agent", "deploy.switch_to_tenant_network", "deploy.boot_instance",
]  # fmt: skip


@pytest.fixture
def settings(settings: Conf) -> Conf:
    conductor = dataclasses.replace(settings.conductor, preflight_timeout=20)
    return dataclasses.replace(settings, conductor=conductor)


@pytest.fixture
def images(stage: Stage) -> Iterator[Registry]:
    stage.configure("conductor", preflight_timeout=20)
    with registry.serving() as server:
        yield server


def choose(stage: Stage, node: str, interface: str, source: str, **info: Any) -> None:
    stage.patch(node, deploy_interface=interface, instance_info={"image_source": source} | info)


def deployed(stage: Stage, node: str, ramdisk: Ramdisk, **arguments: Any) -> dict[str, Any]:
    stage.ask(node, "active", **arguments)
    return ramdisk.live_until(node, "active", "deploy failed")


@pytest.mark.parametrize("interface", ["autodetect", "bootc"])
def test_a_container_is_installed_with_its_config_drive_and_login(
    stage: Stage, available: str, ramdisk: Ramdisk, images: Registry, interface: str
) -> None:
    images.push_container("os", tag="1")
    images.login = LOGIN
    choose(
        stage, available, interface, images.url("os:1"),
        image_pull_secret=LOGIN, bootc_authorized_keys="ssh-ed25519 AAAA ann",
    )  # fmt: skip
    drive = {"meta_data": {"hostname": "web-1"}}
    shown = deployed(stage, available, ramdisk, configdrive=drive)
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    assert shown["deploy_interface"] == interface
    assert [name for name, _ in stage.steps(available, "deploy")] == STEPS
    assert ramdisk.server.told == [
        "boot", "deploy.get_deploy_steps", "standby.execute_bootc_install", "standby.power_off",
    ]  # fmt: skip
    told = ramdisk.server.params["standby.execute_bootc_install"]
    assert told["configdrive"].startswith("H4sI")
    assert base64.b64decode(told["pull_secret"]).decode() == AUTH
    assert (told["image_source"], told["instance_info"]) == (
        images.url("os:1"), {"bootc_authorized_keys": "ssh-ed25519 AAAA ann"},
    )  # fmt: skip
    assert ramdisk.machine.system.booted["target"] == "Hdd"
    answers = stage.api.get(f"/v1/nodes/{available}").body.decode()
    assert "open-sesame-9" not in answers
    assert AUTH not in answers


def test_autodetect_follows_a_tag_that_becomes_another_kind(
    stage: Stage, available: str, ramdisk: Ramdisk, images: Registry
) -> None:
    choose(stage, available, "autodetect", images.url("os:1"))
    for push, command in (
        (images.push_container, "standby.execute_bootc_install"),
        (lambda name, tag: images.push(name, b"a disk", tag=tag), "standby.prepare_image"),
    ):
        push("os", tag="1")
        validated = stage.api.get(f"/v1/nodes/{available}/validate").json["deploy"]
        assert validated == {"result": True}
        stage.ask(available, "active")
        shown = ramdisk.live_until(available, "active", "deploy failed")
        assert (shown["provision_state"], shown["last_error"]) == ("active", None)
        assert command in ramdisk.server.told
        ramdisk.server.told.clear()
        stage.site.set(available, provision_state="available")


@pytest.mark.parametrize(
    ("interface", "name", "reason"),
    [
        ("direct", "container:1", "it is a container, which deploy interface bootc installs"),
        ("bootc", "disk:1", "but the image of a disk, which deploy interface direct writes"),
        ("bootc", "arm:1", "it is for aarch64, and properties/cpu_arch is x86_64"),
        ("autodetect", "arm:1", "it is for aarch64, and properties/cpu_arch is x86_64"),
        (
            "autodetect",
            "index:1",
            "cannot choose an image of the index for properties/cpu_arch",
        ),
        ("bootc", "none:1", "the registry answers HTTP 404"),
    ],
)
def test_what_the_interface_cannot_install_boots_no_machine(
    stage: Stage, available: str, ramdisk: Ramdisk, images: Registry,
    interface: str, name: str, reason: str,
) -> None:  # fmt: skip
    images.push_container("container", tag="1")
    images.push("disk", b"a disk", tag="1")
    arm = images.push_container("arm", "arm64", tag="1")
    platform = {"platform": {"os": "linux", "architecture": "arm64"}}
    images.push_container("index", "arm64")
    images.push_index("index", [{"digest": arm} | platform], tag="1")
    choose(stage, available, interface, images.url(name))
    stage.patch(available, properties={"cpu_arch": "x86_64"})
    before = len(ramdisk.machine.system.happened)
    refused = stage.api.get(f"/v1/nodes/{available}/validate").json["deploy"]
    assert (refused["result"], reason in refused["reason"]) == (False, True), refused
    answer = stage.try_to(available, "active")
    assert (answer.status, reason in answer.said) == (400, True), answer.said
    assert len(ramdisk.machine.system.happened) == before


def test_an_agent_that_fails_gives_its_reason_without_the_login(
    stage: Stage, available: str, ramdisk: Ramdisk, images: Registry
) -> None:
    images.push_container("os", tag="1")
    twice = base64.b64encode(AUTH.encode()).decode()
    message = f"podman pull failed: {AUTH} {twice} {LOGIN}: no bootc in the container"
    ramdisk.server.fails["execute_bootc_install"] = message
    images.login = LOGIN
    choose(stage, available, "autodetect", images.url("os:1"), image_pull_secret=AUTH)
    shown = deployed(stage, available, ramdisk)
    assert shown["provision_state"] == "deploy failed"
    assert "no bootc in the container" in shown["last_error"]
    history = stage.api.get(f"/v1/nodes/{available}/history/detail").body.decode()
    for text in (AUTH, twice):
        assert text not in shown["last_error"] + history


def test_a_container_without_the_interface_is_refused_with_the_option(
    make_site: Any, settings: Conf, images: Registry, stage: Stage, available: str
) -> None:
    options = dataclasses.replace(settings.default, autodetect_deploy_interfaces=("direct",))
    registry_of = stage.site.runtime.registry
    choice = registry_of.interfaces["deploy"]["autodetect"]
    choice._names = options.autodetect_deploy_interfaces
    images.push_container("os", tag="1")
    choose(stage, available, "autodetect", images.url("os:1"))
    answer = stage.try_to(available, "active")
    assert (answer.status, "enabled_deploy_interfaces" in answer.said) == (400, True), answer.said
