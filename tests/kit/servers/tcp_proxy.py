"""A TCP proxy between a client and a server, that counts exchanges and cuts where a test says.

    with TcpProxy(("127.0.0.1", 5432)) as proxy:
        db = engine.Database(url.set(host=proxy.host, port=proxy.port))
        proxy.on_request = lambda data: Cut.AFTER if is_commit(data) else Cut.NOT

``exchanges`` counts how often a client spoke after the server had: what a client sends before it
listens again is one exchange, in however many segments.
"""

from __future__ import annotations

import contextlib
import enum
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

_MOST = 1 << 16  # bytes read at a time


class Cut(enum.Enum):
    """What becomes of a request."""

    NOT = "it is forwarded"
    BEFORE = "the server never gets it, and both sides lose the connection"
    AFTER = "the server answers, and the client loses the connection instead of the answer"
    LATE = "the client loses the connection; the server gets it when the test calls deliver()"


def is_commit(data: bytes) -> bool:
    """Whether a request to a database commits; READ-COMMITTED is how a connection begins."""
    return b"COMMIT" in data.replace(b"COMMITTED", b"")


@dataclass(slots=True, eq=False)
class _Pair:
    """One connection of a client, and ours to the server."""

    client: socket.socket
    server: socket.socket
    is_answered: bool = True
    loses_answer: bool = False
    late: list[bytes] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def close(self, *sockets: socket.socket) -> None:
        for each in sockets or (self.client, self.server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class TcpProxy:
    """Listens on a free port of the loopback, or at ``at``, and forwards to ``target``."""

    def __init__(self, target: tuple[str, int], at: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self.target = target
        self._listener = socket.create_server(at)
        self._mutex = threading.Lock()
        self._pairs: list[_Pair] = []
        self._acceptor = threading.Thread(target=self._accept, name="proxy", daemon=True)
        self.host, self.port = self._listener.getsockname()
        self.exchanges = 0
        self.on_request: Callable[[bytes], Cut] = lambda data: Cut.NOT
        self.is_open = True  # False: new connections are ended at once
        self.rewrite: Callable[[bytes], bytes] = lambda data: data  # of requests
        self.left: int | None = None  # bytes of answers until every connection is cut
        self.cuts = 0

    @property
    def connections(self) -> int:
        """How many clients have come."""
        return len(self._pairs)

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join()
        self.cut()
        for pair in self._pairs:
            for thread in pair.threads:
                thread.join(10)

    def cut(self) -> None:
        """End every connection that is open now."""
        with self._mutex:
            pairs = list(self._pairs)
        for pair in pairs:
            pair.close()

    def deliver(self) -> None:
        """Hand the server what it was to get late, and wait until it has answered or hung up."""
        for pair in self._pairs:
            if pair.late:
                pair.server.sendall(b"".join(pair.late))
                pair.late.clear()
                pair.threads[-1].join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self.is_open:
                client.close()
                continue
            try:
                server = socket.create_connection(self.target)
            except OSError:
                client.close()
                continue
            self._join(client, server)

    def _join(self, client: socket.socket, server: socket.socket) -> None:
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = _Pair(client=client, server=server)
        for run in (self._forward_requests, self._forward_answers):
            thread = threading.Thread(target=run, args=(pair,), name="proxy", daemon=True)
            pair.threads.append(thread)
        with self._mutex:
            self._pairs.append(pair)
        for thread in pair.threads:
            thread.start()

    def _forward_requests(self, pair: _Pair) -> None:
        with contextlib.suppress(OSError):
            while data := pair.client.recv(_MOST):
                self._count(pair)
                cut = self.on_request(data)
                if cut is Cut.LATE:
                    pair.late.append(data)
                    pair.close(pair.client)
                    return
                if cut is Cut.BEFORE:
                    break
                pair.loses_answer = cut is Cut.AFTER
                pair.server.sendall(self.rewrite(data))
        if not pair.loses_answer:
            pair.close()

    def _count(self, pair: _Pair) -> None:
        with self._mutex:
            self.exchanges += pair.is_answered
            pair.is_answered = False

    def _forward_answers(self, pair: _Pair) -> None:
        with contextlib.suppress(OSError):
            while data := pair.server.recv(_MOST):
                if pair.loses_answer:
                    break
                pair.is_answered = True
                passed = self._count_down(data)
                pair.client.sendall(passed)  # fails where the client has lost the connection
                if len(passed) < len(data):
                    self.cut()
        pair.close()

    def _count_down(self, data: bytes) -> bytes:
        """Return what of an answer still passes."""
        with self._mutex:
            if self.left is None or len(data) <= self.left:
                self.left = None if self.left is None else self.left - len(data)
                return data
            passed, self.left = data[: self.left], None
            self.cuts += 1
            return passed
