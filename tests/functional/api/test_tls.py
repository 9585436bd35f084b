"""TLS on the wire: handshakes, versions, clients' certificates, files that change or are bad."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from bloomery import errors
from bloomery.api import server
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.web import Ssl
from bloomery.http_server import connections
from bloomery.lab import tls
from tests.kit.waiting import wait_for

MANY = 40


@pytest.fixture
def files(tmp_path):
    return tls.certificate(tmp_path)


def conf_of(files, tls_minimum_version="1.3", **ssl_options):
    cert_file, key_file = files
    api = Api(
        port=0, enable_ssl_api=True, cert_file=cert_file, key_file=key_file,
        tls_minimum_version=tls_minimum_version,
    )  # fmt: skip
    return Conf(api=api, ssl=Ssl(**ssl_options))


@pytest.fixture
def start(world):
    """Serve the site with some settings, until the test has ended."""
    servers = []

    def started(conf, limits=None):
        servers.append(server.make(world.app, conf, limits))
        servers[-1].start()
        return servers[-1]

    yield started
    for serving in servers:
        serving.stop()


@pytest.fixture
def serving(start, files):
    return start(conf_of(files))


def trusting(files):
    return ssl.create_default_context(cafile=files[0])


@pytest.fixture
def connect():
    """Return a connection; it is closed after the test."""
    connections = []

    def connected(serving, context):
        address = serving.address
        connections.append(http.client.HTTPSConnection(*address, timeout=10, context=context))
        return connections[-1]

    yield connected
    for connection in connections:
        connection.close()


def asked(connection, method="GET", path="/v1/nodes", **more):
    connection.request(method, path, **more)
    answer = connection.getresponse()
    return answer, answer.read()


def test_client_that_trusts_the_certificate_is_served(serving, files, connect):
    assert serving.url == "https://127.0.0.1:{1}".format(*serving.address)
    connection = connect(serving, trusting(files))
    body = json.dumps({"driver": "fake-hardware"})
    headers = {"Content-Type": "application/json"}
    answer, _ = asked(connection, "POST", body=body, headers=headers)
    assert answer.status == 201
    assert answer.headers["location"].startswith(serving.url)
    local = connection.sock.getsockname()
    assert asked(connection, path="/v1")[0].status == 200
    assert connection.sock.getsockname() == local


def test_links_say_https(serving, files, connect):
    _, body = asked(connect(serving, trusting(files)), path="/")
    assert json.loads(body)["versions"][0]["links"][0]["href"] == f"{serving.url}/v1/"


def test_large_bodies_go_both_ways(serving, files, world, connect):
    node, filling = world.node(), "x" * 700_000
    change = json.dumps([{"op": "add", "path": "/extra/filling", "value": filling}])
    headers = {"Content-Type": "application/json"}
    connection = connect(serving, trusting(files))
    answer, _ = asked(connection, "PATCH", f"/v1/nodes/{node}", body=change, headers=headers)
    assert answer.status == 200
    _, body = asked(connection, path=f"/v1/nodes/{node}")
    assert json.loads(body)["extra"]["filling"] == filling


def test_slow_reader_gets_everything(serving, files, world):
    for _ in range(9):
        world.api.patch(
            f"/v1/nodes/{world.node()}", [{"op": "add", "path": "/extra/x", "value": "x" * 900_000}]
        )
    with socket.create_connection(serving.address, timeout=10) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        with trusting(files).wrap_socket(raw, server_hostname="127.0.0.1") as connection:
            connection.sendall(b"GET /v1/nodes/detail HTTP/1.0\r\n\r\n")
            size = sum(map(len, iter(lambda: connection.recv(1 << 15), b"")))
    assert size > 8_100_000


def test_requests_sent_ahead_are_answered_in_order(serving, files):
    with (
        socket.create_connection(serving.address, timeout=10) as raw,
        trusting(files).wrap_socket(raw, server_hostname="127.0.0.1") as connection,
    ):
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * MANY)
        connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        answers = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answers.count(b"HTTP/1.1 200 OK") == MANY + 1


@pytest.mark.parametrize(("oldest", "spoken"), [("1.2", "TLSv1.2"), ("1.3", None)])
def test_older_client_is_served_where_that_is_allowed(start, files, oldest, spoken, connect):
    serving = start(conf_of(files, tls_minimum_version=oldest))
    old = trusting(files)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    connection = connect(serving, old)
    if spoken is None:
        with pytest.raises(ssl.SSLError):
            connection.connect()
        return
    assert asked(connection)[0].status == 200
    assert connection.sock.version() == spoken


def test_stranger_without_a_certificate_is_kept_out(start, files, connect):
    serving = start(conf_of(files, ca_file=files[0]))
    with pytest.raises(OSError):
        asked(connect(serving, trusting(files)))
    known = trusting(files)
    known.load_cert_chain(*files)
    assert asked(connect(serving, known))[0].status == 200


@pytest.mark.parametrize(
    "raw", [b"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\0\xff"]
)
def test_what_is_no_handshake_ends_the_connection_and_no_other(serving, files, raw, connect):
    with (
        socket.create_connection(serving.address, timeout=10) as connection,
        contextlib.suppress(OSError),  # it may be gone at any of these
    ):
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        assert b"HTTP" not in connection.recv(4096)
    assert asked(connect(serving, trusting(files)))[0].status == 200


def test_who_shakes_no_hands_keeps_nobody_waiting_and_is_given_up(start, files, connect):
    limits = connections.Limits(connections=MANY + 1, head_s=0.01)
    serving = start(conf_of(files), limits)
    silent = [socket.create_connection(serving.address, timeout=10) for _ in range(MANY)]
    assert asked(connect(serving, trusting(files)))[0].status == 200
    for connection in silent:
        assert connection.recv(1) == b""
        connection.close()
    wait_for(lambda: len(serving._connections) <= 1, "silent clients to be given up")


@pytest.fixture
def serial(connect):
    """Return the serial number of the certificate that a server shows."""

    def read(serving, files):
        connection = connect(serving, trusting(files))
        connection.connect()
        return int(connection.sock.getpeercert()["serialNumber"], 16)

    return read


def test_renewed_certificate_is_shown_to_the_next_client(serving, files, tmp_path, connect, serial):
    before = connect(serving, trusting(files))
    assert asked(before)[0].status == 200
    assert serial(serving, files) == 1
    renewed = tls.certificate(tmp_path, serial=77)
    serving.reload()
    assert serial(serving, renewed) == 77
    assert asked(before)[0].status == 200  # who is there stays


def test_bad_renewal_leaves_the_certificate_in_force(serving, files, tmp_path, caplog, serial):
    kept = (tmp_path / "kept.crt", tmp_path / "kept.key")
    for source, copy in zip(files, kept, strict=True):
        shutil.copy(source, copy)
    Path(files[0]).write_text("")
    serving.reload()
    assert "certificates were not read again" in caplog.text
    assert serial(serving, kept) == 1


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda cert, key: (None, key), r"without \[api\]cert_file"),
        (lambda cert, key: (cert, ""), r"without \[api\]key_file"),
        (lambda cert, key: (cert + "x", key), r"\[api\]cert_file .*x: No such file"),
        (lambda cert, key: (key, key), "cannot use .*: "),
        (lambda cert, key: (cert, cert), "cannot use .*: "),
    ],
)
def test_bad_file_is_named_at_the_start(world, files, spoil, sentence):
    with pytest.raises(errors.CannotStart, match=sentence):
        server.make(world.app, conf_of(spoil(*files)))


def with_password(key):
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    form = serialization.PrivateFormat.PKCS8
    secret = serialization.BestAvailableEncryption(b"pass")
    key.write_bytes(private.private_bytes(serialization.Encoding.PEM, form, secret))


def as_der(cert):
    cert.write_bytes(ssl.PEM_cert_to_DER_cert(cert.read_text()))


@pytest.mark.parametrize("group", ["api", "ssl"])
@pytest.mark.parametrize(
    ("place", "spoil"),
    [(0, as_der), (0, lambda cert: cert.write_text("")), (1, with_password)],
    ids=["der", "empty", "password"],
)
def test_what_is_no_pem_is_told_by_the_option_that_names_it(world, files, place, spoil, group):
    spoil(Path(files[place]))
    conf = conf_of(files) if group == "api" else conf_of((None, None), **named(files))
    with pytest.raises(errors.CannotStart) as refusal:
        server.make(world.app, conf)
    assert str(refusal.value) == (
        f"cannot use [{group}]cert_file {files[0]} with [{group}]key_file {files[1]}: "
        "one of them is not PEM, or its key has a password"
    )


def named(files):
    return dict(zip(("cert_file", "key_file"), files, strict=True))


def test_file_of_the_older_group_is_named_by_it(world, files):
    conf = conf_of((None, files[1]), cert_file="/nowhere")
    with pytest.raises(errors.CannotStart, match=r"\[ssl\]cert_file /nowhere: No such file"):
        server.make(world.app, conf)
    with pytest.raises(errors.CannotStart, match=r"\[api\]cert_file .*: embedded null byte"):
        server.make(world.app, conf_of(("a\0", files[1])))


@pytest.mark.parametrize("fault", [OSError("gone"), ValueError("odd")])
def test_any_fault_of_a_renewal_leaves_the_certificate_in_force(
    serving, files, caplog, serial, monkeypatch, fault
):
    def fail(*_args):
        raise fault

    monkeypatch.setattr(ssl, "create_default_context", fail)
    serving.reload()
    monkeypatch.undo()
    assert f"certificates were not read again: {fault}" in caplog.text
    assert serial(serving, files) == 1


def test_key_with_a_password_or_of_another_is_refused(world, files, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(errors.CannotStart, match="key values mismatch"):
        server.make(world.app, conf_of((files[0], tls.certificate(other)[1])))
    with pytest.raises(errors.CannotStart, match=r"\[ssl\]ca_file .*: No such file"):
        server.make(world.app, conf_of(files, ca_file="/nowhere"))
    with pytest.raises(errors.CannotStart, match=r"\[ssl\]ciphers X: "):
        server.make(world.app, conf_of(files, ciphers="X"))


def test_files_of_the_older_group_are_used(world, files):
    conf = Conf(
        api=Api(port=0, enable_ssl_api=True), ssl=Ssl(cert_file=files[0], key_file=files[1])
    )
    serving = server.make(world.app, conf)
    assert serving.url.startswith("https://")
    serving.stop()
