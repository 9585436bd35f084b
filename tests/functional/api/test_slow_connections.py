"""Clients that are slow, or never finish what they began: nobody else waits for them."""

from __future__ import annotations

import contextlib
import http.client
import select
import socket

import pytest

from bloomery import metrics
from bloomery.api.versions import MAX
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.http_server.connections import State
from tests.kit.clients import slow_clients
from tests.kit.clients.slow_clients import CHUNKED, GET, HEALTH, LONG, POST, SHAPES, TYPE
from tests.kit.waiting import wait_for

HUGE = b"Content-Length: 99999999\r\n\r\n"
UNASKED = {
    "half a head": GET[:20],
    "headers": POST + b"X-One: 1\r\n",
    "a small body": POST + b"Content-Length: 10\r\n\r\n1",
    "a body where no login is wanted": b"POST /v1 HTTP/1.1\r\n" + TYPE + LONG,
}
NEXT = b"GET /v1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.fixture
def serving(world):
    with slow_clients.serving(world.app) as serving:
        yield serving


@pytest.mark.parametrize("sent", SHAPES.values(), ids=SHAPES)
def test_slow_clients_hold_nobody_up(serving, sent):
    slow_clients.hold_nobody_up(serving, sent)


def test_clients_that_read_nothing_hold_nobody_up():
    with slow_clients.serving(slow_clients.application) as serving:
        slow_clients.read_nothing(serving)


@pytest.mark.parametrize("pieces", [1, 2, 7])
@pytest.mark.parametrize("chunked", [False, True])
def test_body_is_put_together_from_its_pieces(world, serving, pieces, chunked):
    text = "".join(chr(97 + number % 26) for number in range(400_000))
    body = b'{"driver": "fake-hardware", "extra": {"text": "' + text.encode() + b'"}}'
    size = len(body) // pieces + 1
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    head = b"" if chunked else b"Content-Length: %d\r\n\r\n" % len(body)
    if chunked:
        parts = [b"%x\r\n%s\r\n" % (len(part), part) for part in parts] + [b"0\r\n\r\n"]
        head = b"Transfer-Encoding: chunked\r\n\r\n"
    with slow_clients.clients(serving, POST + b"Connection: close\r\n" + head) as (client,):
        for part in parts:
            client.sendall(part)
        assert slow_clients.statuses(client) == [201]
    (node,) = world.api.get("/v1/nodes/detail", version=MAX).json["nodes"]
    assert node["extra"] == {"text": text}


def test_client_that_asks_first_is_told_to_go_on(serving):
    head = POST + b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: 26\r\n\r\n"
    with slow_clients.clients(serving, head) as (client,):
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b'{"driver":"fake-hardware"}')
        assert slow_clients.statuses(client) == [201]


# ----------------------------------------------------------------- decided by the head alone


@pytest.mark.parametrize(
    "sent",
    [
        POST + HUGE,
        POST + b"Expect: 100-continue\r\n" + HUGE,
        b"PUT /v1/nodes/x/states/provision HTTP/1.1\r\n" + TYPE + HUGE,
    ],
)
def test_too_long_a_body_is_refused_by_its_head(serving, sent):
    assert slow_clients.are_refused_by_their_head(serving, sent) == [413]


def test_chunks_are_counted_while_they_come(serving):
    flood = POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"10000\r\n%s\r\n" % (b"x" * 65536) * 17
    assert slow_clients.are_refused_by_their_head(serving, flood) == [413]


@pytest.mark.parametrize(
    ("sent", "status"), [(HEALTH + LONG, 200), (b"OPTIONS / HTTP/1.1\r\n" + TYPE + CHUNKED, 200)]
)
def test_who_reads_no_body_does_not_wait_for_one(serving, sent, status):
    assert slow_clients.are_refused_by_their_head(serving, sent) == [status]


class TestWithLogins:
    @pytest.fixture
    def conf(self, tmp_path):
        users = tmp_path / "htpasswd"
        users.write_text("")
        return Conf(
            default=Default(auth_strategy="http_basic", http_basic_auth_user_file=str(users)),
        )

    @pytest.mark.parametrize("login", [b"", b"Authorization: Basic YTpi\r\n"])
    @pytest.mark.parametrize("body", [LONG, CHUNKED, b"Expect: 100-continue\r\n" + LONG[:-1]])
    def test_login_comes_before_the_body(self, serving, login, body):
        assert slow_clients.are_refused_by_their_head(serving, POST + login + body) == [401]

    @pytest.mark.parametrize("path", [b"/v1/nodes", b"/healthz"])
    def test_body_that_nobody_reads_is_no_request(self, serving, path):
        inner = b"GET /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(inner), inner)
        sent = b"POST " + path + b" HTTP/1.1\r\n" + TYPE + b"Transfer-Encoding: chunked\r\n\r\n"
        with slow_clients.clients(serving, sent + chunk + NEXT) as (client,):
            assert slow_clients.statuses(client) == [401 if path == b"/v1/nodes" else 200, 200]


