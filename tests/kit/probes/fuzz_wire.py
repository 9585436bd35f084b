"""Bytes on a TCP connection that are no HTTP, or only half of it.

    with wire.served(target) as address:
        wire.throw(address, seed, 100)

Whatever comes, the server ends the connection in time and answers the next one.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

import hypothesis
from hypothesis import strategies as st

from bloomery.api import server
from bloomery.api.versions import MAX
from bloomery.conf import Conf
from bloomery.conf.api import Api
from tests.kit.clients import slow_clients
from tests.kit.probes import fuzzing
from tests.kit.waiting import wait_for

Address = tuple[str, int]

PATIENCE_S = 20
DAWDLERS = 42  # three times as many as there are ways to dawdle
OF_THE_SERVER = {501, 505}  # what HTTP itself wants to be said of encodings and versions
HEAD = b"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/nodes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
MESSAGES = [
    b"", b"\r\n", b"\r\n\r\n\r\n", b"\0", b"\xff" * 100, b"GET", b"GET /", b"GET / HTTP/1.1",
    b"GET\r\n\r\n", b"GET /v1\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/0.9\r\n\r\n",
    b"GET / HTTP/1.0\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/x\r\n\r\n",
    b"GET / FTP/1.1\r\n\r\n", b"GET  /  HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1 x\r\n\r\n",
    b"GET http://a/v1/nodes HTTP/1.1\r\nHost: b\r\n\r\n", b"GET //v1 HTTP/1.1\r\nHost: b\r\n\r\n",
    b"GET http://[::1 HTTP/1.1\r\nHost: b\r\n\r\n", b"GET ?x HTTP/1.1\r\nHost: b\r\n\r\n",
    b"GET v1 HTTP/1.1\r\nHost: b\r\n\r\n", b"GET * HTTP/1.1\r\nHost: b\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: b\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: b\r\n\r\n",
    b"GET /%zz%ff%00 HTTP/1.1\r\nHost: b\r\n\r\n", b"GET /\xff\xfe HTTP/1.1\r\nHost: b\r\n\r\n",
    b"GET /v1#x HTTP/1.1\r\nHost: b\r\n\r\n", b"GET /v1/nodes?\xff=\0 HTTP/1.1\r\nHost: b\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"A" * 200_000,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x01" * 200,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"get /v1/nodes HTTP/1.1\r\nHost: b\r\n\r\n",
    HEAD, HEAD + b"X: " + b"x" * 100_000 + b"\r\n\r\n", HEAD + b"X: y\r\n" * 3000 + b"\r\n",
    HEAD + b"no colon\r\n\r\n", HEAD + b": nameless\r\n\r\n", HEAD + b" folded\r\n\r\n",
    b"GET /v1/nodes HTTP/1.1\r\n folded\r\n\r\n",
    HEAD + b"X: \0\xff\r\n\r\n", HEAD + b"X\xff: y\r\n\r\n", HEAD + b"X: y\n\n", HEAD + b"\n",
    HEAD + b"Connection: \xff\r\n\r\n", HEAD + b"Expect: 100-continue\r\n\r\n",
    HEAD + b"Host: y\r\nHost: z\r\n\r\n", HEAD + b"\r\n" + HEAD + b"\r\n" + HEAD + b"\r\n",
    HEAD + b"X-OpenStack-Ironic-API-Version: \xff\r\n\r\n",
    HEAD + b"X_OpenStack_Ironic_API_Version: 1.%d\r\n\r\n" % MAX, HEAD + b"Upgrade: h2c\r\n\r\n",
    HEAD + b"Content-Length: 5\r\n\r\nhello", HEAD + b"Content-Length: 5\r\n\r\nhe",
    POST + b"\r\n", POST + b"\r\n{}", POST + b"Content-Length: 2\r\n\r\n{}",
    POST + b"Content-Length: 2\r\n\r\n", POST + b"Content-Length: 99\r\n\r\n{}",
    POST + b"Content-Length: 1\r\n\r\n{}GET /", POST + b"Content-Length: -1\r\n\r\n{}",
    POST + b"Content-Length: x\r\n\r\n{}", POST + b"Content-Length: 1e3\r\n\r\n{}",
    POST + b"Content-Length: \xb2\r\n\r\n{}", POST + b"Content-Length: +2\r\n\r\n{}",
    POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}\n",
    POST + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n{}",
    POST + b"Content-Length: 99999999\r\n\r\n{}", POST + b"Content-Length:\r\n\r\n{}",
    POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: gzip\r\n\r\n{}", POST + b"Transfer-Encoding: \xff\r\n\r\n{}",
    POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}", CHUNKED,
    CHUNKED + b"2\r\n{}\r\n0\r\n\r\n", CHUNKED + b"2;x=y\r\n{}\r\n0\r\nTrailer: x\r\n\r\n",
    CHUNKED + b"2\r\n{}", CHUNKED + b"2\r\n{}\r\n", CHUNKED + b"2\r\n{}XX0\r\n\r\n",
    CHUNKED + b"zz\r\n{}\r\n", CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n", CHUNKED + b"\r\n\r\n",
    CHUNKED + b"ffffffffffffffffffff\r\n{}\r\n", CHUNKED + b"+2\r\n{}\r\n0\r\n\r\n",
    CHUNKED + b"0x2\r\n{}\r\n0\r\n\r\n", CHUNKED + b"2\n{}\n0\n\n", CHUNKED + b"1" * 70_000,
    CHUNKED + b"200000\r\n" + b"x" * 0x200000 + b"\r\n0\r\n\r\n",
    CHUNKED + b"0\r\nX: " + b"x" * 200_000,
]  # fmt: skip
BITS = [b"", b"\0", b"\xff", b"\r\n", b"\n", b":", b" "]
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")


@contextlib.contextmanager
def served(target: fuzzing.Target) -> Iterator[Address]:
    """Serve the target on a port; no thread may be left when the server has stopped."""
    before = set(threading.enumerate())
    serving = server.make(target.app, Conf(api=Api(port=0)))
    serving.start()
    try:
        yield serving.address
    finally:
        serving.stop()
    ours = {thread for thread in set(threading.enumerate()) - before if _of_server(thread)}
    wait_for(lambda: not any(thread.is_alive() for thread in ours), "the server's threads to end")


def _of_server(thread: threading.Thread) -> bool:
    return thread.name == "api" or thread.name.startswith("api-")


def send_all(address: Address, told: Any) -> None:
    """Send every message of the table; between them the server is asked how it is."""
    for message in MESSAGES:
        told[_sent(address, message)] += 1
        ask_well(address)


def throw(address: Address, seed: int, examples: int, told: Any) -> None:
    """Send so many messages that are cut, doubled, and changed in places."""

    @hypothesis.seed(seed)
    @fuzzing.settings(examples)
    @hypothesis.given(message=messages())
    def look(message: bytes) -> None:
        told[_sent(address, message)] += 1

    look()
    ask_well(address)


def break_off(address: Address, seed: int, examples: int) -> None:
    """Send so many messages and go before the answer comes."""

    @hypothesis.seed(seed)
    @fuzzing.settings(examples)
    @hypothesis.given(message=messages())
    def look(message: bytes) -> None:
        with contextlib.suppress(OSError), _connected(address) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.sendall(message)

    look()
    ask_well(address)


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    message = draw(st.sampled_from([each for each in MESSAGES if len(each) < 5000]))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(message)))
        odd = draw(st.sampled_from(BITS) | st.binary(max_size=8))
        keep = draw(st.sampled_from([0, 0, 1, 5, 1000]))
        message = message[:place] + odd + message[place + keep :]
    return message * draw(st.sampled_from([1, 1, 1, 2]))


def dawdle(address: Address, told: Any) -> None:
    """Many clients say nothing, or half of it; others are served all the same."""
    halves = [b"", b"G", HEAD, HEAD + b"X: " + b"x" * 9000, *slow_clients.SHAPES.values()]
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(_connected(address)) for _ in range(DAWDLERS)]
        for number, connection in enumerate(waiting):
            connection.sendall(halves[number % len(halves)])
            ask_well(address)
        waiting[2].sendall(b"\r\n")
        assert _STATUS.match(waiting[2].recv(65536)), "a request that came in two parts"
        told[200] += 1


def ask_well(address: Address) -> None:
    """A client that knows HTTP is served."""
    connection = http.client.HTTPConnection(*address, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/v1/nodes")
        assert connection.getresponse().status == 200
    finally:
        connection.close()


def _connected(address: Address) -> socket.socket:
    return socket.create_connection(address, timeout=PATIENCE_S)


@contextlib.contextmanager
def _allowed_to_hang_up() -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise
    except OSError:
        pass


def _sent(address: Address, message: bytes) -> int:
    """Send, say that nothing follows, and return the first status; 0: hung up without a word."""
    with _connected(address) as connection:
        said = b""
        with _allowed_to_hang_up():  # it may refuse before it has read everything
            connection.sendall(message)
            connection.shutdown(socket.SHUT_WR)
        with _allowed_to_hang_up():
            while part := connection.recv(65536):
                said += part
    statuses = [int(found) for found in _STATUS.findall(said)]
    assert all(status < 500 or status in OF_THE_SERVER for status in statuses), (message, said)
    assert fuzzing.SECRET.encode() not in said
    return statuses[0] if statuses else 0
