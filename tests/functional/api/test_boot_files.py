"""Boot CDs over the wire: ranges, names that are right or nothing, clients that are slow."""

from __future__ import annotations

import dataclasses
import http.client
import os
import socket
import ssl
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from bloomery import boot_files
from bloomery.api import app, server
from bloomery.conf import Conf
from bloomery.conf.agent import Deploy
from bloomery.conf.api import Api
from bloomery.conf.default import Default
from bloomery.http_server.server import Server
from bloomery.http_server.wsgi import FilePieces
from bloomery.lab import tls
from tests.kit.waiting import wait_for

Ask: TypeAlias = Callable[..., tuple[http.client.HTTPResponse, bytes]]
MIB = 1 << 20
CONTENT = os.urandom(9 * MIB + 7)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / boot_files.FOLDER).mkdir()
    (tmp_path / "secret.iso").write_bytes(b"not for you")
    return tmp_path


@pytest.fixture
def cd(root: Path) -> str:
    """The path of a boot CD."""
    name = boot_files.new_name(str(uuid.uuid4()), boot_files.ISO)
    (root / boot_files.FOLDER / name).write_bytes(CONTENT)
    return f"/{boot_files.FOLDER}/{name}"


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    return tls.certificate(tmp_path)


@pytest.fixture(params=["http", "https"])
def serving(world, root: Path, certificate, request) -> Iterator[Server]:
    cert_file, key_file = certificate
    api = Api(
        port=0, enable_ssl_api=request.param == "https", cert_file=cert_file, key_file=key_file
    )
    conf = Conf(api=api, deploy=Deploy(http_root=str(root)))
    services = dataclasses.replace(world.site, conf=conf)
    serving = server.make(app.make_app(services), conf)
    serving.start()
    yield serving
    serving.stop()


@pytest.fixture
def ask(serving: Server, certificate) -> Iterator[Ask]:
    """Ask on one connection, which is kept."""
    connection = http.client.HTTPConnection(*serving.address, timeout=10)
    if serving.url.startswith("https"):
        trust = ssl.create_default_context(cafile=certificate[0])
        connection = http.client.HTTPSConnection(*serving.address, timeout=10, context=trust)

    def ask(path: str, method: str = "GET", **headers: str):
        connection.request(method, path, headers={k.replace("_", "-"): headers[k] for k in headers})
        answer = connection.getresponse()
        return answer, answer.read()

    yield ask
    connection.close()


def test_a_cd_is_handed_out_whole_on_a_connection_that_is_kept(ask: Ask, cd: str) -> None:
    for _ in range(2):
        answer, body = ask(cd)
        assert (answer.status, len(body), body == CONTENT) == (200, len(CONTENT), True)
        assert answer.headers["Content-Type"] == "application/x-iso9660-image"
        assert answer.headers["Accept-Ranges"] == "bytes"
    assert ask("/v1/nodes")[0].status == 200


SIZE = len(CONTENT)


@pytest.mark.parametrize(
    ("asked_for", "start", "stop"),
    [
        ("0-2047", 0, 2048), ("2048-4095", 2048, 4096), (f"{SIZE - 5}-", SIZE - 5, SIZE),
        ("-100", SIZE - 100, SIZE), (f"1000-{SIZE + 9999}", 1000, SIZE), ("5-5", 5, 6),
        (f"{MIB}-{7 * MIB}", MIB, 7 * MIB + 1), (f"-{SIZE}", 0, SIZE), (f"-{SIZE + 99}", 0, SIZE),
    ],
    ids=str,
)  # fmt: skip
def test_bmcs_read_ranges(ask: Ask, cd: str, asked_for: str, start: int, stop: int) -> None:
    answer, body = ask(cd, Range=f"bytes={asked_for}")
    assert answer.status == 206
    assert answer.headers["Content-Range"] == f"bytes {start}-{stop - 1}/{SIZE}"
    assert answer.headers["Content-Length"] == str(stop - start)
    assert body == CONTENT[start:stop]
    assert ask("/v1/nodes")[0].status == 200, "nothing is left on the connection"


@pytest.mark.parametrize("asked_for", [f"{SIZE}-", f"{SIZE + 5}-{SIZE + 9}", "-0"])
def test_a_range_of_which_nothing_is_there_is_refused(ask: Ask, cd: str, asked_for: str) -> None:
    answer, _ = ask(cd, Range=f"bytes={asked_for}")
    assert (answer.status, answer.headers["Content-Range"]) == (416, f"bytes */{SIZE}")


@pytest.mark.parametrize(
    "asked_for", ["bytes=--5", "bytes=-", "bytes=5-2", "bytes=0-1,3-4", "lines=1-2", "bytes=x"]
)
def test_what_is_no_range_that_we_know_is_passed_over(ask: Ask, cd: str, asked_for: str) -> None:
    answer, body = ask(cd, Range=asked_for)
    assert (answer.status, body == CONTENT) == (200, True)


