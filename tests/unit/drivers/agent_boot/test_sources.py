"""Which kernel and ramdisk a node boots, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf.conductor import Conductor
from bloomery.drivers.agent_boot import sources
from tests.kit.machines.driver_task import FakeTask

NODE = {"deploy_kernel": "http://node/k", "deploy_ramdisk": "https://node/r"}
SITE = {"deploy_kernel": "http://site/k", "deploy_ramdisk": "http://site/r"}


def of(info: Any, mode: str | None = None, arch: str = "x86_64", **options: Any) -> sources.Sources:
    task = FakeTask(info)
    task.node.properties = {"cpu_arch": arch}
    return sources.of(task, Conductor(**options), mode)


def test_the_node_is_asked_first_then_its_architecture_then_the_site() -> None:
    by_arch = {"deploy_kernel_by_arch": {"aarch64": "http://arm/k"}}
    assert of(NODE, **SITE).kernel == "http://node/k"
    assert of({}, **SITE, **by_arch).kernel == "http://site/k"
    assert of({}, arch="aarch64", **SITE, **by_arch).kernel == "http://arm/k"
    assert of({"deploy_kernel": "http://node/k"}, **SITE).ramdisk == "http://site/r"
    for arch, key in (("arm64", "aarch64"), ("aarch64", "arm64"), ("AARCH64", "aarch64")):
        options = {"deploy_kernel_by_arch": {key: "http://arm/k"}}
        assert of({}, arch=arch, **SITE, **options).kernel == "http://arm/k"
    assert of(NODE).bootloader is None
    assert of(NODE, bootloader="http://site/esp").bootloader == "http://site/esp"


@pytest.mark.parametrize("purpose", [sources.DEPLOY, sources.RESCUE])
def test_each_file_has_a_default_of_its_architecture(purpose: str) -> None:
    keys = ("deploy_kernel", "deploy_ramdisk", "rescue_kernel", "rescue_ramdisk", "bootloader")
    options = {f"{key}_by_arch": {"aarch64": f"http://arm/{key}"} for key in keys}
    task: Any = FakeTask({}, properties={"cpu_arch": "aarch64"})
    assert sources.of(task, Conductor(**options), "uefi", purpose) == sources.Sources(
        kernel=f"http://arm/{purpose}_kernel", ramdisk=f"http://arm/{purpose}_ramdisk",
        bootloader="http://arm/bootloader",
    )  # fmt: skip
    task.node.properties = {"cpu_arch": "x86_64"}
    with pytest.raises(errors.MissingParameterValue, match="deploy_kernel"):
        sources.of(task, Conductor(**options), "uefi", purpose)


@pytest.mark.parametrize(
    ("info", "mode", "missing"),
    [
        ({}, None, "deploy_kernel, deploy_ramdisk"),
        ({}, "uefi", "bootloader, deploy_kernel, deploy_ramdisk"),
        ({"deploy_kernel": "http://node/k"}, "bios", "deploy_ramdisk"),
        (NODE, "uefi", "bootloader"),
    ],
    ids=str,
)
def test_all_that_is_missing_is_named(info: Any, mode: str | None, missing: str) -> None:
    with pytest.raises(errors.MissingParameterValue, match=f"lacks {missing}, and"):
        of(info, mode)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://u:geheim@node/k", "node/k", 7, "glance://1234", "http://", "http://[x",
        "http://node:99999/k",
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_fetched_is_refused_by_name(url: Any) -> None:
    with pytest.raises(errors.InvalidParameterValue, match="deploy_kernel must be a URL") as no:
        of(NODE | {"deploy_kernel": url})
    assert "geheim" not in str(no.value)


def test_files_are_read_below_the_allowed_folders_alone(tmp_path: Path) -> None:
    images, key = tmp_path / "images", tmp_path / "keys" / "secrets.key"
    for path in (images / "k", key):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (images / "link").symlink_to(key)
    allowed = {"file_url_allowed_paths": (str(images),)}
    good = NODE | {"deploy_kernel": f"file://{images}/k"}
    assert sources.local_path(of(good, **allowed).kernel) == images / "k"
    for path in (key, f"{images}/../keys/secrets.key", f"{images}/link", f"{images}2/k"):
        for url in (f"file://{path}", f"file://{path}".replace("..", "%2e%2e")):
            with pytest.raises(errors.InvalidParameterValue, match="file_url_allowed_paths"):
                of(NODE | {"deploy_kernel": url}, **allowed)
