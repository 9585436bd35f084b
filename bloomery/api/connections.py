"""Connections that cost no thread until their request is there.

cheroot hands a new connection to a thread that reads, and waits for as long as the client
dawdles: four clients that connect and say nothing would stop a server of four threads.  Here a
connection waits in the selector until its request has come, or as much as may be looked at
without taking it (MSG_PEEK).  SO_RCVLOWAT keeps the selector quiet until there is more to see.

Under TLS nothing can be seen; there a connection waits for its first byte only.
"""

from __future__ import annotations

import re
import selectors
import socket
from collections.abc import Callable
from typing import Any, Final

from cheroot import connections, server, wsgi

MOST: Final = 64 * 1024  # what is looked at; of a longer request a thread reads the rest
USUAL: Final = 4 * 1024  # looked at first: memory for the most is hardly ever needed
SILENCE_S: Final = 15  # how long a thread waits for the next piece of a long request
_PEEK: Final = socket.MSG_PEEK | socket.MSG_DONTWAIT
_END_OF_HEAD: Final = re.compile(rb"\n\r?\n")
_LENGTH: Final = re.compile(rb"\ncontent-length:[ \t]*(\d{1,9})\s", re.IGNORECASE)
_ASKS_FIRST: Final = re.compile(rb"\nexpect:", re.IGNORECASE)  # sends its body when told to


class Request(server.HTTPRequest):
    def parse_request(self) -> None:
        """Read first line and headers; what can't be parsed is the client's fault.

        cheroot forgets that ``urlsplit`` refuses some addresses, and slips (NameError) where the
        first header begins with a blank.
        """
        try:
            super().parse_request()
        except (ValueError, NameError):
            self.simple_response("400 Bad Request", "Malformed request line or headers")


class Connection(server.HTTPConnection):
    """``seen`` counts the bytes of a request that was not whole when it was looked at."""

    RequestHandlerClass = Request
    seen = 0

    def __init__(self, server: Any, sock: Any, *more: Any) -> None:
        super().__init__(server, sock, *more)
        sock.settimeout(SILENCE_S)
        self.rfile.readline = _bounded(self.rfile.readline)


def _bounded(readline: Callable[[int], bytes]) -> Callable[..., bytes]:
    """Read no endless line: cheroot sets no limit to the line that tells the size of a chunk."""

    def read(size: int = MOST) -> bytes:
        return readline(size)

    return read


class Connections(connections.ConnectionManager):
    """The selector in which connections wait, new ones too."""

    def _from_server_socket(self, server_socket: socket.socket) -> None:
        made = super()._from_server_socket(server_socket)  # type: ignore[misc]  # stubs
        if made is not None:
            self.put(made)

    def put_back(self, connection: Connection) -> None:
        """Wait for more of the request; the time since it began goes on."""
        waiting: Any = self._selector  # type: ignore[attr-defined]  # not in cheroot's stubs
        waiting.register(connection.socket.fileno(), selectors.EVENT_READ, data=connection)


class Server(wsgi.Server):
    """cheroot's server, with connections that wait for their request."""

    ConnectionClass = Connection
    _connections: Any

    def prepare(self) -> None:
        super().prepare()
        self._connections.close()
        self._connections = Connections(self)

    def process_conn(self, conn: Connection) -> None:
        """Give the connection to a thread, unless some of its request is still to come."""
        if self.ssl_adapter is not None or conn.rfile.has_data() or _is_ready(conn):
            super().process_conn(conn)
        else:
            self._connections.put_back(conn)


def _is_ready(conn: Connection) -> bool:
    """The request is there, or too long to be seen, or nothing more will come."""
    seen = _peek(conn.socket)
    missing = _missing(seen)
    has_ended = len(seen) <= conn.seen  # readable, and yet no more than before
    is_ready = not missing or has_ended or len(seen) + missing > MOST
    if conn.seen or not is_ready:
        _wake_at(conn.socket, 1 if is_ready else len(seen) + missing)
    conn.seen = 0 if is_ready else len(seen)
    return is_ready


def _missing(seen: bytes) -> int:
    """Return how many bytes of a request are still to come, at the least."""
    head = _END_OF_HEAD.search(seen)
    if head is None:
        return 1
    length = _LENGTH.search(seen, 0, head.end())
    if length is None or _ASKS_FIRST.search(seen, 0, head.end()):
        return 0
    return max(0, head.end() + int(length[1]) - len(seen))


def _peek(connection: socket.socket) -> bytes:
    try:
        seen = connection.recv(USUAL, _PEEK)
        return seen if len(seen) < USUAL else connection.recv(MOST, _PEEK)
    except OSError:
        return b""  # the thread will find out why


def _wake_at(connection: socket.socket, size: int) -> None:
    """Let the selector speak up when ``size`` bytes are there."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
