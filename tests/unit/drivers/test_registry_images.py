"""Images in container registries: which one a node gets, by which login, and what is refused."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.agent import Oci
from bloomery.drivers.agent import image, oci
from bloomery.drivers.agent_boot.http_client import HttpClient
from tests.kit.machines import images
from tests.kit.machines.driver_task import FakeTask
from tests.kit.servers import registry, web
from tests.kit.servers.registry import Registry
from tests.unit.drivers import test_local_images
from tests.unit.drivers.test_local_images import content_of, publish

asked, conf = test_local_images.asked, test_local_images.conf
LOGIN = "puller:hush"
AUTH = base64.b64encode(LOGIN.encode()).decode()


@pytest.fixture
def server() -> Iterator[Registry]:
    with registry.serving() as made:
        yield made


def node(url: str, arch: str | None = "x86_64", **info: Any) -> FakeTask:
    properties = {} if arch is None else {"cpu_arch": arch}
    return FakeTask({}, properties=properties, instance_info={"image_source": url} | info)


def of(digest: str, arch: str | None = None, disktype: str | None = None) -> dict[str, Any]:
    """Return an entry of an index."""
    found: dict[str, Any] = {"mediaType": registry.MANIFEST, "digest": digest}
    if arch is not None:
        found["platform"] = {"os": "linux", "architecture": arch}
    if disktype is not None:
        found["annotations"] = {"disktype": disktype}
    return found


# ------------------------------------------------------------------------------------ what comes


def test_an_image_of_a_tag_or_a_digest_is_handed_out_without_a_checksum(
    conf: Conf, server: Registry
) -> None:
    digest = server.push("lab/os", images.RAW, tag="12")
    for name in ("lab/os:12", f"lab/os@{digest}", f"lab/os:12@{digest}"):
        task = node(server.url(name), image_disk_format="raw")
        image.check(task, conf)
        published = publish(conf, task)
        assert content_of(conf, published) == images.RAW
        assert published.sha256 == hashlib.sha256(images.RAW).hexdigest()


def test_a_tag_that_moves_brings_the_new_image(conf: Conf, server: Registry) -> None:
    for content in (images.RAW, images.RAW * 2):
        server.push("os", content, tag="latest")
        assert content_of(conf, publish(conf, node(server.url("os")))) == content


def test_an_image_in_the_cache_is_not_fetched_again(conf: Conf, server: Registry, asked) -> None:
    server.push("os", test_local_images.QCOW2, tag="latest")
    for _ in range(2):
        published = publish(conf, node(server.url("os")))
        assert content_of(conf, published) == images.CONVERTED
    assert asked.read_text().split() == ["check", "convert"]


def test_an_image_of_a_registry_comes_by_the_conductor_in_any_case(server: Registry) -> None:
    task = node(server.url("os"), image_download_source="http")
    assert image.download_source(task, Conf()) == image.LOCAL


INDEX = {
    "amd-qcow2": ("amd64", "qcow2"), "amd-raw": ("x86_64", "applehv"), "arm": ("arm64", "qemu"),
    "attestation": ("unknown", None),
}  # fmt: skip


@pytest.mark.parametrize(
    ("arch", "disk_format", "name"),
    [
        ("x86_64", None, "amd-qcow2"),
        ("x86_64", "raw", "amd-raw"),
        ("aarch64", None, "arm"),
        ("ppc64le", None, None),
        ("aarch64", "raw", None),
        (None, "qcow2", None),
        (None, "raw", "amd-raw"),
    ],
)
def test_the_architecture_and_the_type_of_disk_choose_an_image_of_an_index(
    conf: Conf, server: Registry, arch: str | None, disk_format: str | None, name: str | None
) -> None:
    entries = [of(server.push("os", key.encode()), *INDEX[key]) for key in INDEX]
    server.push_index("os", entries, tag="12")
    registries = test_local_images.local_images.LocalImages(conf, None)._registries  # type: ignore[arg-type]
    wish = oci.Wish(arch=arch, disk_format=disk_format, secret=None)
    if name is None:
        with pytest.raises(errors.StepFailure, match=r"cannot choose .*aarch64 qcow2"):
            registries.find(server.url("os:12"), wish)
    else:
        blob = registries.find(server.url("os:12"), wish)
        assert blob.sha256 == hashlib.sha256(name.encode()).hexdigest()


def test_the_only_image_of_an_index_needs_no_description(conf: Conf, server: Registry) -> None:
    server.push_index("os", [of(server.push("os", images.RAW))], tag="12")
    assert content_of(conf, publish(conf, node(server.url("os:12")))) == images.RAW


# ------------------------------------------------------------------------------------- containers


def look(conf: Conf, url: str, arch: str | None) -> str:
    wish = oci.Wish(arch=arch, disk_format=None, secret=None)
    return oci.Registries(conf.oci, HttpClient(conf.default)).look(url, wish)


def fill(server: Registry) -> None:
    """Push images of each kind, under tags that say what they are."""
    amd, arm = (server.push_container("os", arch) for arch in ("amd64", "arm64"))
    server.push_container("os", "arm64", tag="arm")
    server.push_index("os", [of(amd, "amd64"), of(arm, "arm64")], tag="both")
    server.push_index("os", [of(arm, "arm64"), of(amd, "unknown")], tag="index-of-arm")
    disks = [of(server.push("os", arch.encode()), arch) for arch in ("amd64", "arm64")]
    server.push("os", b"disk", tag="disk")
    server.push("os", b"disk", b"more", tag="two-layers")
    server.push_index("os", disks, tag="disks")
    config = {"config": {"mediaType": registry.CONFIG, "digest": "sha256:" + "0" * 64}}
    layer = {"mediaType": "application/octet-stream", "digest": "sha256:" + "0" * 64}
    server.put("os", registry.MANIFEST, config | {"layers": [layer]}, "disk-with-a-config")
    layers = [{"mediaType": registry.LAYER}] * 2
    server.put("os", registry.MANIFEST, config | {"layers": layers}, "without-its-config")
    server.put("os", registry.MANIFEST, {"config": 7, "layers": ["odd", 8]}, "odd")


@pytest.mark.parametrize(
    ("tag", "arch", "kind"),
    [
        ("arm", "aarch64", oci.CONTAINER),
        ("arm", None, oci.CONTAINER),
        ("arm", "x86_64", "it is for aarch64, and properties/cpu_arch is x86_64"),
        ("both", "aarch64", oci.CONTAINER),
        ("both", "x86_64", oci.CONTAINER),
        ("both", None, oci.CONTAINER),  # the agent pulls that of its machine
        ("both", "ppc64le", "cannot choose"),
        ("index-of-arm", "x86_64", "cannot choose"),
        ("disk", "x86_64", oci.DISK),
        ("disk-with-a-config", "x86_64", oci.DISK),
        ("two-layers", None, "it has 2 layers"),
        ("disks", "aarch64", oci.DISK),
        ("disks", None, "cannot choose"),
        ("without-its-config", "x86_64", "the registry has no configuration of it"),
        ("without-its-config", None, oci.CONTAINER),
        ("odd", "x86_64", "it has 2 layers"),
        ("none", "x86_64", "the registry answers HTTP 404"),
    ],
)
def test_a_look_at_an_image_tells_disks_from_containers(
    conf: Conf, server: Registry, tag: str, arch: str | None, kind: str
) -> None:
    fill(server)
    if kind in (oci.DISK, oci.CONTAINER):
        assert look(conf, server.url(f"os:{tag}"), arch) == kind
        return
    with pytest.raises(errors.StepFailure, match=kind):
        look(conf, server.url(f"os:{tag}"), arch)


def test_a_container_is_not_handed_out_as_the_image_of_a_disk(conf: Conf, server: Registry) -> None:
    server.push_container("os", tag="1")
    with pytest.raises(errors.StepFailure, match="a container, which deploy interface bootc"):
        publish(conf, node(server.url("os:1")))


# ----------------------------------------------------------------------------------------- logins


@pytest.mark.parametrize("asks_basic", [False, True], ids=["token", "basic"])
@pytest.mark.parametrize("secret", [AUTH, LOGIN], ids=["auth", "user and password"])
def test_a_pull_secret_opens_a_private_registry(
    conf: Conf, server: Registry, asks_basic: bool, secret: str
) -> None:
    server.push("os", images.RAW, tag="12")
    server.login, server.asks_basic = LOGIN, asks_basic
    assert content_of(conf, publish(conf, node(server.url("os:12"), image_pull_secret=secret)))


def test_the_operators_file_opens_it_where_the_node_has_no_secret(
    conf: Conf, server: Registry, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"auths": {server.address: {"auth": AUTH}}}))
    conf = dataclasses.replace(conf, oci=Oci(authentication_config=str(path)))
    server.push("os", images.RAW, tag="12")
    server.login = LOGIN
    assert content_of(conf, publish(conf, node(server.url("os:12"))))
    with pytest.raises(errors.StepFailure, match="HTTP 401"):
        publish(conf, node(server.url("os:12"), image_pull_secret="another:one"))
    path.write_text("[]")
    with pytest.raises(errors.InvalidParameterValue, match=r"authentication_config .* is no conf"):
        image.check(node(server.url("os:12")), conf)


def test_the_secret_of_a_node_comes_from_driver_info_too(server: Registry) -> None:
    task = node(server.url("os"))
    task.driver_info["image_pull_secret"] = "of-the-node"
    assert image.pull_secret(task) == "of-the-node"
    task.node.instance_info["image_pull_secret"] = "of-the-instance"
    assert image.pull_secret(task) == "of-the-instance"


def test_a_login_goes_to_no_plain_address_and_no_other_host(conf: Conf, server: Registry) -> None:
    server.push("os", images.RAW, tag="12")
    server.login = LOGIN
    server.realm = "ftp://127.0.0.1/token"
    with pytest.raises(errors.StepFailure, match="no https address for its login"):
        publish(conf, node(server.url("os:12"), image_pull_secret=AUTH))


def test_a_blob_elsewhere_is_fetched_without_the_login(conf: Conf, server: Registry) -> None:
    seen: list[str | None] = []

    def store(request: Any) -> None:
        seen.append(request.headers["Authorization"])
        web.text(images.RAW)(request)

    server.push("os", images.RAW, tag="12")
    server.login = LOGIN
    digest = hashlib.sha256(images.RAW).hexdigest()
    with web.serving({"/blob": store}) as other:
        server.elsewhere[f"/v2/os/blobs/sha256:{digest}"] = other.url("/blob", host="localhost")
        published = publish(conf, node(server.url("os:12"), image_pull_secret=AUTH))
    assert (content_of(conf, published), seen) == (images.RAW, [None])


# ---------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    "url",
    ["oci://", "oci://h", "oci://u:p@h/os", "oci://h/OS", "oci://h/os@sha256:12", "oci:///os"],
)
def test_a_malformed_address_is_refused(conf: Conf, url: str) -> None:
    with pytest.raises(errors.InvalidParameterValue, match="oci://HOST/REPOSITORY"):
        image.check(node(url), conf)


def test_a_pull_secret_that_would_break_a_header_is_refused_unseen(conf: Conf) -> None:
    with pytest.raises(errors.InvalidParameterValue, match="printable") as refusal:
        image.check(node("oci://h/os", image_pull_secret="hush\r\nX: y"), conf)
    assert "hush" not in str(refusal.value)


def test_an_artefact_of_several_layers_is_refused(conf: Conf, server: Registry) -> None:
    server.push("os", b"a", b"b", tag="12")
    with pytest.raises(errors.StepFailure, match="it has 2 layers"):
        publish(conf, node(server.url("os:12")))


@pytest.mark.parametrize(
    ("login", "why"), [(None, "HTTP 404 for 13"), (LOGIN, "set instance_info/image_pull_secret")]
)
def test_an_image_that_is_not_there_or_private_is_told(
    conf: Conf, server: Registry, login: str | None, why: str
) -> None:
    server.login = login
    with pytest.raises(errors.StepFailure, match=why):
        publish(conf, node(server.url("os:13"), image_pull_secret=None))


def test_a_manifest_or_a_blob_of_another_digest_is_refused(conf: Conf, server: Registry) -> None:
    digest = server.push("os", images.RAW, tag="12")
    blob = f"/v2/os/blobs/sha256:{hashlib.sha256(images.RAW).hexdigest()}"
    kind, _body = server.documents[blob]
    server.documents[blob] = (kind, b"another")
    with pytest.raises(errors.StepFailure, match="other checksums"):
        publish(conf, node(server.url("os:12")))
    server.documents[f"/v2/os/manifests/{digest}"] = (registry.MANIFEST, b"{}")
    with pytest.raises(errors.StepFailure, match="another checksum"):
        publish(conf, node(server.url(f"os@{digest}")))


def test_a_checksum_that_is_given_counts_too(conf: Conf, server: Registry) -> None:
    server.push("os", images.RAW, tag="12")
    with pytest.raises(errors.StepFailure, match="other checksums"):
        publish(conf, node(server.url("os:12"), image_checksum="ab" * 32))


@pytest.mark.parametrize(
    ("host", "permits", "may"),
    [
        ("127.0.0.1:1", False, True), ("localhost", False, True), ("[::1]:5000", False, True),
        ("registry.test", True, True), ("registry.test", False, False),
    ],
)  # fmt: skip
def test_http_is_only_for_loopback_and_by_an_option(host: str, permits: bool, may: bool) -> None:
    assert oci.may_use_http(host, Oci(permit_fallback_to_http_transport=permits)) == may
