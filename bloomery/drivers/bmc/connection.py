"""One HTTP connection to a BMC in an asyncio loop, with or without TLS.

Why not asyncio's own transports, aiohttp or libcurl: a kept TLS connection takes 25 KiB here, 289
with asyncio's, 83 with libcurl's; see doc/decisions/0021-one-pulse.md.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import httptools

_CHUNK: Final = 1 << 16
_MOST_BYTES: Final = 4 << 20  # of an answer with its headers
_BLOCKED: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class BrokenOff(Exception):
    """The connection ended; ``had_begun``: within an answer, not before it."""

    def __init__(self, why: str, *, had_begun: bool) -> None:
        super().__init__(why)
        self.had_begun = had_begun


class NotUnderstood(Exception):
    """What came is no answer that a document can be taken from."""


@dataclass(slots=True)
class Answer:
    """A complete answer; names of headers in lower case."""

    status: int = 0
    keeps_alive: bool = False
    headers: dict[bytes, bytes] = field(default_factory=dict)
    content: bytes = b""


class Connection:
    """A connection for one request at a time; ``is_open`` until either side ends it.

    ``ended_at``: when the BMC ended it between two requests, by the loop's clock.  ``count``: of
    the open ones.
    """

    count: ClassVar[int] = 0

    __slots__ = (
        "_answer", "_body", "_heard_at", "_loop", "_parser", "_silence_s", "_size", "_socket",
        "_timer", "_until", "_waiter", "ended_at", "is_open",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        self._loop, self._socket, self.is_open = loop, sock, True
        Connection.count += 1
        self.ended_at: float | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._answer = Answer()
        self._body: list[bytes] = []
        self._size = 0
        self._silence_s = self._until = self._heard_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, host: str, port: int, context: ssl.SSLContext | None) -> Connection:
        """Connect, and shake hands where there is a ``context``.  Raises OSError."""
        loop = asyncio.get_running_loop()
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            socket.inet_pton(family, host)
            address: tuple[Any, ...] = (host, port)
        except OSError:  # a name
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            family, address = found[0][0], found[0][4]
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(sock, address)
            if context is not None:
                sock = context.wrap_socket(
                    sock, server_hostname=host, do_handshake_on_connect=False
                )
                await _until_done(sock, sock.do_handshake)
        except BaseException:
            sock.close()
            raise
        connection = cls(loop, sock)
        loop.add_reader(sock, connection._on_readable)
        return connection

    @property
    def is_tls(self) -> bool:
        return isinstance(self._socket, ssl.SSLSocket)

    async def request(self, head: bytes, silence_s: float, until: float) -> Answer:
        """Send ``head``, which has no body; return the answer.

        ``silence_s``: how long the BMC may say nothing; ``until``: when the answer must be whole,
        by the loop's clock.  A request without an answer closes the connection.  Raises BrokenOff,
        NotUnderstood, OSError, and TimeoutError.
        """
        self._waiter = waiter = self._loop.create_future()
        self._parser, self._answer = httptools.HttpResponseParser(self), Answer()
        self._body, self._size = [], 0
        try:
            self._silence_s, self._until = silence_s, until
            self._heard_at = self._loop.time()
            self._wait()
            self._socket.sendall(head)  # small enough for the buffer of an open connection
            await waiter
        except BaseException:
            self.close()
            raise
        finally:
            self._waiter = self._parser = None
            if self._timer is not None:
                self._timer.cancel()
        answer, self._answer = self._answer, Answer()
        answer.content, self._body = b"".join(self._body), []
        if not answer.keeps_alive:
            self.close()
        return answer

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            Connection.count -= 1
            self._loop.remove_reader(self._socket)
            self._socket.close()

    def _on_readable(self) -> None:
        waiter, parser = self._waiter, self._parser
        try:
            while self.is_open:
                data = self._socket.recv(_CHUNK)
                if parser is None or waiter is None or waiter.done():
                    self.ended_at = self._loop.time()  # or the BMC talks unasked
                    self.close()
                elif data:
                    self._size += len(data)
                    if self._size > _MOST_BYTES:
                        why = f"an answer of more than {_MOST_BYTES >> 20} MiB"
                        self._fail(NotUnderstood(why))
                        break
                    parser.feed_data(data)
                    if waiter.done():
                        break
                    self._heard_at = self._loop.time()
                else:
                    self._ended()
        except _BLOCKED:
            pass
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as odd:
            self._fail(NotUnderstood(str(odd)))
        except OSError as exc:
            self._fail(exc)

    def _wait(self) -> None:
        """End the request if its time is up, else look again when it may be."""
        at, now = min(self._heard_at + self._silence_s, self._until), self._loop.time()
        if at <= now:
            self._fail(TimeoutError())
        else:
            self._timer = self._loop.call_at(at, self._wait)

    def _ended(self) -> None:
        """An answer of unknown length ends with its connection."""
        headers = self._answer.headers
        is_whole = not headers.keys() & {b"content-length", b"transfer-encoding"}
        if self._answer.status and is_whole:
            self.on_message_complete()
            self.close()
        else:
            self._fail(BrokenOff("the BMC closed it", had_begun=bool(self._answer.status)))

    def _fail(self, exc: Exception) -> None:
        self.close()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(exc)

    # ------------------------------------------------------------------ called by the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self._answer.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        self._answer.status = self._parser.get_status_code()
        self._answer.keeps_alive = self._parser.should_keep_alive()

    def on_body(self, part: bytes) -> None:
        self._body.append(part)

    def on_message_complete(self) -> None:
        if self._answer.status < 200:  # 100 Continue and the like come before the answer
            self._answer = Answer()
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def _until_done(sock: socket.socket, call: Callable[[], object]) -> None:
    """Repeat ``call`` whenever the socket lets it go on."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            call()
        except ssl.SSLWantReadError:
            add, remove = loop.add_reader, loop.remove_reader
        except (BlockingIOError, ssl.SSLWantWriteError):
            add, remove = loop.add_writer, loop.remove_writer
        else:
            return
        ready = asyncio.Event()
        add(sock, ready.set)
        try:
            await ready.wait()
        finally:
            remove(sock)
