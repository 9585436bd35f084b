"""The HTTP server: where it listens, idle connections, limits, stopping."""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bloomery import errors
from bloomery.api import auth, server
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.default import Default
from bloomery.http_server import connections, messages, wsgi
from bloomery.http_server.server import LARGE
from tests.kit.clients import slow_clients
from tests.kit.waiting import wait_for

ANY = Conf(api=Api(port=0, max_json_body_size_provision=2048))


@pytest.fixture
def serving(world):
    serving = server.make(world.app, ANY)
    serving.start()
    yield serving
    serving.stop()


@pytest.fixture
def connect(serving):
    made = []

    def connected():
        made.append(http.client.HTTPConnection(*serving.address, timeout=10))
        return made[-1]

    yield connected
    for connection in made:
        connection.close()


def asked(connection, method="GET", path="/v1/nodes", **more):
    connection.request(method, path, **more)
    answer = connection.getresponse()
    return answer, answer.read()


def test_any_free_port_is_told(serving, connect):
    host, port = serving.address
    assert (host, port > 0) == ("127.0.0.1", True)
    answer, body = asked(connect())
    assert (answer.status, body) == (200, b'{"nodes":[]}')


def test_connection_is_kept_for_the_next_request(serving, connect):
    connection = connect()
    for _ in range(3):
        asked(
            connection,
            "POST",
            body=b'{"driver":"fake-hardware"}',
            headers={"Content-Type": "application/json"},
        )
        local = connection.sock.getsockname()
        asked(connection)
        assert connection.sock.getsockname() == local


def test_idle_connections_cost_no_thread(serving, connect):
    idle = []
    for _ in range(200):
        connection = connect()
        assert asked(connection)[0].status == 200
        idle.append(connection)
    before = threading.active_count()
    assert asked(connect())[0].status == 200
    assert threading.active_count() == before < 40
    for connection in idle[::20]:
        assert asked(connection)[0].status == 200


_BEAT, _LIST = "/v1/heartbeat/5f1b3a52-6d7e-4a5e-8f0c-0d6c8f0a9b11?x=1", "/v1/nodes?limit=1"


@pytest.mark.parametrize(("waiting", "other"), [(_BEAT, _LIST), (_LIST, _BEAT)])
def test_agents_and_users_do_not_delay_each_other(waiting, other):
    released, begun = threading.Event(), []

    def application(environ, start_response):
        if environ["PATH_INFO"] in waiting:
            begun.append(threading.current_thread().name)
            released.wait()
        start_response("200 OK", [("Content-Length", "0")])
        return []

    serving = server.make(application, ANY, agent_calls=auth.AGENT_CALLS)
    serving.start()
    clients = [http.client.HTTPConnection(*serving.address, timeout=10) for _ in range(9)]
    try:
        for client in clients[1:]:
            client.request("POST", waiting)
        wait_for(lambda: len(set(begun)) == (2 if waiting == _BEAT else 4), "all of their threads")
        assert asked(clients[0], "POST", other)[0].status == 200
        released.set()
        assert [client.getresponse().status for client in clients[1:]] == [200] * 8
    finally:
        released.set()
        for client in clients:
            client.close()
        serving.stop()


def test_chunked_body_is_read_and_limited(serving, connect):
    connection = connect()
    headers = {"Content-Type": "application/json"}
    answer, _ = asked(
        connection, "POST", body=iter([b'{"driver":', b'"fake-hardware"}']), headers=headers
    )
    assert answer.status == 201
    flood = iter([b'{"driver": "'] + [b"x" * 65536] * 17)
    answer, body = asked(connect(), "POST", body=flood, headers=headers)
    assert (answer.status, b"faultstring" in body) == (413, True)


def test_declared_flood_is_refused_without_being_read(serving):
    with socket.create_connection(serving.address, timeout=10) as raw:
        raw.sendall(
            b"POST /v1/nodes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1900000\r\n\r\n{"
        )
        answer = raw.recv(4096)
    assert answer.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /%ff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://other/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/nodes HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/nodes HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
    ],
    ids=repr,
)
def test_odd_request_is_answered_and_the_next_one_served(serving, connect, raw):
    with socket.create_connection(serving.address, timeout=10) as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65536)
    assert not answer.startswith(b"HTTP/1.1 5") or b"505" in answer[:20]
    assert asked(connect())[0].status == 200


