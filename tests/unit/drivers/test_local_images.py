"""Images that the conductor fetches: checked, converted, kept once, and refused with a reason."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bloomery import boot_files, errors
from bloomery.conf import Conf
from bloomery.conf.agent import Agent, Deploy, DiskUtils, Pxe
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.drivers.agent import image, image_format, local_images
from bloomery.drivers.agent_boot import cache
from bloomery.drivers.agent_boot.publication import Publication
from tests.kit.machines import images, programs
from tests.kit.machines.driver_task import FakeTask
from tests.kit.servers import web
from tests.kit.waiting import wait_for
from tests.unit.drivers.agent_boot.test_cache import Image, broken

QCOW2 = images.qcow2(1 << 18)


@pytest.fixture
def conf(tmp_path: Path) -> Conf:
    return dataclasses.replace(
        Conf(),
        default=Default(image_download_concurrency=1),
        agent=Agent(image_download_source="local"),
        conductor=Conductor(file_url_allowed_paths=(str(tmp_path),)),
        deploy=Deploy(http_root=str(tmp_path / "http"), http_url="http://web.test"),
        pxe=Pxe(instance_master_path=str(tmp_path / "cache"), image_cache_size=1),
    )


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a qemu-img that is a script into the PATH; return what is asked of it."""
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return images.write_qemu_img(folder)


def task(url: str, content: bytes | None, **info: Any) -> FakeTask:
    """Return a node with that image; ``content``: what its checksum is of."""
    digest = {} if content is None else {"image_checksum": hashlib.sha256(content).hexdigest()}
    return FakeTask({}, instance_info={"image_source": url} | digest | info)


def publish(conf: Conf, node: FakeTask) -> image.Published:
    return local_images.LocalImages(conf, Publication(conf)).publish(node)


def content_of(conf: Conf, published: image.Published) -> bytes:
    path = boot_files.find(
        Path(str(conf.deploy.http_root)), urlsplit(published.url).path.lstrip("/")
    )
    assert path is not None
    return path.read_bytes()


def cached(tmp_path: Path) -> list[str]:
    """Return the kinds of the files in the cache, but for empty locks."""
    paths = (tmp_path / "cache").glob("*")
    return sorted(path.suffix for path in paths if path.suffix != ".lock")


# ---------------------------------------------------------------------------- what is handed out


def test_a_raw_image_is_handed_out_as_it_is(conf: Conf) -> None:
    with web.serving({"/os.raw": Image(images.RAW, ETag='"1"')}) as site:
        published = publish(conf, task(site.url("/os.raw"), images.RAW))
    assert content_of(conf, published) == images.RAW
    assert published.disk_format == "raw"
    assert published.sha256 == hashlib.sha256(images.RAW).hexdigest()


def test_an_image_is_converted_once_for_all_nodes(conf: Conf, asked: Path, tmp_path: Path) -> None:
    served = Image(QCOW2, ETag='"1"')
    with web.serving({"/os.qcow2": served}) as site:
        nodes = [task(site.url("/os.qcow2"), QCOW2) for _ in range(3)]
        published = [publish(conf, node) for node in nodes]
    assert {content_of(conf, each) for each in published} == {images.CONVERTED}
    assert {each.sha256 for each in published} == {hashlib.sha256(images.CONVERTED).hexdigest()}
    assert len({each.url for each in published}) == 3
    assert (served.reads, asked.read_text().split()) == (1, ["check", "convert"])
    assert cached(tmp_path) == ["", ".json"]


def test_without_force_raw_images_a_qcow2_stays(conf: Conf, asked: Path) -> None:
    plain = dataclasses.replace(conf, default=Default(force_raw_images=False))
    with web.serving({"/os": Image(QCOW2)}) as site:
        published = publish(plain, task(site.url("/os"), QCOW2))
        assert (published.disk_format, content_of(conf, published)) == ("qcow2", QCOW2)
        raw = publish(conf, task(site.url("/os"), QCOW2))
    assert (raw.disk_format, content_of(conf, raw)) == ("raw", images.CONVERTED)


