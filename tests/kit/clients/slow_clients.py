"""Clients that are slow, that lie about their bodies, and what must hold for all others.

    with slow_clients.serving(app) as serving:
        slow_clients.hold_nobody_up(serving, SHAPES["a chunked body"])

SHAPES are requests that never come to their end.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

from bloomery.api import server
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.http_server.connections import Limits
from bloomery.http_server.server import Server

CONF = Conf(api=Api(port=0, threads=4))
SLOW = 8  # twice as many as there are threads
PATIENCE_S = 10
TYPE = b"Host: localhost\r\nContent-Type: application/json\r\n"
POST = b"POST /v1/nodes HTTP/1.1\r\n" + TYPE
HEALTH = b"POST /healthz HTTP/1.1\r\n" + TYPE
GET = b"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\n\r\n"
LONG = b"Content-Length: 100000\r\n\r\n{"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n9\r\n{"
SHAPES = {
    "nothing": b"",
    "half a head": GET[:20],
    "a small body": POST + b"Content-Length: 100\r\n\r\n{",
    "a body over 64 KiB": POST + LONG,
    "a chunked body": POST + CHUNKED,
    "a body that waits to be asked for": POST + b"Expect: 100-continue\r\n" + LONG[:-1],
    "half a request behind a whole one": GET + GET[:20],
    "half a body behind a whole request": GET + POST + LONG,
    "a large body for the health check": HEALTH + LONG,
    "a small body for the health check": HEALTH + b"Content-Length: 100\r\n\r\n{",
}
MUCH = 2**24  # more than the kernel keeps for a client that does not read
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


def application(environ: dict[str, Any], start: Any) -> list[bytes]:
    """Answers a GET, much or little; of the rest it reads the body where one is let in."""
    if environ["REQUEST_METHOD"] != "GET" and "HTTP_AUTHORIZATION" not in environ:
        start("401 Unauthorized", [])
        return [b""]
    if environ["REQUEST_METHOD"] != "GET":
        environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    start("200 OK", [])
    return [b"x" * (MUCH + 1 if environ["PATH_INFO"] == "/much" else 1)]


@contextlib.contextmanager
def serving(app: Any, **limits: Any) -> Iterator[Server]:
    made = server.make(app, CONF, Limits(**{"connections": 1000} | limits))
    made.start()
    try:
        yield made
    finally:
        made.stop()


@contextlib.contextmanager
def clients(serving: Server, sent: bytes, count: int = 1) -> Iterator[list[socket.socket]]:
    """Open so many connections that have sent so much."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            client = socket.create_connection(serving.address, timeout=PATIENCE_S)
            made.append(stack.enter_context(client))
            client.sendall(sent)
        yield made


def status(
    serving: Server,
    path: str = "/v1/nodes",
    headers: dict[str, str] | None = None,
) -> int:
    """Ask as anybody does, on a new connection; 0: there was no answer."""
    connection = http.client.HTTPConnection(*serving.address, timeout=PATIENCE_S)
    try:
        connection.request("GET", path, headers=headers or {})
        return connection.getresponse().status
    except TimeoutError:
        return 0
    finally:
        connection.close()


def statuses(client: socket.socket) -> list[int]:
    """Return those of all answers until the server hangs up."""
    told = b""
    while part := client.recv(65536):
        told += part
    return [int(found) for found in _STATUS.findall(told)]


def hold_nobody_up(serving: Server, sent: bytes) -> None:
    with clients(serving, sent, SLOW):
        assert [status(serving) for _ in range(3)] == [200] * 3


def read_nothing(serving: Server) -> None:
    """Clients ask for much and do not read it."""
    with clients(serving, b"GET /much HTTP/1.1\r\nHost: localhost\r\n\r\n", SLOW):
        assert status(serving, "/little") == 200


def find_room(serving: Server, most: int, sent: bytes = GET) -> None:
    """Where as many as there may be are idle, one more is served."""
    with clients(serving, sent, most):
        assert status(serving) == 200


def are_refused_by_their_head(serving: Server, sent: bytes) -> list[int]:
    """Return what a client is told that never sends its body."""
    with clients(serving, sent) as (client,):
        return statuses(client)


def waiting(over: threading.Event) -> Any:
    """Return the application with a path that is answered when it is over."""

    def answer(environ: dict[str, Any], start: Any) -> list[bytes]:
        if environ["PATH_INFO"] == "/wait":
            over.wait()
        return application(environ, start)

    return answer


def answer_probes(serving: Server) -> None:
    """More requests wait in the application than there are threads."""
    with clients(serving, b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n", SLOW):
        assert [status(serving, path) for path in ("/healthz", "/readyz")] == [200, 200]