def links_of(serving, raw):
    """Ask for the versions; return the address that they are said to be at."""
    with socket.create_connection(serving.address, timeout=10) as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), answer
    return json.loads(body)["default_version"]["links"][0]["href"]


@pytest.mark.parametrize(
    ("raw", "host"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", None),
        (b"GET / HTTP/1.0\r\nHost:\r\n\r\n", None),
        (b"GET / HTTP/1.1\r\nHost: \r\n\r\n", None),
        (b"GET / HTTP/1.1\r\nHost: a.localhost\r\n\r\n", "a.localhost"),
        (b"GET / HTTP/1.1\r\nHost: a.localhost:80\r\n\r\n", "a.localhost"),
        (b"GET http://b.localhost:81/ HTTP/1.1\r\nHost: a.localhost\r\n\r\n", "b.localhost:81"),
        (b"GET HTTP://b.localhost HTTP/1.1\r\nHost: a.localhost\r\n\r\n", "b.localhost"),
    ],
)
def test_links_say_the_host_that_was_asked_or_where_it_was_reached(serving, raw, host):
    reached = "{}:{}".format(*serving.address)
    assert links_of(serving, raw) == f"http://{host or reached}/v1/"


def test_url_as_a_whole_is_asked_as_its_path_is(serving, connect):
    for path in ("/v1/nodes?limit=5", "/v1/nodes?", "?limit=x"):
        answer, body = asked(connect(), path=f"http://a.localhost{path}")
        plain, same = asked(connect(), path=path if path.startswith("/") else f"/{path}")
        assert (answer.status, body) == (plain.status, same)


@pytest.mark.parametrize(
    "target", ["http://", "http:///v1", "http://me@a/v1", "ftp://a/v1", "http://a/v1#x", "a/v1"]
)
def test_url_of_something_else_is_refused(serving, target):
    with socket.create_connection(serving.address, timeout=10) as raw:
        raw.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert raw.recv(4096).startswith(b"HTTP/1.1 400")


def test_stopped_server_listens_no_more(world):
    serving = server.make(world.app, ANY)
    serving.start()
    address = serving.address
    serving.stop()
    with pytest.raises(OSError):
        socket.create_connection(address, timeout=1)


def test_taken_port_is_named(serving, world):
    taken = Conf(api=Api(port=serving.address[1]))
    said = f"127.0.0.1 port {serving.address[1]}: Address already in use; choose another"
    with pytest.raises(errors.CannotStart, match=said):
        server.make(world.app, taken)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_without_logins_it_listens_on_loopback_only(world, host):
    with pytest.raises(errors.CannotStart, match="insecure_listen"):
        server.make(world.app, Conf(api=Api(host_ip=host, port=0)))


@pytest.mark.parametrize(
    "told",
    [
        Conf(api=Api(host_ip="0.0.0.0", port=0, insecure_listen=True)),
        Conf(api=Api(host_ip="0.0.0.0", port=0), default=Default(auth_strategy="http_basic")),
        Conf(api=Api(host_ip="localhost", port=0)),
    ],
)
def test_it_listens_elsewhere_when_told_to(world, told):
    serving = server.make(world.app, told)
    serving.start()
    serving.stop()


def test_fault_of_the_server_ends_one_connection_and_no_thread(serving, connect, monkeypatch):
    real = wsgi.environ

    def broken(message, *more):
        if message.target == b"/broken":
            raise RuntimeError("on purpose")
        return real(message, *more)

    monkeypatch.setattr(wsgi, "environ", broken)
    for _ in range(2 * ANY.api.threads):
        with pytest.raises(http.client.RemoteDisconnected):
            asked(connect(), path="/broken")
    assert asked(connect())[0].status == 200