def test_an_image_that_changes_is_fetched_anew_and_the_old_one_stays_handed_out(conf: Conf) -> None:
    served = Image(images.RAW, ETag='"1"')
    with web.serving({"/os": served}) as site:
        first = publish(conf, task(site.url("/os"), images.RAW))
        served.content, served.headers = images.RAW * 2, {"ETag": '"2"'}
        second = publish(conf, task(site.url("/os"), images.RAW * 2))
    assert content_of(conf, first) == images.RAW
    assert content_of(conf, second) == images.RAW * 2


def test_a_new_checksum_fetches_an_image_whose_server_tells_no_version(conf: Conf) -> None:
    served, changed = Image(images.RAW), images.RAW[::-1]
    with web.serving({"/os": served}) as site:
        publish(conf, task(site.url("/os"), images.RAW))
        served.content = changed
        published = publish(conf, task(site.url("/os"), changed))
    assert content_of(conf, published) == changed


def test_a_file_of_this_host_is_converted_and_stays(
    conf: Conf, asked: Path, tmp_path: Path
) -> None:
    path = tmp_path / "os.qcow2"
    path.write_bytes(QCOW2)
    published = [publish(conf, task(path.as_uri(), QCOW2)) for _ in range(2)]
    assert {content_of(conf, each) for each in published} == {images.CONVERTED}
    assert asked.read_text().split() == ["check", "convert"]
    assert path.read_bytes() == QCOW2


def test_a_raw_file_of_this_host_is_linked_and_its_checksum_left_to_the_agent(
    conf: Conf, tmp_path: Path
) -> None:
    path = tmp_path / "os.raw"
    path.write_bytes(images.RAW)
    published = publish(conf, task(path.as_uri(), images.RAW))
    assert (content_of(conf, published), published.sha256) == (images.RAW, None)
    assert cached(tmp_path) == []


def test_the_conductor_logs_in_and_the_agent_gets_no_login(conf: Conf) -> None:
    login = dataclasses.replace(
        conf.deploy, image_server_auth_strategy="http_basic", image_server_user="u",
        image_server_password="p",
    )  # fmt: skip
    conf = dataclasses.replace(conf, deploy=login)

    def guarded(request: BaseHTTPRequestHandler) -> None:
        is_known = request.headers["Authorization"] == "Basic dTpw"
        web.text(images.RAW, 200 if is_known else 401)(request)

    with web.serving({"/os": guarded}) as site:
        node = task(site.url("/os"), images.RAW)
        told = image.parameters(node, conf, publish(conf, node))["image_info"]
    assert "image_server_password" not in told
    assert (told["disk_format"], told["os_hash_algo"], "checksum" in told) == (
        "raw", "sha256", False,
    )  # fmt: skip


# -------------------------------------------------------------------------------------- checksums


SHA256 = hashlib.sha256(images.RAW).hexdigest()
OTHER = "ab" * 32
FILES = [
    SHA256, f"{SHA256}  os.raw\n", f"{OTHER}  a.raw\n{SHA256} *os.raw\n{OTHER}  z.raw",
    f"# sums\nSHA256 (a.raw) = {OTHER}\nSHA256 (os.raw) = {SHA256.upper()}\n",
    f"{OTHER}  ./a.raw\n{SHA256}  ./os.raw\n",
    f"{hashlib.md5(images.RAW).hexdigest()}  os.raw\n{SHA256}  os.raw\n",
]  # fmt: skip