# ------------------------------------------------------------------------ what is no request


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (POST + b"Content-Length: 2\r\n" + CHUNKED, 400),
        (POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n", 400),
        (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET /v1/nodes HTTP/1.1\nHost: localhost\n\n", 400),
        (b"GET /v1/nodes HTTP/1.1\r\n\r\n", 400),
        (b"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\nHost: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 300 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 200_000, 431),
        (GET * 65, 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1;" + b"x" * 300_000, 400),
        (b"NONSENSE /v1/nodes HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    ],
    ids=range(15),
)
def test_what_is_no_request_is_refused_and_the_connection_ends(serving, sent, status):
    with slow_clients.clients(serving, sent + NEXT) as (client,):
        assert slow_clients.statuses(client)[-1] == status


@pytest.mark.parametrize(
    "sent", [b"nonsense\r\n\r\n", b"ODD / HTTP/1.1\r\nHost: localhost\r\n\r\n"]
)
def test_refusal_has_a_request_id_and_is_counted(serving, sent):
    before = sum(_refusals())
    with slow_clients.clients(serving, sent) as (client,):
        told = client.makefile("rb").read()
    assert told.count(b"openstack-request-id: req-") == 2
    assert sum(_refusals()) == before + 1


def _refusals():
    lines = metrics.render(()).decode().splitlines()
    ours = [line for line in lines if line.startswith('bloomery_api_requests_total{method="other"')]
    return [float(line.split()[-1]) for line in ours]


def test_what_came_before_is_answered_first(serving):
    with slow_clients.clients(serving, GET + GET + b"nonsense\r\n\r\n" + GET) as (client,):
        assert slow_clients.statuses(client) == [200, 200, 400]


# ------------------------------------------------------------------------- how long, how many


@pytest.mark.parametrize(
    ("sent", "limit", "told"),
    [
        (b"", "head_s", []),
        (GET[:20], "head_s", [408]),
        (POST + b"Content-Length: 9\r\n\r\n{", "body_s", [408]),
        (POST + CHUNKED, "body_s", [408]),
        (GET, "idle_s", [200]),
        (GET + GET[:20], "head_s", [200, 408]),
    ],
)
def test_patience_has_an_end(world, sent, limit, told):
    with (
        slow_clients.serving(world.app, **{limit: 0}) as serving,
        slow_clients.clients(serving, sent) as (client,),
    ):
        assert slow_clients.statuses(client) == told


def test_idle_connections_make_room_for_new_ones(world):
    with slow_clients.serving(world.app, connections=8) as serving:
        slow_clients.find_room(serving, 8)


@pytest.mark.parametrize("sent", UNASKED.values(), ids=UNASKED)
def test_who_sends_what_nobody_asked_for_makes_room(world, sent):
    with slow_clients.serving(world.app, connections=8) as serving:
        slow_clients.find_room(serving, 8, sent)


def test_who_is_in_a_request_goes_after_those_that_rest(world):
    with (
        slow_clients.serving(world.app, connections=8) as serving,
        slow_clients.clients(serving, GET, 8) as (first, *others),
    ):
        assert [client.recv(12) for client in (first, *others)] == [b"HTTP/1.1 200"] * 8
        wait_for(lambda: _rest(serving), "all to rest")
        first.sendall(POST + b"Content-Length: 26\r\n\r\n{")
        wait_for(lambda: _are_in_bodies(serving), "the head of the second request")
        assert [slow_clients.status(serving) for _ in range(3)] == [200] * 3
        first.sendall(b'"driver":"fake-hardware"}')
        with contextlib.suppress(OSError):  # the server may have answered and hung up by now
            first.shutdown(socket.SHUT_WR)
        assert slow_clients.statuses(first) == [201]


def _rest(serving):
    return {each.state for each in list(serving._connections._all.values())} == {State.READING}


def _are_in_bodies(serving):
    return [each for each in list(serving._connections._all.values()) if each.reader.is_in_body]


def test_where_all_are_busy_new_ones_wait_and_it_is_said_once(world, caplog):
    with slow_clients.serving(world.app, connections=4) as serving:
        with slow_clients.clients(serving, POST + CHUNKED, 4):
            late = http.client.HTTPConnection(*serving.address, timeout=10)
            late.request("GET", "/v1/nodes")
            others = [socket.create_connection(serving.address) for _ in range(9)]
        assert late.getresponse().status == 200
        for other in (late, *others):
            other.close()
        assert slow_clients.status(serving) == 200
    assert len([each for each in caplog.records if "connections are open" in each.message]) == 1


def test_bodies_are_bounded_together(world):
    with slow_clients.serving(world.app, bodies=150_000) as serving:
        part = b"Content-Length: 100001\r\n\r\n" + b"x" * 100_000
        with slow_clients.clients(serving, POST + part, 2) as both:
            refused, _, _ = select.select(both, [], [], slow_clients.PATIENCE_S)
            assert refused
            assert all(slow_clients.statuses(client) == [503] for client in refused)
        slow_clients.hold_nobody_up(serving, SHAPES["a small body"])


def test_who_has_just_come_is_not_who_goes(world):
    with (
        slow_clients.serving(world.app, connections=8) as serving,
        slow_clients.clients(serving, GET, 8) as idle,
    ):
        assert all(client.recv(12) == b"HTTP/1.1 200" for client in idle)
        for _ in range(20):
            with slow_clients.clients(serving, b"") as (client,):
                assert slow_clients.status(serving) == 200
                client.sendall(NEXT)
                assert slow_clients.statuses(client) == [200]
