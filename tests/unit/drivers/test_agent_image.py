"""What of an image is refused before a machine is touched, and what an agent is told of it."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.agent import Agent, Deploy
from bloomery.drivers.agent import image
from tests.kit.machines.driver_task import FakeTask

URL = "http://images.test/os.qcow2"
SHA256, SHA512, MD5 = "ab" * 32, "ab" * 64, "ab" * 16


def task(driver_info: dict[str, Any] | None = None, **info: Any) -> FakeTask:
    """A node with an image that is right, but for what is named; None: left out."""
    full = {"image_source": URL, "image_checksum": SHA256} | info
    kept = {name: value for name, value in full.items() if value is not None}
    return FakeTask(driver_info or {}, instance_info=kept)


PARTITION = {"image_type": "partition", "root_gb": "10", "swap_mb": 512, "ephemeral_gb": 2}
INSTALLS = dataclasses.replace(Conf(), agent=Agent(enable_bios_bootloader_install=True))
RIGHT = [
    {"image_source": "oci://registry.test/os", "image_checksum": None, "image_disk_format": "raw"},
    {},
    {"image_checksum": MD5},
    {"image_checksum": SHA512.upper()},
    {"image_checksum": "https://images.test/SHA256SUMS"},
    {"image_checksum": None, "image_os_hash_algo": "sha512", "image_os_hash_value": SHA512},
    {"image_checksum": None, "image_os_hash_algo": "sha256",
     "image_os_hash_value": "http://images.test/SHA256SUMS"},
    {"image_disk_format": "raw"},
    {"image_type": "whole-disk", "image_download_source": "http"},
    {"root_device": {"size": ">= 40", "rotational": False}},
    PARTITION,
    {"kernel": "http://images.test/vmlinuz", "root_gb": 10},
    {"kernel": "http://images.test/vmlinuz", "image_type": "whole-disk"},
    PARTITION | {"capabilities": "boot_option:local,disk_label:msdos", "ephemeral_format": "xfs"},
    PARTITION | {"capabilities": "boot_mode:bios"},
]  # fmt: skip


@pytest.mark.parametrize("info", RIGHT, ids=str)
def test_what_an_agent_can_write_is_fine(info: dict[str, Any]) -> None:
    image.check(task(**info), INSTALLS)


MISSING = [
    ({"image_source": None}, "image_source"),
    ({"image_checksum": None}, "image_checksum"),
    ({"image_type": "partition"}, "root_gb"),
    ({"kernel": "http://images.test/vmlinuz"}, "root_gb"),
    ({"image_checksum": None, "image_os_hash_algo": "sha256"}, "image_os_hash_value"),
]
WRONG = [
    ({"image_source": "file:///srv/os.qcow2"}, "image_source"),
    ({"image_source": "4a2f9c1e-0000-4000-8000-000000000000"}, "image_source"),
    ({"image_source": "oci://registry.test"}, "image_source"),
    ({"image_source": "http://"}, "image_source"),
    ({"image_source": "http://[::1"}, "image_source"),
    ({"image_source": 7}, "image_source"),
    ({"image_type": "partition", "root_gb": 0}, "root_gb"),
    ({"image_type": "partition", "root_gb": "ten"}, "root_gb"),
    (PARTITION | {"swap_mb": -1}, "swap_mb"),
    (PARTITION | {"ephemeral_gb": 1.5}, "ephemeral_gb"),
    (PARTITION | {"ephemeral_format": "ext4 -F"}, "ephemeral_format"),
    (PARTITION | {"preserve_ephemeral": True}, "preserve_ephemeral"),
    (PARTITION | {"capabilities": "boot_option:netboot"}, "boot_option"),
    (PARTITION | {"capabilities": {"disk_label": "loop"}}, "disk_label"),
    (PARTITION | {"capabilities": "boot_mode:bios"}, "enable_bios_bootloader_install"),
    (PARTITION | {"capabilities": "boot_mode:uefi"}, "enable_bios_bootloader_install"),
    ({"image_download_source": "swift"}, "image_download_source 'swift'"),
    ({"image_disk_format": "vmdk"}, "image_download_source = local takes vmdk"),
    ({"image_disk_format": "vhd", "image_download_source": "local"}, "image_disk_format"),
    ({"image_checksum": "abc"}, "image_checksum"),
    ({"image_checksum": "zz" * 32}, "image_checksum"),
    ({"image_checksum": "ftp://images.test/sums"}, "image_checksum"),
    ({"image_os_hash_algo": "sha1", "image_os_hash_value": "ab" * 20}, "sha1"),
    ({"image_os_hash_algo": "sha256", "image_os_hash_value": SHA512}, "image_os_hash_value"),
    ({"root_device": {"colour": "red"}}, "colour"),
    ({"root_device": "/dev/sda"}, "root_device"),
]


@pytest.mark.parametrize(("info", "name"), MISSING, ids=str)
def test_what_is_missing_is_named(info: dict[str, Any], name: str) -> None:
    with pytest.raises(errors.MissingParameterValue, match=name):
        image.check(task(**info), Conf())


@pytest.mark.parametrize(("info", "name"), WRONG, ids=str)
def test_what_cannot_be_written_is_refused_by_name(info: dict[str, Any], name: str) -> None:
    with pytest.raises(errors.InvalidParameterValue, match=name):
        image.check(task(**info), Conf())


def test_md5_is_refused_where_the_operator_allows_none() -> None:
    strict = dataclasses.replace(Conf(), agent=Agent(allow_md5_checksum=False))
    with pytest.raises(errors.InvalidParameterValue, match="allow_md5_checksum"):
        image.check(task(image_checksum=MD5), strict)


def test_who_fetches_an_image_is_the_instances_the_nodes_or_the_operators_choice() -> None:
    conf = dataclasses.replace(Conf(), agent=Agent(image_download_source="local"))
    local, http = {"image_download_source": "local"}, {"image_download_source": "http"}
    assert image.download_source(task(), Conf()) == image.HTTP
    assert image.download_source(task(), conf) == image.LOCAL
    assert image.download_source(task(http), conf) == image.HTTP
    assert image.download_source(task(http, **local), Conf()) == image.LOCAL


def test_a_password_in_a_refused_address_is_masked() -> None:
    with pytest.raises(errors.InvalidParameterValue) as refused:
        image.check(task(image_source="ftp://user:geheim@images.test/os"), Conf())
    assert "geheim" not in str(refused.value)


def test_hints_of_the_node_itself_are_looked_at_too() -> None:
    node = task()
    node.node.properties = {"root_device": {"colour": "red"}}
    with pytest.raises(errors.InvalidParameterValue, match="colour"):
        image.check(node, Conf())


def test_a_proxy_must_be_one() -> None:
    with pytest.raises(errors.InvalidParameterValue, match="driver_info/image_https_proxy"):
        image.check(task({"image_https_proxy": "proxy:3128"}), Conf())


def test_an_agent_is_told_of_proxies_login_and_config_drive() -> None:
    node = task(
        {"image_http_proxy": "http://proxy.test:3128", "image_no_proxy": "10.0.0.1"},
        configdrive="H4sI",
    )
    login = Deploy(
        image_server_auth_strategy="http_basic", image_server_user="u", image_server_password="p"
    )
    told = image.parameters(node, dataclasses.replace(Conf(), deploy=login))
    assert told["configdrive"] == "H4sI"
    found = told["image_info"]
    assert found["proxies"] == {"http": "http://proxy.test:3128"}
    assert found["no_proxy"] == "10.0.0.1"
    assert found["checksum"] == SHA256
    names = ("image_server_auth_strategy", "image_server_user", "image_server_password")
    assert [found[name] for name in names] == ["http_basic", "u", "p"]


def test_an_agent_is_told_nothing_that_is_not_there() -> None:
    found = image.parameters(task(), Conf())["image_info"]
    assert not {"proxies", "no_proxy", "os_hash_algo", "image_server_user"} & set(found)


@pytest.mark.parametrize(("mode", "label"), [("uefi", "gpt"), ("bios", "msdos")])
def test_an_agent_is_told_the_partitions_to_make(mode: str, label: str) -> None:
    node = task(**PARTITION, capabilities=f"boot_mode:{mode}", configdrive="H4sI")
    image_info = image.parameters(node, Conf())["image_info"]
    expected = {
        "image_type": "partition", "root_gb": 10, "root_mb": 10240, "swap_mb": 512,
        "ephemeral_mb": 2048, "ephemeral_format": "ext4", "preserve_ephemeral": False,
        "boot_option": "local", "deploy_boot_mode": mode, "disk_label": label,
        "configdrive": "H4sI",
    }  # fmt: skip
    assert expected.items() <= image_info.items()


@pytest.mark.parametrize(("mode", "is_refused"), [("uefi", False), ("bios", True)])
def test_software_raid_in_bios_mode_needs_a_boot_loader_of_the_agent(
    mode: str, is_refused: bool
) -> None:
    node = task(capabilities=f"boot_mode:{mode}", image_rootfs_uuid="r-1")
    node.node.raid_config = {"logical_disks": [{"controller": "software"}]}
    image.check(node, INSTALLS)
    refused = pytest.raises(errors.InvalidParameterValue, match="enable_bios_bootloader_install")
    with refused if is_refused else contextlib.nullcontext():
        image.check(node, Conf())