@pytest.mark.parametrize("text", FILES)
def test_a_file_of_checksums_is_read(conf: Conf, text: str) -> None:
    with web.serving({"/os.raw": web.text(images.RAW), "/sums": web.text(text)}) as site:
        node = task(site.url("/os.raw"), None, image_checksum=site.url("/sums"))
        assert content_of(conf, publish(conf, node)) == images.RAW


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (web.text(f"{OTHER}  a.raw\n{OTHER}  b.raw"), "no checksum of os.raw"),
        (web.text("", 404), "HTTP 404"),
        (web.text("x" * (2 << 20)), "more than"),
        (web.text(f"{OTHER}  os.raw"), "other checksums"),
    ],
)
def test_a_file_of_checksums_that_does_not_help_is_told(conf: Conf, answer: Any, why: str) -> None:
    with web.serving({"/os.raw": web.text(images.RAW), "/sums": answer}) as site:
        node = task(site.url("/os.raw"), None, image_checksum=site.url("/sums"))
        with pytest.raises(errors.StepFailure, match=why):
            publish(conf, node)


def test_md5_from_a_file_is_refused_where_it_is_not_allowed(conf: Conf) -> None:
    strict = dataclasses.replace(conf, agent=Agent(allow_md5_checksum=False))
    with web.serving({"/sums": web.text("ab" * 16)}) as site:
        node = task(site.url("/os.raw"), None, image_checksum=site.url("/sums"))
        with pytest.raises(errors.StepFailure, match="allow_md5_checksum"):
            publish(strict, node)


# ----------------------------------------------------------------------------------------- faults


ANNOUNCED = b"HTTP/1.0 200 OK\r\nContent-Length: 2000000\r\n\r\n"


def test_a_wrong_checksum_is_refused_also_of_a_cached_image(conf: Conf, tmp_path: Path) -> None:
    with web.serving({"/os": Image(images.RAW, ETag='"1"')}) as site:
        with pytest.raises(errors.StepFailure, match="other checksums") as refusal:
            publish(conf, task(site.url("/os"), b"another"))
        assert hashlib.sha256(images.RAW).hexdigest() not in str(refusal.value)
        assert cached(tmp_path) == []
        publish(conf, task(site.url("/os"), images.RAW))
        with pytest.raises(errors.StepFailure, match="other checksums"):
            publish(conf, task(site.url("/os"), b"another"))
        assert content_of(conf, publish(conf, task(site.url("/os"), images.RAW))) == images.RAW


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (web.text("", 404), "HTTP 404"),
        (broken, "broke off"),
        (web.moved("ftp://images.test/os"), "redirects to another scheme, ftp://images.test/os"),
        (web.moved("https://images.test/os?sig=hush"), "another scheme"),
        (web.raw(ANNOUNCED), r"\[pxe\]image_cache_size leaves no room"),
        (web.raw(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * (1100 << 10)), r"\[pxe\]image_cache_size"),
    ],
    ids=["missing", "truncated", "ftp", "https", "too large", "endless"],
)  # fmt: skip
def test_an_image_that_does_not_come_is_told_and_leaves_nothing(
    conf: Conf, tmp_path: Path, answer: Any, why: str
) -> None:
    with (
        web.serving({"/os?sig=hush": answer}) as site,
        pytest.raises(errors.StepFailure, match=why) as refusal,
    ):
        publish(conf, task(site.url("/os?sig=hush"), images.RAW))
    assert "hush" not in str(refusal.value)
    assert cached(tmp_path) == []


def test_a_redirect_of_the_same_scheme_is_followed(conf: Conf) -> None:
    with web.serving({"/a": web.moved("/b"), "/b": web.text(images.RAW)}) as site:
        assert content_of(conf, publish(conf, task(site.url("/a"), images.RAW))) == images.RAW


@pytest.mark.parametrize(
    ("content", "named", "why"),
    [
        (QCOW2, "raw", "header of the image says qcow2, and .*says raw"),
        (images.RAW, "qcow2", "header of the image says raw, and .*says qcow2"),
        (images.qcow2(1, backing=True), "qcow2", "has a backing file"),
        (images.qcow2(1, data_file=True), None, "has data_file set"),
        (QCOW2[:50], "qcow2", "says raw"),
        (images.qcow2(1 << 60), None, r"\[pxe\]image_cache_size leaves no room"),
        (b"# Disk DescriptorFile\nversion=1\n", None, "a vmdk of several files"),
        (b"\x28\xb5\x2f\xfd", None, "compressed by zstd"),
        (b"conectix".ljust(1024, b"\0"), None, "header says vhd"),
    ],
)
def test_an_image_that_is_not_what_it_seems_is_refused(
    conf: Conf, asked: Path, tmp_path: Path, content: bytes, named: str | None, why: str
) -> None:
    with web.serving({"/os": web.text(content)}) as site:
        node = task(site.url("/os"), content, image_disk_format=named)
        with pytest.raises(errors.StepFailure, match=why):
            publish(conf, node)
    assert (asked.read_text(), cached(tmp_path)) == ("", [])


