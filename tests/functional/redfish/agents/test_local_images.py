"""Images that the conductor hands out to the agent, and to nobody afterwards.

They are files on its host, or come from elsewhere (``image_download_source`` local).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bloomery import boot_files
from bloomery.drivers.agent_boot import cache
from tests.functional.redfish.agents.conftest import INSTANCE
from tests.kit.servers import registry, web
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

CONTENT = b"an operating system"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "images" / "os.raw"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    return path


def name(stage: Stage, node: str, url: str) -> dict[str, Any]:
    """Name the image of a node; return what ``validate`` says of deployments."""
    stage.patch(node, instance_info=INSTANCE | {"image_source": url, "image_disk_format": "raw"})
    return dict(stage.api.get(f"/v1/nodes/{node}/validate").json["deploy"])


def test_the_agent_gets_the_address_of_the_file(stage, available, ramdisk, image, tmp_path):
    assert name(stage, available, image.as_uri()) == {"result": True}
    stage.ask(available, "active")
    ramdisk.live_until_it_writes(available)
    told = ramdisk.server.params["standby.prepare_image"]["image_info"]
    (url,) = told["urls"]
    assert (told["id"], url.startswith("http://web.test/boot-files/")) == ("os.raw", True)
    found = boot_files.find(tmp_path / "http", urlsplit(url).path.lstrip("/"))
    assert found is not None
    assert found.read_bytes() == CONTENT
    ramdisk.server.endless.clear()
    shown = ramdisk.live_until(available, "active", "deploy failed")
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    assert boot_files.list_files(str(tmp_path / "http")) == []
    assert image.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("images/gone.raw", "which is no file on this conductor's host"),
        ("elsewhere.raw", "may not name"), ("images/../elsewhere.raw", "may not name"),
        ("images/link.raw", "may not name"), ("images", "which is no file"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_an_allowed_folder_is_refused(
    stage, available, image, tmp_path, path, said
):
    (tmp_path / "elsewhere.raw").write_bytes(b"private")
    (image.parent / "link.raw").symlink_to(tmp_path / "elsewhere.raw")
    refusal = name(stage, available, f"file://{tmp_path}/{path}")
    assert (refusal["result"], said in refusal["reason"]) == (False, True), refusal


def test_a_malformed_address_is_refused(stage, available):
    assert name(stage, available, "http://[x/os.raw")["result"] is False


def fetched_by_conductor(url: str, content: bytes) -> dict[str, Any]:
    return {
        "image_source": url, "image_download_source": "local",
        "image_checksum": hashlib.sha256(content).hexdigest(),
    }  # fmt: skip


def test_a_node_waits_while_another_one_fetches_its_image(
    stage, available, ramdisk, tmp_path, monkeypatch
):
    monkeypatch.setattr("bloomery.drivers.agent.deploy._FETCH_PAUSE_S", 0.01)
    with web.serving({"/os": web.text(CONTENT, ETag='"1"')}) as site:
        url = site.url("/os")
        stage.patch(
            available,
            instance_info=fetched_by_conductor(url, CONTENT) | {"image_disk_format": "raw"},
        )
        path = tmp_path / "image-cache" / hashlib.sha256(url.encode()).hexdigest()
        path.parent.mkdir()
        with cache.exclusively(path):
            stage.ask(available, "active")

            def waits() -> bool:
                ramdisk.live()
                return "being fetched" in str(stage.api.get(f"/ext/v1/nodes/{available}/why").json)

            wait_for(waits, "the node to wait for the image", timeout_s=20)
            assert site.asked == []
        ramdisk.live_until_it_writes(available)
    told = ramdisk.server.params["standby.prepare_image"]["image_info"]
    assert told["os_hash_value"] == hashlib.sha256(CONTENT).hexdigest()
    found = boot_files.find(tmp_path / "http", urlsplit(told["urls"][0]).path.lstrip("/"))
    assert found is not None
    assert (found.read_bytes(), found.stat().st_nlink) == (CONTENT, 2)
    ramdisk.server.endless.clear()
    shown = ramdisk.live_until(available, "active", "deploy failed")
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    assert (boot_files.list_files(str(tmp_path / "http")), path.stat().st_nlink) == ([], 1)


def test_an_image_of_another_checksum_fails_the_deployment(stage, available, ramdisk):
    with web.serving({"/os": web.text(CONTENT)}) as site:
        info = fetched_by_conductor(site.url("/os"), b"another")
        stage.patch(available, instance_info=info | {"image_disk_format": "raw"})
        stage.ask(available, "active")
        shown = ramdisk.live_until(available, "active", "deploy failed")
    assert "the image has other checksums" in shown["last_error"]
    assert "standby.prepare_image" not in ramdisk.server.told


def test_an_image_of_a_private_registry_is_deployed_and_its_login_shown_to_nobody(
    stage, available, ramdisk, caplog
):
    with registry.serving() as images:
        images.push("lab/os", CONTENT, tag="12")
        images.login = "puller:hush-hush"
        info = {
            "image_source": images.url("lab/os:12"), "image_pull_secret": images.login,
            "image_disk_format": "raw",
        }  # fmt: skip
        stage.patch(available, instance_info=info)
        assert stage.api.get(f"/v1/nodes/{available}/validate").json["deploy"] == {"result": True}
        stage.ask(available, "active")
        shown = ramdisk.live_until(available, "active", "deploy failed")
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    told = ramdisk.server.params["standby.prepare_image"]
    assert told["image_info"]["os_hash_value"] == hashlib.sha256(CONTENT).hexdigest()
    assert shown["instance_info"]["image_pull_secret"] == "******"
    stored = stage.site.node(available).instance_info
    for place in (told, shown, stored, caplog.text):
        assert "hush-hush" not in str(place)
        assert registry.TOKEN not in str(place)