def test_fault_while_a_body_is_waited_for_ends_no_thread(serving, connect, monkeypatch):
    def broken(*_):
        raise RuntimeError("on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(connections.Connections, "wait_for_more", broken)
        for _ in range(2 * ANY.api.threads):
            with socket.create_connection(serving.address, timeout=10) as raw:
                raw.sendall(
                    b"POST /v1/nodes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n{"
                )
                assert raw.recv(100) == b""
    assert asked(connect())[0].status == 200


class Shortage:
    """An epoll that has no room for the first connections."""

    def __init__(self, real, *faults):
        self.real, self.faults = real, list(faults)

    def __getattr__(self, name):
        return getattr(self.real, name)

    def register(self, *more):
        if self.faults:
            raise self.faults.pop()
        self.real.register(*more)


def test_connections_that_cannot_be_taken_end_alone(serving, connect, monkeypatch):
    faults = (OSError(errno.ENOSPC, "No space left on device"), MemoryError(), RuntimeError("odd"))
    monkeypatch.setattr(
        serving._connections, "_poll", Shortage(serving._connections._poll, *faults)
    )
    for _ in faults:
        with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
            asked(connect())
    assert asked(connect())[0].status == 200
    assert len(serving._connections) == 1


def test_fault_in_a_sweep_ends_one_connection(world, monkeypatch):
    def broken(*_):
        raise RuntimeError("on purpose")

    monkeypatch.setattr(messages.Reader, "refuse", broken)
    late = slow_clients.serving(world.app, head_s=0)
    with late as serving, slow_clients.clients(serving, b"GET /", 2) as clients:
        assert [slow_clients.statuses(client) for client in clients] == [[], []]


def test_no_fault_ends_the_connections_thread(serving, connect, monkeypatch, caplog):
    faults = [RuntimeError("on purpose")] * 3

    def broken(self):
        if faults:
            raise faults.pop()
        real(self)

    real = connections.Connections._accept_again
    monkeypatch.setattr(connections, "FAULT_S", 0, raising=False)
    monkeypatch.setattr(connections.Connections, "_accept_again", broken)
    for _ in range(4):
        assert asked(connect())[0].status == 200
    assert not faults
    assert len([each for each in caplog.records if each.exc_info]) == 3


class FullDisk:
    def close(self):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_body_that_cannot_be_written_out_is_let_go():
    bodies = messages.Bodies(100)
    message = messages.Message(bodies)
    message.add(b"x" * 100)
    message.body.close()
    message.body = FullDisk()
    message.close()
    bodies.take(100)


def test_large_bodies_are_worked_on_one_after_the_other():
    body = b"x" * (LARGE + 1)
    both, met = threading.Barrier(2), []

    def app(environ, start):
        assert environ["wsgi.input"].read(len(body)) == body
        with contextlib.suppress(threading.BrokenBarrierError):
            met.append(both.wait(0.3))
        start("200 OK", [])
        return [b""]

    serving = server.make(app, ANY)
    serving.start()
    try:
        with ThreadPoolExecutor(4) as clients:
            answers = [clients.submit(_posted, serving.address, body) for _ in range(4)]
        assert [answer.result() for answer in answers] == [200] * 4
    finally:
        serving.stop()
    assert not met


def _posted(address, body):
    with contextlib.closing(http.client.HTTPConnection(*address, timeout=30)) as connection:
        return asked(connection, "POST", body=body)[0].status


def test_running_request_is_answered_before_the_server_stops():
    begun, go_on = threading.Event(), threading.Event()

    def app(environ, start):
        begun.set()
        go_on.wait(10)
        start("200 OK", [])
        return [b"done"]

    serving = server.make(app, ANY)
    serving.start()
    with ThreadPoolExecutor(2) as others:
        answer = others.submit(_got, serving.address)
        assert begun.wait(10)
        stopped = others.submit(serving.stop)
        wait_for(lambda: _is_deaf(serving), "the port to be closed")
        assert not stopped.done()
        go_on.set()
        assert answer.result() == (200, "close", b"done")
        stopped.result(10)


def _got(address):
    with contextlib.closing(http.client.HTTPConnection(*address, timeout=10)) as connection:
        answer, body = asked(connection)
        return answer.status, answer.headers["Connection"], body


def _is_deaf(serving):
    return serving._listener.fileno() == -1
