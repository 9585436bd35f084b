"""A connection to a BMC: what comes of each answer, whole or not, by HTTP and by TLS."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import ssl
import threading

import pytest

from bloomery.drivers.bmc.connection import BrokenOff, Connection, NotUnderstood
from bloomery.lab.tls import certificate

GET = b"GET /x HTTP/1.1\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
LIMIT_S = 20.0


class Server:
    """Plays one list of parts for each connection: bytes are sent, an Event is waited for."""

    def __init__(self, *scripts, context=None):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.accepted = 0
        self._scripts, self._context = scripts, context
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        for script in self._scripts:
            sock, _ = self.listener.accept()
            self.accepted += 1
            with contextlib.suppress(OSError), sock:
                sock = self._context.wrap_socket(sock, server_side=True) if self._context else sock
                with sock:
                    self._play(sock, script)

    def _play(self, sock, script):
        for part in script:
            if part == "request":
                assert sock.recv(4096).endswith(b"\r\n\r\n")
            elif isinstance(part, threading.Event):
                assert part.wait(LIMIT_S)
            else:
                for piece in (part,) if isinstance(part, bytes) else part:
                    sock.sendall(piece)

    def close(self):
        self.listener.close()


@pytest.fixture
def serve():
    made = []

    def serve(*scripts, **more):
        made.append(Server(*scripts, **more))
        return made[-1]

    yield serve
    for server in made:
        server.close()


def request(connection):
    return connection.request(GET, silence_s=LIMIT_S, until=math.inf)


def ask(server, times=1, context=None, host="127.0.0.1"):
    """Return the answers to so many requests on one connection, and whether it is open then."""

    async def work():
        connection = await Connection.open(host, server.port, context)
        try:
            answers = [await request(connection) for _ in range(times)]
            return answers, connection.is_open
        finally:
            connection.close()

    return asyncio.run(asyncio.wait_for(work(), LIMIT_S))


WHOLE = {  # what the BMC sends: its document, and whether the connection is kept
    "length": ([OK + b"Content-Length: 2\r\n\r\n{}"], b"{}", True),
    "a byte at a time": ([bytes([c]) for c in OK + b"Content-Length: 2\r\n\r\n{}"], b"{}", True),
    "chunks": ([OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"],
               b"{}", True),
    "until the end": ([OK + b"\r\n", b"{", b"}"], b"{}", False),
    "HTTP/1.0": ([b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"], b"{}", False),
    "close": ([OK + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}"], b"{}", False),
    "after 100": ([b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\n{}"],
                  b"{}", True),
    "nothing": ([b"HTTP/1.1 204 No Content\r\n\r\n"], b"", True),
}  # fmt: skip


@pytest.mark.parametrize("case", WHOLE)
def test_an_answer_is_read_whole(serve, case):
    parts, content, keeps = WHOLE[case]
    rest = [threading.Event()] if keeps else []  # the BMC stays
    server = serve(["request", *parts, *rest])
    [answer], is_open = ask(server)
    assert (answer.content, is_open, answer.keeps_alive) == (content, keeps, keeps)
    for event in rest:
        event.set()


BROKEN = {
    "no answer": ([], BrokenOff),
    "half a head": ([b"HTTP/1.1 20"], BrokenOff),
    "half a body": ([OK + b"Content-Length: 9\r\n\r\n{"], BrokenOff),
    "half a chunk": ([OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\n{"], BrokenOff),
    "no HTTP": ([b"SSH-2.0-dropbear\r\n"], NotUnderstood),
    "two lengths": ([OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}"], NotUnderstood),
    "another protocol": ([b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"],
                         NotUnderstood),
    "headers without end": ([OK, *[b"X: " + b"x" * 60_000 + b"\r\n"] * 80], NotUnderstood),
    "too much": ([OK + b"Content-Length: 9000000\r\n\r\n" + b"x" * 4_200_000], NotUnderstood),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_answer_is_told_and_ends_the_connection(serve, case):
    parts, error = BROKEN[case]
    before = Connection.count
    with pytest.raises(error):
        ask(serve(["request", *parts]))
    assert Connection.count == before


def test_requests_share_a_kept_connection(serve):
    stays = threading.Event()
    one = ["request", OK + b"Content-Length: 2\r\n\r\n{}"]
    server = serve([*one, *one, stays])
    answers, is_open = ask(server, times=2)
    assert ([each.content for each in answers], is_open, server.accepted) == ([b"{}"] * 2, True, 1)
    stays.set()


def test_a_connection_that_the_bmc_ends_meanwhile_is_known_to_have_ended(serve):
    server = serve(["request", OK + b"Content-Length: 2\r\n\r\n{}"])

    async def work():
        connection = await Connection.open("127.0.0.1", server.port, None)
        await request(connection)
        while connection.is_open:  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.01)
        return connection.ended_at

    assert asyncio.run(asyncio.wait_for(work(), LIMIT_S)) is not None


def test_a_request_that_is_given_up_closes_its_connection(serve):
    never = threading.Event()
    server = serve(["request", never])
    before = Connection.count

    async def work():
        connection = await Connection.open("127.0.0.1", server.port, None)
        with pytest.raises(TimeoutError):
            await connection.request(GET, silence_s=0.05, until=math.inf)
        return connection.is_open

    assert asyncio.run(work()) is False
    assert Connection.count == before
    never.set()


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(Connection.open("127.0.0.1", port, None))


def test_a_name_is_resolved(serve):
    server = serve(["request", OK + b"Content-Length: 0\r\n\r\n"])
    [answer], _ = ask(server, host="localhost")
    assert answer.status == 200


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("tls"))


def test_an_answer_by_tls_larger_than_a_record(serve, files):
    body = b"x" * 50_000
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(*files)
    theirs = ssl.create_default_context(cafile=files[0])
    stays = threading.Event()
    one = ["request", OK + b"Content-Length: %d\r\n\r\n" % len(body), body]
    server = serve([*one, *one, stays], context=ours)
    answers, is_open = ask(server, times=2, context=theirs)
    assert ([each.content for each in answers], is_open) == ([body] * 2, True)
    stays.set()


def test_a_certificate_that_nobody_knows_is_refused(serve, files):
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(*files)
    server = serve([], context=ours)
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(server, context=ssl.create_default_context())


def test_a_bmc_that_drips_has_an_end(serve):
    """Each byte comes in time, the whole answer never."""
    gave_up = threading.Event()

    def drip():
        while not gave_up.is_set():
            yield b"x"
            gave_up.wait(0.001)

    server = serve(["request", OK + b"Content-Length: 1000000\r\n\r\n", drip()])

    async def work():
        loop = asyncio.get_running_loop()
        connection = await Connection.open("127.0.0.1", server.port, None)
        with pytest.raises(TimeoutError):
            await connection.request(GET, silence_s=LIMIT_S, until=loop.time() + 0.2)

    asyncio.run(asyncio.wait_for(work(), LIMIT_S))
    gave_up.set()
