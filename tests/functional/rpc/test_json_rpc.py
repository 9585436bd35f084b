"""JSON-RPC as Ironic speaks it, and what of it is refused."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bcrypt
import pytest
import urllib3

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.default import Default, JsonRpc
from bloomery.lab import tls
from bloomery.model.request import Request
from bloomery.rpc import json_rpc_client, transports
from bloomery.rpc.transports import Server
from tests.kit.clock import HandClock
from tests.kit.servers import rpc
from tests.kit.servers.tcp_proxy import Cut, TcpProxy
from tests.kit.waiting import wait_for

CALL = {
    "jsonrpc": "2.0", "id": "1", "method": "vif_list",
    "params": {"node_uuid": "a", "context": {"request_id": "r"}, "rpc.version": "1.0"},
}  # fmt: skip


@pytest.fixture(scope="module")
def link() -> Iterator[rpc.Link]:
    with rpc.link("json-rpc", rpc.Endpoint()) as made:
        made.endpoint.answer = lambda method, **_: {"method": method}
        yield made


def post(link: rpc.Link, body: Any, **more: Any) -> urllib3.BaseHTTPResponse:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Connection": "close"} | more.pop("headers", {})
    url = f"http://127.0.0.1:{link.conf.json_rpc.port}/"
    return urllib3.request(more.pop("verb", "POST"), url, body=data, headers=headers, **more)


def test_a_call_is_answered_with_its_id(link):
    answer = post(link, CALL)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.json() == {"jsonrpc": "2.0", "id": "1", "result": {"method": "vif_list"}}


def test_a_failure_names_its_class_and_status(link):
    def fail(_method: str, **_arguments: Any) -> None:
        raise errors.NodeNotFound(node="a")

    before, link.endpoint.answer = link.endpoint.answer, fail
    try:
        answer = post(link, CALL).json()
    finally:
        link.endpoint.answer = before
    assert answer["error"] == {
        "code": 404, "message": str(errors.NodeNotFound(node="a")),
        "data": {"class": "bloomery.errors.NodeNotFound", "facts": {"node": "a"}, "status": 404},
    }  # fmt: skip


def test_a_call_without_an_id_is_run_and_not_answered(link):
    link.endpoint.calls.clear()
    without = {name: value for name, value in CALL.items() if name != "id"}
    answers = [post(link, without) for _ in range(2)]
    assert [(answer.status, answer.data) for answer in answers] == [(204, b"")] * 2
    assert len(link.endpoint.calls) == 2


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        ([CALL, CALL], -32600),
        ([], -32600),
        ("text", -32600),
        (CALL | {"jsonrpc": "1.0"}, -32600),
        (CALL | {"method": 1}, -32600),
        (CALL | {"params": [1]}, -32602),
        (CALL | {"params": {}}, -32602),
        (CALL | {"params": CALL["params"] | {"more": 1}}, -32602),
        (CALL | {"params": CALL["params"] | {"rpc.version": 1}}, -32602),
        (CALL | {"params": CALL["params"] | {"context": "root"}}, -32602),
        (CALL | {"method": "set_fire"}, -32601),
        (CALL | {"method": "__class__"}, -32601),
        (CALL | {"method": "_busy"}, -32601),
        (CALL | {"method": "stop"}, -32601),
    ],
)  # fmt: skip
def test_what_is_no_call_is_refused_by_code(link, body, code):
    link.endpoint.calls.clear()
    answer = post(link, body)
    assert (answer.status, answer.json()["error"]["code"]) == (200, code)
    assert not link.endpoint.calls


@pytest.mark.parametrize("odd", [{"roles": 5}, {"roles": [5]}, {"user": {}}, {"wait_s": "1"}])
def test_a_context_that_is_none_is_the_callers_fault(link, odd):
    params = CALL["params"] | {"context": {"request_id": "r"} | odd}
    error = post(link, CALL | {"params": params}).json()["error"]
    assert (error["code"], error["data"]["status"]) == (-32602, 400)
    assert next(iter(odd)) in error["message"]


@pytest.mark.parametrize("verb", ["GET", "PUT", "DELETE", "HEAD"])
def test_only_post_is_answered(link, verb):
    answer = post(link, CALL, verb=verb)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


HEAD = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("count", [70, 300])
@pytest.mark.parametrize(
    "sent",
    [b"", HEAD, HEAD + b"Content-Length: 99\r\n\r\n{", HEAD + b"Content-Length: 99999\r\n\r\n{"],
    ids=["nothing", "half a head", "half a body", "half a long body"],
)
def test_slow_connections_hold_no_order_up(passwords, sent, count):
    secret = login(passwords)
    with (
        rpc.link("json-rpc", rpc.Endpoint(), json_rpc=secret, rpc_response_timeout=5) as link,
        contextlib.ExitStack() as until_done,
    ):
        for _ in range(count):
            address = ("127.0.0.1", link.conf.json_rpc.port)
            slow = until_done.enter_context(socket.create_connection(address))
            slow.sendall(sent)
        link.conductor.inject_nmi(Request.new(), "a")
        assert len(link.endpoint.calls) == 1


def test_the_login_comes_before_the_body(passwords):
    with (
        rpc.link("json-rpc", rpc.Endpoint(), json_rpc=login(passwords)) as link,
        socket.create_connection(("127.0.0.1", link.conf.json_rpc.port), 10) as stranger,
    ):
        stranger.sendall(HEAD + b"Content-Length: 99999\r\n\r\n{")
        assert stranger.recv(4096).startswith(b"HTTP/1.1 401 ")


def test_pages_of_browsers_cannot_call(link):
    assert post(link, CALL, headers={"Content-Type": "text/plain"}).status == 415


def test_a_body_has_an_upper_bound():
    with rpc.link("json-rpc", rpc.Endpoint(), json_rpc={"max_body_size": 1}) as link:
        with pytest.raises(errors.ConductorUnreached, match=r"its \[json_rpc\]max_body_size"):
            link.conductor.vif_attach(Request.new(), "a", {"id": "x" * 1_100_000})
        assert not link.endpoint.calls
        link.conductor.vif_attach(Request.new(), "a", {"id": "x" * 900_000})


# --------------------------------------------------------------------------- logins, TLS, names


@pytest.fixture
def passwords(tmp_path: Path) -> str:
    hashed = bcrypt.hashpw(b"pass", bcrypt.gensalt(4)).decode()
    (tmp_path / "passwords").write_text(f"caller:{hashed}\n")
    return str(tmp_path / "passwords")


def login(passwords: str) -> dict[str, str]:
    return {
        "auth_strategy": "http_basic", "http_basic_auth_user_file": passwords,
        "username": "caller", "password": "pass",
    }  # fmt: skip


def test_a_login_that_is_right_may_call_and_others_may_not(passwords):
    with rpc.link("json-rpc", rpc.Endpoint(), json_rpc=login(passwords)) as link:
        link.conductor.inject_nmi(Request.new(), "a")
        statuses = [
            post(link, CALL, headers=urllib3.make_headers(basic_auth=each)).status
            for each in ("caller:wrong", "nobody:pass", "caller:pass")
        ]
        assert statuses == [401, 401, 200]
        assert post(link, CALL).headers["WWW-Authenticate"].startswith("Basic")
        assert post(link, CALL, headers={"Authorization": "Basic ?"}).status == 400
        stranger = transports.build_client(
            Conf(default=Default(rpc_transport="json-rpc"), json_rpc=JsonRpc(username="nobody"))
        )
        with pytest.raises(errors.ConductorUnreached, match=r"\[json_rpc\]username"):
            stranger.proxy(link.host).inject_nmi(Request.new(), "a")
        stranger.close()
        assert [method for method, _, _ in link.endpoint.calls] == ["inject_nmi", "vif_list"]


def test_calls_go_over_tls(tmp_path):
    certificate, key = tls.certificate(tmp_path)
    secure = {
        "use_ssl": True, "client_use_ssl": True, "cert_file": certificate, "key_file": key,
        "cafile": certificate,
    }  # fmt: skip
    with rpc.link("json-rpc", rpc.Endpoint(), json_rpc=secure) as link:
        link.conductor.inject_nmi(Request.new(), "a")
        distrusts = transports.build_client(
            Conf(default=Default(rpc_transport="json-rpc"), json_rpc=JsonRpc(client_use_ssl=True))
        )
        with pytest.raises(errors.ConductorUnreached, match="certificate"):
            distrusts.proxy(link.host).inject_nmi(Request.new(), "a")
        plain = transports.build_client(Conf(default=Default(rpc_transport="json-rpc")))
        with pytest.raises(errors.TemporaryFailure):
            plain.proxy(link.host).inject_nmi(Request.new(), "a")
        assert len(link.endpoint.calls) == 1


def test_certificates_are_read_again(tmp_path):
    certificate, key = tls.certificate(tmp_path, serial=1)
    secure = {"use_ssl": True, "cert_file": certificate, "key_file": key}
    with rpc.link("json-rpc", rpc.Endpoint(), json_rpc=secure) as link:
        place = ("127.0.0.1", link.conf.json_rpc.port)
        first = ssl.get_server_certificate(place)
        tls.certificate(tmp_path, serial=2)
        assert ssl.get_server_certificate(place) == first, "nobody has asked for it"
        link.server.reload()
        second = ssl.get_server_certificate(place)
        assert second == Path(certificate).read_text() != first
        Path(certificate).write_text("no certificate")
        link.server.reload()
        assert ssl.get_server_certificate(place) == second, "what is of no use changes nothing"


def test_who_says_nothing_to_tls_holds_nobody_up(tmp_path):
    certificate, key = tls.certificate(tmp_path)
    secure = {
        "use_ssl": True, "client_use_ssl": True, "cert_file": certificate, "key_file": key,
        "cafile": certificate,
    }  # fmt: skip
    with (
        rpc.link("json-rpc", rpc.Endpoint(), json_rpc=secure) as link,
        socket.create_connection(("127.0.0.1", link.conf.json_rpc.port)),
    ):
        link.conductor.inject_nmi(Request.new(), "a")


def test_a_conductor_listens_on_loopback_by_default():
    assert JsonRpc().host_ip == "127.0.0.1"


@pytest.mark.parametrize(
    ("json_rpc", "sentence"),
    [
        ({"host_ip": "0.0.0.0"}, r"auth_strategy noauth: whoever reaches it"),
        ({"use_ssl": True}, r"without \[json_rpc\]cert_file"),
        ({"use_ssl": True, "cert_file": "/none", "key_file": "/none"}, r"cert_file /none"),
        (
            {"auth_strategy": "http_basic", "http_basic_auth_user_file": "/none"},
            r"\[json_rpc\]http_basic_auth_user_file",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_at_the_start(json_rpc, sentence):
    with pytest.raises(errors.CannotStart, match=sentence):
        transports.build_server(rpc.conf_of("json-rpc", json_rpc=json_rpc), "h", rpc.Endpoint())


def test_tokens_are_refused_at_the_start():
    with pytest.raises(errors.CannotStart, match=r"\[json_rpc\]auth_strategy = http_basic"):
        transports.build_server(
            rpc.conf_of("json-rpc", auth_strategy="keystone"), "h", rpc.Endpoint()
        )


def test_an_address_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        conf = rpc.conf_of("json-rpc", json_rpc={"port": port})
        with pytest.raises(errors.CannotStart, match=f"127.0.0.1 port {port}"):
            transports.build_server(conf, "h", rpc.Endpoint())


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("rack-a", ("rack-a", 8089)),
        ("rack-a.example:8090", ("rack-a.example", 8090)),
        ("192.0.2.1:1", ("192.0.2.1", 1)),
        ("::1", ("::1", 8089)),
        ("2001:db8::8090", ("2001:db8::8090", 8089)),
        ("[::1]:8090", ("::1", 8090)),
    ],
)
def test_the_name_of_a_conductor_is_its_address(name, address):
    assert json_rpc_client.address(name) == address


def test_an_unusual_port_is_part_of_the_name():
    conf = Conf(default=Default(rpc_transport="json-rpc"), json_rpc=JsonRpc(port=8090))
    assert transports.conductor_name(conf, "rack-a") == "rack-a:8090"
    assert transports.conductor_name(conf, "rack-a:8090") == "rack-a:8090"
    usual = Conf(default=Default(rpc_transport="json-rpc"))
    assert transports.conductor_name(usual, "rack-a") == "rack-a"
    assert transports.conductor_name(Conf(json_rpc=JsonRpc(port=8090)), "rack-a") == "rack-a"


# ------------------------------------------------------------------------------ replies are lost


@pytest.fixture
def between() -> Iterator[tuple[rpc.Between, Any, rpc.Endpoint]]:
    """A conductor behind a wire that may be cut, as its callers know it."""
    conf, endpoint = rpc.conf_of("json-rpc"), rpc.Endpoint()
    wire = rpc.Between(conf.json_rpc.port)
    name = f"127.0.0.1:{wire.port}"
    server = transports.build_server(conf, name, endpoint)
    server.start()
    client = transports.build_client(conf)
    yield wire, client.proxy(name), endpoint
    client.close()
    wire.down()
    server.stop(5)


def test_a_lost_reply_is_asked_for_again_and_the_order_is_run_once(between):
    wire, conductor, endpoint = between
    endpoint.answer = lambda *_, **__: len(endpoint.calls)
    assert conductor.inject_nmi(Request.new(), "a") == 1
    wire.cuts = 1
    assert conductor.inject_nmi(Request.new(), "a") == 2
    assert len(endpoint.calls) == 2


def test_a_reply_that_is_lost_twice_may_have_been_done(between):
    wire, conductor, endpoint = between
    conductor.inject_nmi(Request.new(), "a")
    wire.cuts = 2
    with pytest.raises(errors.ConductorSilent, match="the connection broke"):
        conductor.inject_nmi(Request.new(), "a")
    assert len(endpoint.calls) == 2


def test_a_successor_is_not_asked_to_run_what_its_predecessor_may_have_run(between):
    """The process dies with the reply; the next one must not take the order for a new one."""
    wire, conductor, endpoint = between
    conductor.inject_nmi(Request.new(), "a")
    channel = conductor._remote._channel
    channel._instances[f"127.0.0.1:{wire.port}"] = "the one that died"
    wire.cuts = 1
    with pytest.raises(errors.ConductorSilent, match="it was started anew"):
        conductor.inject_nmi(Request.new(), "a")
    assert len(endpoint.calls) == 2  # the second one's first sending, whose reply was cut


def test_calls_that_run_are_answered_before_the_end():
    endpoint, go_on, results = rpc.Endpoint(), threading.Event(), []
    endpoint.answer = lambda *_, **__: go_on.wait(10)
    with rpc.link("json-rpc", endpoint) as link:
        caller = threading.Thread(
            target=lambda: results.append(link.conductor.inject_nmi(Request.new(), "a"))
        )
        caller.start()
        wait_for(lambda: endpoint.calls, "the call")
        ending = threading.Thread(target=link.server.stop, args=(10,))
        ending.start()
        go_on.set()
        caller.join()
        ending.join()
        assert results == [True]
        with pytest.raises(errors.ConductorUnreached):
            link.conductor.inject_nmi(Request.new(), "a")


# -------------------------------------------------------------------------- the end of a server


@pytest.fixture
def proxied() -> Iterator[tuple[TcpProxy, Any, Server]]:
    """A wire, the conductor behind it as its callers know it, and its server."""
    conf = rpc.conf_of("json-rpc")
    with TcpProxy(("127.0.0.1", conf.json_rpc.port)) as wire:
        name = f"{wire.host}:{wire.port}"
        server = transports.build_server(conf, name, rpc.Endpoint())
        server.start()
        client = transports.build_client(conf)
        yield wire, client.proxy(name), server
        client.close()
        server.stop(5)


def is_refused(address: tuple[str, int]) -> bool:
    """Does nobody listen there any more?"""
    try:
        socket.create_connection(address).close()
    except ConnectionError:  # a reset, too, if it closes while the kernel lets us in
        return True
    return False


def test_a_call_into_a_kept_connection_is_answered_by_a_server_that_stops(proxied):
    """The stop begins when the caller has chosen the connection, before its call arrives."""
    wire, conductor, server = proxied
    conductor.inject_nmi(Request.new(), "a")
    ending = threading.Thread(target=server.stop, args=(10,))

    def stop(_request: bytes) -> Cut:
        if ending.ident is None:
            ending.start()
            wait_for(lambda: is_refused(wire.target), "the stop")
        return Cut.NOT

    wire.on_request = stop
    conductor.inject_nmi(Request.new(), "a")
    ending.join()


def test_who_was_let_in_is_answered_by_a_server_that_stops():
    """Callers that wait in the listener's queue when it is closed."""
    conf = rpc.conf_of("json-rpc")
    server = transports.build_server(conf, "h", rpc.Endpoint())
    with contextlib.ExitStack() as until_done:
        callers = [
            until_done.enter_context(socket.create_connection(("127.0.0.1", conf.json_rpc.port)))
            for _ in range(3)
        ]
        for caller in callers:
            caller.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        server.begin_stop()
        server.start()
        server.stop(5)
        answers = [b"".join(iter(functools.partial(each.recv, 4096), b"")) for each in callers]
    assert [answer.splitlines()[0] for answer in answers] == [
        b"HTTP/1.1 405 Method Not Allowed"
    ] * 3
    assert all(b"Connection: close" in answer for answer in answers)


