"""Files of this host that users name: opened once, below an allowed folder.

Whoever may write there may put a link to any file of the service in place of an image, at any
moment.
"""

from __future__ import annotations

import dataclasses
import errno
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bloomery import boot_files, errors
from bloomery.conf import Conf
from bloomery.conf.agent import Deploy, Pxe
from bloomery.conf.conductor import Conductor
from bloomery.drivers.agent.local_images import LocalImages
from bloomery.drivers.agent_boot import cache, sources
from bloomery.drivers.agent_boot.http_client import HttpClient
from bloomery.drivers.agent_boot.publication import Publication
from tests.kit.machines import images
from tests.kit.machines.driver_task import FakeTask

KEY = b"the key that opens each password".ljust(len(images.RAW), b".")


@pytest.fixture
def conf(tmp_path: Path) -> Conf:
    for path, content in (("images/os/disk", images.RAW), ("keys/os/disk", KEY)):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(content)
    return dataclasses.replace(
        Conf(),
        conductor=Conductor(file_url_allowed_paths=(str(tmp_path / "images"),)),
        deploy=Deploy(
            http_root=str(tmp_path / "http"), http_url="http://web.test",
            ramdisk_cache_path=str(tmp_path / "ramdisks"),
        ),
        pxe=Pxe(instance_master_path=str(tmp_path / "cache"), image_cache_size=1),
    )  # fmt: skip


def link_file(folder: Path) -> None:
    (folder / "images/os/disk").unlink()
    (folder / "images/os/disk").symlink_to(folder / "keys/os/disk")


def link_folder(folder: Path) -> None:
    (folder / "images/os").rename(folder / "images/former")
    (folder / "images/os").symlink_to(folder / "keys/os")


def pipe(folder: Path) -> None:
    (folder / "images/os/disk").unlink()
    os.mkfifo(folder / "images/os/disk")


def published(conf: Conf, url: str | None) -> bytes:
    assert url is not None
    path = boot_files.find(Path(str(conf.deploy.http_root)), urlsplit(url).path.lstrip("/"))
    assert path is not None
    return path.read_bytes()


def as_image(conf: Conf, url: str) -> Callable[[], bytes]:
    """Publish as a node whose conductor hands its image out."""
    task = FakeTask({}, instance_info={"image_source": url, "image_disk_format": "raw"})
    link = LocalImages(conf, Publication(conf)).publish(task).url
    return lambda: published(conf, link)


def as_link(conf: Conf, url: str) -> Callable[[], bytes]:
    """Publish as a node whose agent fetches its image."""
    task = FakeTask({}, instance_info={"image_source": url})
    image = LocalImages(conf, Publication(conf)).publish_local(task)
    assert image is not None
    return lambda: published(conf, image.url)


def as_ramdisk(conf: Conf, url: str) -> Callable[[], bytes]:
    file = cache.FileCache(cache.ramdisks(conf), HttpClient(conf.default)).open(url)

    def read() -> bytes:
        with file:
            return file.read()

    return read


USES = pytest.mark.parametrize("use", [as_image, as_link, as_ramdisk])
SWAPS = pytest.mark.parametrize("swap", [link_file, link_folder])


@USES
@SWAPS
def test_a_link_that_comes_after_the_use_is_not_followed(
    conf: Conf, tmp_path: Path, use: Callable[..., Callable[[], bytes]], swap: Callable[..., None]
) -> None:
    read = use(conf, f"file://{tmp_path}/images/os/disk")
    swap(tmp_path)
    assert read() == images.RAW


@USES
@pytest.mark.parametrize("swap", [link_file, link_folder, pipe])
def test_a_link_that_comes_before_the_use_is_refused(
    conf: Conf, tmp_path: Path, use: Callable[..., Callable[[], bytes]], swap: Callable[..., None]
) -> None:
    swap(tmp_path)
    with pytest.raises(errors.StepFailure, match=r"not below .*allowed_paths|it is no file"):
        use(conf, f"file://{tmp_path}/images/os/disk")


@USES
@SWAPS
def test_a_link_that_comes_between_check_and_use_is_refused(
    conf: Conf,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    use: Callable[..., Callable[[], bytes]],
    swap: Callable[..., None],
) -> None:
    path = tmp_path / "images/os/disk"
    monkeypatch.setattr(sources, "local_path", lambda _url: path)  # resolved before the swap
    swap(tmp_path)
    with pytest.raises(errors.StepFailure, match=f"cannot read {path}: "):
        use(conf, f"file://{path}")


@USES
def test_a_link_within_the_folder_is_followed(
    conf: Conf, tmp_path: Path, use: Callable[..., Callable[[], bytes]]
) -> None:
    (tmp_path / "images/latest").symlink_to("os/disk")
    assert use(conf, f"file://{tmp_path}/images/latest")() == images.RAW


def test_an_image_on_another_disk_is_copied(
    conf: Conf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refuse)
    assert as_link(conf, f"file://{tmp_path}/images/os/disk")() == images.RAW
