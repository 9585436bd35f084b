"""Files of the agent: fetched once, asked for anew each time."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import gzip
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.agent import Deploy
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.drivers.agent_boot import cache
from bloomery.drivers.agent_boot.cache import BeingFetched, FileCache
from bloomery.drivers.agent_boot.http_client import HttpClient
from tests.kit.servers import web
from tests.kit.waiting import wait_for


def ramdisk_files(conf: Conf) -> FileCache:
    return FileCache(cache.ramdisks(conf), HttpClient(conf.default))


class Image:
    """A file on a server that counts how often it was read, and knows its ``etag``."""

    def __init__(self, content: bytes, **headers: str) -> None:
        self.content, self.headers, self.reads = content, headers, 0

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        etag, date = self.headers.get("ETag"), self.headers.get("Last-Modified")
        asked = request.headers
        if (etag, date) != (None, None) and (
            asked["If-None-Match"] == etag and asked["If-Modified-Since"] == date
        ):
            return web.text(b"", 304)(request)
        self.reads += 1
        return web.text(self.content, 200, **self.headers)(request)


def stored(tmp_path: Path) -> list[Path]:
    """Return what is kept in the cache, beside empty lock files."""
    return [path for path in (tmp_path / "cache").glob("*") if path.suffix != ".lock"]


@pytest.fixture
def files(tmp_path: Path) -> FileCache:
    deploy = Deploy(ramdisk_cache_path=str(tmp_path / "cache"))
    allowed = Conductor(file_url_allowed_paths=(str(tmp_path),))
    return ramdisk_files(Conf(deploy=deploy, conductor=allowed))


def read(files: FileCache, url: str) -> bytes:
    with files.open(url) as file:
        return file.read()


@pytest.mark.parametrize(
    "headers", [{"ETag": '"1"'}, {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, {}], ids=str
)
def test_a_file_is_read_again_when_it_is_another_one(files, headers: dict[str, str]) -> None:
    image = Image(b"first", **headers)
    with web.serving({"/k": image}) as site:
        assert [read(files, site.url("/k")) for _ in range(3)] == [b"first"] * 3
        assert image.reads == (1 if headers else 3), "of a server that tells, only the head"
        image.content = b"second!"
        image.headers = {name: value.replace("1", "2") for name, value in headers.items()}
        assert read(files, site.url("/k")) == b"second!"


def test_a_server_without_dates_is_believed_by_size(files, tmp_path: Path) -> None:
    image = Image(b"12345")
    with web.serving({"/k": image}) as site:
        read(files, site.url("/k"))
        image.content = b"54321"
        assert read(files, site.url("/k")) == b"12345"


def test_what_was_opened_stays_as_it_is_when_another_comes(files) -> None:
    image = Image(b"first", ETag='"1"')
    with web.serving({"/k": image}) as site, files.open(site.url("/k")) as old:
        image.content, image.headers = b"second", {"ETag": '"2"'}
        assert read(files, site.url("/k")) == b"second"
        assert old.read() == b"first"


def test_nodes_that_come_at_once_fetch_once(files) -> None:
    begun, go_on = threading.Event(), threading.Event()
    image = Image(b"content", ETag='"1"')

    def slow(request: BaseHTTPRequestHandler) -> None:
        begun.set()
        assert go_on.wait(10)
        image(request)

    with web.serving({"/k": slow}) as site, ThreadPoolExecutor(1) as pool:
        first = pool.submit(read, files, site.url("/k"))
        assert begun.wait(10)
        with pytest.raises(BeingFetched):
            files.open(site.url("/k"))
        go_on.set()
        assert first.result(10) == b"content"
        assert read(files, site.url("/k")) == b"content"
    assert image.reads == 1


def broken(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "100")
    request.end_headers()
    request.wfile.write(b"half")


@pytest.mark.parametrize(
    ("answer", "why"),
    [(web.text("", 404), "HTTP 404"), (broken, "broke off")],
    ids=["refused", "broken"],
)
def test_a_fetch_that_fails_is_told_and_leaves_nothing(
    files, tmp_path: Path, answer: Any, why: str
) -> None:
    with (
        web.serving({"/k?sig=hush": answer}) as site,
        pytest.raises(errors.StepFailure, match=why) as told,
    ):
        files.open(site.url("/k?sig=hush"))
    assert "hush" not in str(told.value)
    assert stored(tmp_path) == []


def test_an_endless_file_is_given_up(tmp_path: Path) -> None:
    conf = Conf(deploy=Deploy(ramdisk_cache_path=str(tmp_path / "cache")))
    limits = dataclasses.replace(cache.ramdisks(conf), most_bytes=3)
    with (
        web.serving({"/k": web.text("1234")}) as site,
        pytest.raises(errors.StepFailure, match="more than"),
    ):
        FileCache(limits, HttpClient(conf.default)).open(site.url("/k"))
    assert stored(tmp_path) == []


def test_a_server_that_is_away_is_told(files) -> None:
    with web.serving({}) as site:
        url = site.url("/k")
    with pytest.raises(errors.StepFailure, match=r"127\.0\.0\.1:.*: the server takes no conn"):
        files.open(url)


@pytest.mark.parametrize(
    ("url", "why"),
    [("http://images.invalid/k", "name of the server"), (f"http://{'a' * 70}.test/k", "no URL")],
)
def test_a_name_that_leads_nowhere_is_told(files, url: str, why: str) -> None:
    with pytest.raises(errors.StepFailure, match=f"cannot fetch {url}: .*{why}"):
        files.open(url)


def test_a_login_in_the_address_is_sent(files) -> None:
    def guarded(request: BaseHTTPRequestHandler) -> None:
        asked = request.headers["Authorization"] == "Basic " + base64.b64encode(b"me:g:h").decode()
        web.text(b"content", 200 if asked else 401)(request)

    with web.serving({"/k": guarded}) as site:
        assert read(files, site.url("/k").replace("//", "//me:g%3Ah@")) == b"content"


def test_a_file_that_its_server_calls_encoded_is_kept_as_it_is(files) -> None:
    content = gzip.compress(b"a ramdisk")
    image = Image(content, **{"ETag": '"1"', "Content-Encoding": "x-gzip"})
    with web.serving({"/k": image}) as site:
        assert read(files, site.url("/k")) == content


def test_what_no_node_uses_goes(files, tmp_path: Path) -> None:
    images = {f"/{name}": Image(name.encode(), ETag='"1"') for name in "abc"}
    with web.serving(images) as site:
        for name in "ab":
            read(files, site.url(f"/{name}"))
        for path in (tmp_path / "cache").iterdir():
            os.utime(path, (0, 0))
        read(files, site.url("/b"))  # used again
        read(files, site.url("/c"))  # whoever fetches clears
        assert [read(files, site.url(f"/{name}")) for name in "ab"] == [b"a", b"b"]
    assert [image.reads for image in images.values()] == [2, 1, 1]


KIB = 1 << 10
Large: TypeAlias = tuple[web.Site, dict[str, Image]]


@pytest.fixture
def small(tmp_path: Path) -> FileCache:
    return with_room_for_two(tmp_path)


def with_room_for_two(tmp_path: Path) -> FileCache:
    """Return files with room for two of 400 KiB, and no more."""
    deploy = Deploy(ramdisk_cache_path=str(tmp_path / "cache"), ramdisk_cache_size=1)
    return ramdisk_files(Conf(deploy=deploy))


@pytest.fixture
def large() -> Iterator[Large]:
    with serving_large() as served:
        yield served


@contextlib.contextmanager
def serving_large() -> Iterator[Large]:
    images = {f"/{name}": Image(name.encode() * 400 * KIB, ETag='"1"') for name in "abc"}
    with web.serving(images) as site:
        yield site, images


def age(tmp_path: Path, when: int) -> None:
    """Let what was used just now have been used a while ago, ``when`` seconds after others."""
    now = time.time()
    for path in (tmp_path / "cache").iterdir():
        if path.stat().st_mtime > now - 500:
            os.utime(path, (now - 1000 + when, now - 1000 + when))


def test_what_was_used_longest_ago_goes_when_room_is_short(small, large, tmp_path: Path) -> None:
    site, images = large
    for when, name in enumerate("bac"):
        read(small, site.url(f"/{name}"))
        age(tmp_path, when)
    sizes = [path.stat().st_size for path in stored(tmp_path) if path.suffix != ".json"]
    assert sorted(sizes) == [400 * KIB, 400 * KIB]
    read(small, site.url("/a"))
    read(small, site.url("/b"))
    assert [images[f"/{name}"].reads for name in "abc"] == [1, 2, 1]


def test_what_is_in_use_is_never_removed(small, large) -> None:
    site, images = large
    with small.open(site.url("/a")) as first, small.open(site.url("/b")) as second:
        with pytest.raises(errors.StepFailure, match=r"it has 1 MiB, and \[deploy\]ramdisk_cache"):
            read(small, site.url("/c"))
        assert (len(first.read()), len(second.read())) == (400 * KIB, 400 * KIB)
    read(small, site.url("/c"))
    assert images["/c"].reads == 2


def test_a_file_larger_than_the_quota_is_refused(small, tmp_path: Path) -> None:
    image = Image(b"x" * 1100 * KIB, ETag='"1"')
    with (
        web.serving({"/k?sig=hush": image}) as site,
        pytest.raises(errors.StepFailure, match=r"cannot fetch .*has 2 MiB.*\(1 MiB") as refusal,
    ):
        small.open(site.url("/k?sig=hush"))
    assert "hush" not in str(refusal.value)
    assert stored(tmp_path) == []


def endless(request: BaseHTTPRequestHandler) -> None:
    """Answer without a length."""
    request.send_response(200)
    request.end_headers()
    request.wfile.write(b"x" * 1100 * KIB)


def test_a_file_without_a_length_is_given_up_at_the_quota(small, tmp_path: Path) -> None:
    with (
        web.serving({"/k": endless}) as site,
        pytest.raises(errors.StepFailure, match=r"more than 1 MiB \(\[deploy\]ramdisk_cache_size"),
    ):
        small.open(site.url("/k"))
    assert stored(tmp_path) == []


def test_a_file_that_takes_most_of_the_room_is_replaced(small, tmp_path: Path) -> None:
    image = Image(b"1" * 900 * KIB, ETag='"1"')
    with web.serving({"/k": image}) as site:
        read(small, site.url("/k"))
        image.content, image.headers = b"2" * 900 * KIB, {"ETag": '"2"'}
        assert read(small, site.url("/k"))[:1] == b"2"


def test_a_file_that_comes_is_kept_from_its_creation_on(files, tmp_path: Path, monkeypatch) -> None:
    def clear_meanwhile(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "7")
        request.end_headers()
        request.wfile.write(b"con")
        wait_for(lambda: list((tmp_path / "cache").glob("*.part")), "the file")
        cache.free_room(tmp_path / "cache" / "other", 1, 0, 3600.0)
        request.wfile.write(b"tent")

    monkeypatch.setattr(cache, "share", lambda _descriptor: None)  # not shared yet
    with web.serving({"/k": clear_meanwhile}) as site:
        assert read(files, site.url("/k")) == b"content"


def test_half_a_file_of_a_process_that_died_takes_no_room(small, large, tmp_path: Path) -> None:
    site, _images = large
    read(small, site.url("/a"))
    [path] = [path for path in stored(tmp_path) if not path.suffix]
    path.replace(path.with_suffix(cache.PART))
    os.truncate(path.with_suffix(cache.PART), 1000 * KIB)
    assert len(read(small, site.url("/a"))) == 400 * KIB
    assert not list((tmp_path / "cache").glob("*.part"))


def test_interfaces_and_processes_share_one_fetch(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()
    conf = Conf(deploy=Deploy(ramdisk_cache_path=str(tmp_path)))
    image = Image(b"content", ETag='"1"')

    def slow(request: BaseHTTPRequestHandler) -> None:
        begun.set()
        assert go_on.wait(10)
        image(request)

    with web.serving({"/k": slow}) as site, ThreadPoolExecutor(1) as pool:
        first = pool.submit(read, ramdisk_files(conf), site.url("/k"))
        assert begun.wait(10)
        other = (
            "import sys; from pathlib import Path; from bloomery.drivers.agent_boot import "
            "cache; cache.exclusively(Path(sys.argv[1])).__enter__()"
        )
        [lock] = tmp_path.glob("*.lock")
        process = subprocess.run(
            [sys.executable, "-c", other, lock], check=False, capture_output=True
        )
        with pytest.raises(BeingFetched):
            ramdisk_files(conf).open(site.url("/k"))
        go_on.set()
        assert first.result(10) == b"content"
    assert b"BlockingIOError" in process.stderr
    assert image.reads == 1


def test_files_of_this_host_are_read_where_they_are(files, tmp_path: Path) -> None:
    (tmp_path / "k").write_bytes(b"here")
    assert read(files, f"file://{tmp_path}/k") == b"here"
    with pytest.raises(errors.StepFailure, match="No such file"):
        files.open(f"file://{tmp_path}/gone")


def test_a_file_of_this_host_is_never_taken_into_the_cache(files, tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.write_bytes(b"here")
    with (
        pytest.raises(errors.StepFailure, match="changed while it was read"),
        files.current(path.as_uri(), cache.AS_IT_IS),
    ):
        pytest.fail("a file that nobody converted")
    assert path.read_bytes() == b"here"


def die(_note: Any) -> bytes:
    raise KeyboardInterrupt


def test_a_death_between_a_file_and_its_note_leaves_no_old_note(files, monkeypatch) -> None:
    image = Image(b"first", ETag='"1"')
    with web.serving({"/k": image}) as site:
        read(files, site.url("/k"))
        image.content, image.headers = b"second", {"ETag": '"2"'}
        with monkeypatch.context() as dying:
            dying.setattr(cache.orjson, "dumps", die)
            with pytest.raises(KeyboardInterrupt):
                read(files, site.url("/k"))
        image.content, image.headers = b"first", {"ETag": '"1"'}
        assert read(files, site.url("/k")) == b"first"


@pytest.mark.parametrize("kind", [cache.PART, cache.CONVERTED])
def test_what_a_dead_process_left_of_another_file_goes_when_room_is_short(
    small, large, tmp_path: Path, kind: str
) -> None:
    site, _images = large
    read(small, site.url("/a"))
    leftover = (tmp_path / "cache" / ("0" * 64)).with_suffix(kind)
    leftover.write_bytes(b"x" * 600 * KIB)
    os.utime(leftover, (0, 0))
    read(small, site.url("/b"))
    assert not leftover.exists()


@pytest.mark.parametrize(
    ("said", "trusts"),
    [
        ("True", {}),
        ("no", {"cert_reqs": "CERT_NONE"}),
        ("FILE", "ca_certs"),
        ("DIR", "ca_cert_dir"),
    ],
)
def test_whom_to_trust(tmp_path: Path, said: str, trusts: Any) -> None:
    (tmp_path / "ca.pem").touch()
    path = {"FILE": str(tmp_path / "ca.pem"), "DIR": str(tmp_path)}.get(said, said)
    made = HttpClient(Default(webserver_verify_ca=path))
    assert made.trust == (trusts if isinstance(trusts, dict) else {trusts: path})


def test_certificates_that_are_not_there_keep_it_from_starting() -> None:
    with pytest.raises(errors.CannotStart, match="webserver_verify_ca /nowhere"):
        HttpClient(Default(webserver_verify_ca="/nowhere"))