def test_a_server_that_stops_waits_for_no_connection_that_nobody_uses_any_more(proxied):
    wire, conductor, server = proxied
    conductor.inject_nmi(Request.new(), "a")
    connections = server._server._connections
    connections.limits = dataclasses.replace(connections.limits, kept_s=0.001)
    server.stop(5)
    assert not server._server._loop.is_alive()
    assert is_refused(wire.target)


def test_a_server_that_was_never_started_stops():
    conf = rpc.conf_of("json-rpc")
    server = transports.build_server(conf, "h", rpc.Endpoint())
    server.stop(5)
    assert is_refused(("127.0.0.1", conf.json_rpc.port))


def test_a_caller_uses_no_connection_that_was_idle_for_a_while(proxied):
    wire, _, _ = proxied
    clock = HandClock()
    channel = json_rpc_client.JsonRpcChannel(rpc.conf_of("json-rpc"), clock)
    name = f"{wire.host}:{wire.port}"
    call = {
        "method": "inject_nmi", "version": "1.0", "call_id": "1", "host": name,
        "context": {"request_id": "r"}, "arguments": {"node_uuid": "a"},
    }  # fmt: skip
    connections = []
    for idle_s in (0, 0.9, 0.9, 1):
        clock.turn(idle_s)
        channel.call(name, call, 5)
        connections.append(wire.connections)
    channel.close()
    assert connections == [1, 1, 1, 2]