def test_a_file_that_shrinks_while_it_is_sent_ends_its_connection(
    serving, ask: Ask, cd: str, root: Path, monkeypatch, caplog
) -> None:
    """Its client would wait for the rest."""
    file = root / cd.removeprefix("/")

    def shrink(connection) -> None:
        monkeypatch.setattr(connections, "_send_file", send_file)
        os.truncate(file, 5 * MIB)
        send_file(connection)

    connections = serving._connections
    send_file = connections._send_file
    monkeypatch.setattr(connections, "_send_file", shrink)
    with pytest.raises(http.client.IncompleteRead):
        ask(cd)
    assert "became shorter" in caplog.text
    assert cd not in caplog.text


def test_files_are_read_by_a_thread_of_their_own(serving, ask: Ask, cd: str, monkeypatch) -> None:
    """Neither the one that waits for all connections nor one that answers requests."""
    readers = set()

    def read(pieces: FilePieces):
        for piece in pieces_of(pieces):
            readers.add(threading.current_thread().name)
            yield piece

    pieces_of = FilePieces.__iter__
    monkeypatch.setattr(FilePieces, "__iter__", read)
    assert ask(cd)[1] == CONTENT
    assert readers == {"api-files"}


@pytest.mark.parametrize("serving", ["http"], indirect=True)
def test_other_answers_do_not_wait_for_a_disk(serving, ask: Ask, cd: str, monkeypatch) -> None:
    reads, goes_on = threading.Event(), threading.Event()

    def read(pieces: FilePieces) -> Iterator[bytes]:
        reads.set()
        goes_on.wait()
        return pieces_of(pieces)

    pieces_of = FilePieces.__iter__
    monkeypatch.setattr(FilePieces, "__iter__", lambda pieces: (yield from read(pieces)))
    with socket.create_connection(serving.address) as slow:
        slow.sendall(f"GET {cd} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert reads.wait(10)
        try:
            assert ask("/v1/nodes")[0].status == 200
        finally:
            goes_on.set()


def test_head_tells_the_size_alone(ask: Ask, cd: str) -> None:
    answer, body = ask(cd, "HEAD")
    assert (answer.status, body) == (200, b"")
    assert answer.headers["Content-Length"] == str(SIZE)
    assert ask("/v1/nodes")[0].status == 200, "nothing is left on the connection"


def test_who_has_it_already_gets_nothing(ask: Ask, cd: str) -> None:
    since = ask(cd, "HEAD")[0].headers["Last-Modified"]
    answer, body = ask(cd, If_Modified_Since=since)
    assert (answer.status, body) == (304, b"")


def test_nothing_else_is_there(ask: Ask, cd: str, root: Path) -> None:
    folder, name = cd.rsplit("/", 1)
    (root / boot_files.FOLDER / "other.iso").touch()
    part = f"{name}{boot_files.PART}"
    (root / boot_files.FOLDER / part).touch()
    stranger = boot_files.new_name(str(uuid.uuid4()), boot_files.ISO)
    below = (
        "", "/", "/.", "/../secret.iso", "/%2e%2e/secret.iso", "/..%2fsecret.iso",
        f"/{root}/secret.iso", f"//{name}", "/other.iso", f"/{part}", f"/{name}/", f"/{name}%00",
        f"/x/../{name}", f"/{stranger}",
    )  # fmt: skip
    for path in (*(folder + each for each in below), "/secret.iso", f"/v1/{name}"):
        answer, body = ask(path)
        assert (answer.status, str(root).encode() in body) == (404, False), path


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH"])
def test_it_cannot_be_changed(ask: Ask, cd: str, method: str) -> None:
    answer, _ = ask(cd, method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_no_login_is_asked_of_a_bmc(world, root: Path, cd: str) -> None:
    (root / "htpasswd").write_text("")
    default = Default(auth_strategy="http_basic", http_basic_auth_user_file=str(root / "htpasswd"))
    conf = Conf(default=default, deploy=Deploy(http_root=str(root)))
    api = type(world.api)(app.make_app(dataclasses.replace(world.site, conf=conf)))
    assert [api.get(path).status for path in ("/v1/nodes", cd)] == [401, 200]


def test_a_cd_that_is_removed_is_gone(ask: Ask, cd: str, root: Path) -> None:
    (root / cd.removeprefix("/")).unlink()
    assert ask(cd)[0].status == 404


def test_a_web_server_takes_the_place_of_the_api(world, root: Path, cd: str) -> None:
    conf = Conf(deploy=Deploy(http_root=str(root), http_url="http://images.test"))
    services = dataclasses.replace(world.site, conf=conf)
    answer = type(world.api)(app.make_app(services)).get(cd)
    assert answer.status == 404


@pytest.mark.parametrize("serving", ["http"], indirect=True)
def test_a_client_that_takes_nothing_keeps_nobody_waiting(serving, ask: Ask, cd: str) -> None:
    with socket.create_connection(serving.address) as slow:
        slow.sendall(f"GET {cd} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        connections = serving._connections._all
        wait_for(
            lambda: any(each.state.value == "writing" for each in list(connections.values())),
            "an answer that is not taken",
        )
        [stuck] = [each for each in list(connections.values()) if each.state.value == "writing"]
        assert len(stuck.out) < MIB, "a piece of it is in memory"
        assert ask(cd)[1] == CONTENT
    wait_for(lambda: stuck.fd not in connections, "its connection to end")