def test_a_cached_image_of_another_format_than_named_is_refused(conf: Conf, asked: Path) -> None:
    with web.serving({"/os": Image(QCOW2, ETag='"1"')}) as site:
        publish(conf, task(site.url("/os"), QCOW2))
        with pytest.raises(errors.StepFailure, match=r"says qcow2, and .*says raw"):
            publish(conf, task(site.url("/os"), QCOW2, image_disk_format="raw"))


@pytest.mark.parametrize(
    ("script", "limits", "why"),
    [
        ({"convert": "echo no >&2; exit 1"}, DiskUtils(), "qemu-img convert fails with 1, .*: no"),
        ({"check": 2}, DiskUtils(), "qemu-img check fails with 2"),
        ({"convert": "exec sleep 600"}, DiskUtils(image_convert_timeout=1), "more than 1 s"),
        (
            {"convert": f"exec {sys.executable} -c 'x = bytearray(1 << 30)'"},
            DiskUtils(image_convert_memory_limit=512),
            r"within 512 MiB \(\[disk_utils\]image_convert_memory_limit\): MemoryError",
        ),
    ],
    ids=["failed", "damaged", "slow", "greedy"],
)
def test_a_qemu_img_that_fails_is_told_and_leaves_nothing(
    conf: Conf, asked: Path, tmp_path: Path, script: Any, limits: DiskUtils, why: str
) -> None:
    images.write_qemu_img(asked.parent, **script)
    limited = dataclasses.replace(conf, disk_utils=limits)
    with web.serving({"/os": web.text(QCOW2)}) as site:
        node = task(site.url("/os"), QCOW2)
        with pytest.raises(errors.StepFailure, match=why):
            publish(limited, node)
    assert cached(tmp_path) == []


def test_a_missing_qemu_img_is_told_before_and_at_the_step(conf: Conf, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with web.serving({"/os": web.text(QCOW2)}) as site:
        with pytest.raises(errors.InvalidParameterValue, match="qemu-utils"):
            image.check(task(site.url("/os"), QCOW2, image_disk_format="qcow2"), conf)
        image.check(task(site.url("/os"), QCOW2, image_disk_format="raw"), conf)
        with pytest.raises(errors.StepFailure, match="qemu-utils"):
            publish(conf, task(site.url("/os"), QCOW2))


# ----------------------------------------------------------------------------------- cache, crashes


def test_a_full_cache_is_told_and_what_is_handed_out_stays(conf: Conf) -> None:
    contents = {f"/{name}": name.encode() * (600 << 10) for name in "ab"}
    with web.serving({path: web.text(content) for path, content in contents.items()}) as site:
        nodes = [task(site.url(path), content) for path, content in contents.items()]
        first = publish(conf, nodes[0])
        with pytest.raises(errors.StepFailure, match=r"it has 1 MiB, and \[pxe\]image_cache_size"):
            publish(conf, nodes[1])
        assert content_of(conf, first) == contents["/a"]
        Publication(conf).remove(nodes[0])
        assert content_of(conf, publish(conf, nodes[1])) == contents["/b"]


@pytest.fixture
def slow() -> Iterator[tuple[Any, threading.Event, threading.Event]]:
    begun, go_on = threading.Event(), threading.Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        begun.set()
        assert go_on.wait(10)
        web.text(images.RAW, ETag='"1"')(request)

    yield answer, begun, go_on
    go_on.set()


def test_two_conductors_fetch_an_image_once(conf: Conf, slow: Any) -> None:
    answer, begun, go_on = slow
    with web.serving({"/os": answer}) as site, ThreadPoolExecutor(1) as pool:
        first = pool.submit(publish, conf, task(site.url("/os"), images.RAW))
        assert begun.wait(10)
        with pytest.raises(cache.BeingFetched):
            publish(conf, task(site.url("/os"), images.RAW))
        go_on.set()
        assert content_of(conf, first.result(10)) == images.RAW
        assert site.asked == ["/os"]


def test_no_more_images_come_at_once_than_configured(conf: Conf, slow: Any, tmp_path: Path) -> None:
    _answer, begun, go_on = slow
    conductor = local_images.LocalImages(conf, Publication(conf))

    with web.serving({"/a": slow_body(begun, go_on), "/b": web.text(images.RAW)}) as site:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(conductor.publish, task(site.url("/a"), images.RAW))
            wait_for(lambda: list((tmp_path / "cache").glob("*.part")), "the file")
            with pytest.raises(cache.BeingFetched):
                conductor.publish(task(site.url("/b"), images.RAW))
            go_on.set()
            first.result(10)
        conductor.publish(task(site.url("/b"), images.RAW))


def slow_body(begun: threading.Event, go_on: threading.Event) -> Any:
    """Answer with the headers at once, and with the rest later."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(images.RAW)))
        request.end_headers()
        request.wfile.write(images.RAW[:1])
        request.wfile.flush()
        begun.set()
        assert go_on.wait(10)
        request.wfile.write(images.RAW[1:])

    return answer


CONDUCTOR = """
import os, sys
from pathlib import Path
from bloomery.drivers.agent_boot import cache
os.chdir(sys.argv[1])
path = Path(sys.argv[2])
cache.exclusively(path).__enter__()
path.with_suffix(sys.argv[3]).write_bytes(b"half")
os._exit(9)
"""


@pytest.mark.parametrize("suffix", [cache.PART, cache.CONVERTED])
def test_what_a_conductor_left_that_died_while_fetching_or_converting_is_not_used(
    conf: Conf, asked: Path, tmp_path: Path, suffix: str
) -> None:
    with web.serving({"/os": Image(QCOW2, ETag='"1"')}) as site:
        url = site.url("/os")
        path = tmp_path / "cache" / hashlib.sha256(url.encode()).hexdigest()
        path.parent.mkdir()
        arguments = (str(tmp_path), str(path), suffix)
        died = subprocess.run([sys.executable, "-c", CONDUCTOR, *arguments], check=False)
        assert (died.returncode, cached(tmp_path)) == (9, [suffix])
        assert content_of(conf, publish(conf, task(url, QCOW2))) == images.CONVERTED
    assert cached(tmp_path) == ["", ".json"]


@pytest.mark.parametrize("note", [None, b'{"etag": "\\"1\\"", "dig'])
def test_a_file_without_a_whole_note_is_fetched_anew(
    conf: Conf, tmp_path: Path, note: bytes | None
) -> None:
    served = Image(images.RAW, ETag='"1"')
    with web.serving({"/os": served}) as site:
        publish(conf, task(site.url("/os"), images.RAW))
        [path] = (tmp_path / "cache").glob("*.json")
        path.unlink() if note is None else path.write_bytes(note)
        path.with_suffix("").write_bytes(b"of a conductor that died")
        assert content_of(conf, publish(conf, task(site.url("/os"), images.RAW))) == images.RAW
    assert served.reads == 2


def test_a_converter_that_outlives_its_conductor_writes_into_no_other_image(
    conf: Conf, asked: Path, tmp_path: Path
) -> None:
    with web.serving({"/os": web.text(QCOW2)}) as site:
        path = tmp_path / "cache" / hashlib.sha256(site.url("/os").encode()).hexdigest()
        path.parent.mkdir()
        with path.with_suffix(cache.CONVERTED).open("wb") as orphan:
            published = publish(conf, task(site.url("/os"), QCOW2))
            orphan.write(b"late")
            orphan.flush()
        assert content_of(conf, published) == images.CONVERTED


def test_a_cache_on_another_file_system_is_told(conf: Conf, monkeypatch) -> None:
    def link(_self: Path, _target: Path) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", link)
    with web.serving({"/os": web.text(images.RAW)}) as site:
        node = task(site.url("/os"), images.RAW)
        with pytest.raises(errors.StepFailure, match="different file systems"):
            publish(conf, node)


# ------------------------------------------------------------------------------ the real qemu-img


@pytest.fixture
def qemu_img() -> str:
    program = shutil.which(image_format.QEMU_IMG)
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("needs the Debian package qemu-utils")
        pytest.skip("needs the Debian package qemu-utils")
    return program


def make(qemu_img: str, tmp_path: Path, *options: str) -> tuple[bytes, Path]:
    """Return a disk, and an image of it that qemu-img has made."""
    disk, made = os.urandom(1 << 20), tmp_path / "os.image"
    (tmp_path / "disk").write_bytes(disk)
    command = [qemu_img, "convert", "-f", "raw", *options, str(tmp_path / "disk"), str(made)]
    subprocess.run(command, check=True, capture_output=True)
    return disk, made


@pytest.mark.parametrize("name", image_format.FORMATS)
def test_each_format_becomes_the_disk_that_it_was(
    conf: Conf, qemu_img: str, tmp_path: Path, name: str
) -> None:
    room = dataclasses.replace(conf, pxe=dataclasses.replace(conf.pxe, image_cache_size=64))
    disk, made = make(qemu_img, tmp_path, "-O", name)
    content = made.read_bytes()
    with web.serving({"/os": web.text(content)}) as site:
        node = task(site.url("/os"), content, image_disk_format=name)
        assert content_of(conf, publish(room, node)) == disk


@pytest.mark.parametrize("name", image_format.FORMATS[1:])
def test_half_an_image_with_a_right_checksum_is_refused(
    conf: Conf, qemu_img: str, tmp_path: Path, name: str
) -> None:
    room = dataclasses.replace(conf, pxe=dataclasses.replace(conf.pxe, image_cache_size=64))
    content = make(qemu_img, tmp_path, "-O", name)[1].read_bytes()[: 600 << 10]
    with web.serving({"/os": web.text(content)}) as site:
        node = task(site.url("/os"), content, image_disk_format=name)
        with pytest.raises(errors.StepFailure, match="cannot use the image"):
            publish(room, node)


def test_a_vmdk_of_several_files_is_refused(conf: Conf, qemu_img: str, tmp_path: Path) -> None:
    flat = ("-O", "vmdk", "-o", "subformat=twoGbMaxExtentFlat")
    content = make(qemu_img, tmp_path, *flat)[1].read_bytes()
    with web.serving({"/os": web.text(content)}) as site:
        node = task(site.url("/os"), content)
        with pytest.raises(errors.StepFailure, match="several files"):
            publish(conf, node)


@pytest.mark.parametrize("fetched", [True, False], ids=["fetched", "of this host"])
@pytest.mark.parametrize("built_for", ["x86_64", "aarch64"])
def test_an_image_that_boots_other_machines_is_not_handed_out(
    conf: Conf, tmp_path: Path, fetched: bool, built_for: str
) -> None:
    disk = programs.efi_disk(built_for)
    (tmp_path / "disk").write_bytes(disk)
    with web.serving({"/disk": web.text(disk)}) as site:
        url = site.url("/disk") if fetched else f"file://{tmp_path}/disk"
        for turn in range(2):  # the second one from the cache
            node = task(url, disk, image_disk_format="raw")
            node.node.properties = {"cpu_arch": "arm64"}
            if built_for == "aarch64":
                assert content_of(conf, publish(conf, node)) == disk, turn
                continue
            with pytest.raises(errors.StepFailure, match=r"for x86_64, and .* is aarch64"):
                publish(conf, node)
    assert len(boot_files.list_files(conf.deploy.http_root)) == 2 * (built_for == "aarch64")
