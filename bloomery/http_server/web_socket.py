"""The server's side of a web socket (RFC 6455), on a stream.

    upgrade = asked_for(environ)              # None: a plain request
    upgrade.headers                           # of the answer 101
    socket = WebSocket(stream)
    socket.on_bytes = line.type               # called by the thread of connections
    socket.send_text("ready"), socket.close(1000, "the machine is gone")

wsproto parses and builds frames, and is imported with the first web socket.  Extensions are
declined.
"""

from __future__ import annotations

import base64
import binascii
import functools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bloomery.http_server.bodies import KIB
from bloomery.http_server.streams import Stream

PROTOCOL: Final = "bloomery.console"
MOST_MESSAGE: Final = 64 * KIB  # bytes of a client's message
VERSION: Final = "13"
NORMAL, TOO_BIG, GOES_AWAY = 1000, 1009, 1001
_KEY_BYTES: Final = 16
_MOST_REASON: Final = 120  # bytes; a frame of control has 125


class BadHandshake(Exception):
    """The request asks for a web socket, and not as RFC 6455 does; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """``protocols``: those that the client offers, in its order."""

    key: str
    protocols: tuple[str, ...]

    @property
    def headers(self) -> list[tuple[str, str]]:
        from wsproto.utilities import generate_accept_token  # few processes need it

        headers = [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", generate_accept_token(self.key.encode()).decode()),
        ]
        if PROTOCOL in self.protocols:
            headers.append(("Sec-WebSocket-Protocol", PROTOCOL))
        return headers


def is_asked_for(environ: Mapping[str, Any]) -> bool:
    return bool(environ.get("HTTP_UPGRADE", "").lower() == "websocket")


def asked_for(environ: Mapping[str, Any]) -> Upgrade | None:
    """Return the upgrade that a request asks for, None for other requests.  Raises BadHandshake."""
    if not is_asked_for(environ):
        return None
    tokens = environ.get("HTTP_CONNECTION", "").lower().replace(" ", "").split(",")
    if environ["REQUEST_METHOD"] != "GET" or "upgrade" not in tokens:
        raise BadHandshake("a web socket begins with GET and the header Connection: Upgrade")
    if environ.get("HTTP_SEC_WEBSOCKET_VERSION") != VERSION:
        raise BadHandshake(f"a web socket begins with Sec-WebSocket-Version: {VERSION}")
    key = environ.get("HTTP_SEC_WEBSOCKET_KEY", "")
    try:
        size = len(base64.b64decode(key, validate=True))
    except (binascii.Error, ValueError):
        size = 0
    if size != _KEY_BYTES:
        raise BadHandshake(f"Sec-WebSocket-Key is not the base64 of {_KEY_BYTES} bytes")
    return Upgrade(key, offered(environ))


def offered(environ: Mapping[str, Any]) -> tuple[str, ...]:
    names = environ.get("HTTP_SEC_WEBSOCKET_PROTOCOL", "").split(",")
    return tuple(name.strip() for name in names if name.strip())


class WebSocket:
    """Safe to use from any thread.

    ``on_bytes`` gets the client's messages, ``on_closed`` is called once.  Both are called by the
    thread of connections, and must return at once.
    """

    def __init__(self, stream: Stream) -> None:
        from wsproto import events
        from wsproto.connection import Connection, ConnectionType

        self._events, self._stream = events, stream
        self._protocol = Connection(ConnectionType.SERVER)
        self._mutex = threading.Lock()
        self._message = bytearray()
        self._is_closing = False
        self.on_bytes: Callable[[bytes], None] = lambda _: None
        self.on_closed: Callable[[], None] = lambda: None
        self.on_old: Callable[[], None] = stream.close
        stream.on_closed, stream.on_old = self._on_closed, self._on_old
        stream.on_input = self._receive
        stream.heartbeat = self._ping

    @property
    def is_closed(self) -> bool:
        return self._stream.is_closed

    @property
    def unsent(self) -> int:
        """Return the number of bytes that the client has yet to take."""
        return self._stream.unsent

    def send_bytes(self, data: bytes) -> bool:
        """Return whether the client still takes messages; a client that reads nothing is gone."""
        return self._send(lambda: self._events.BytesMessage(data))

    def send_text(self, text: str) -> bool:
        return self._send(lambda: self._events.TextMessage(text))

    def close(self, code: int, reason: str) -> None:
        """Begin the end; the client answers, and then the connection is closed."""
        short = reason.encode()[:_MOST_REASON].decode(errors="ignore")
        self._send(lambda: self._events.CloseConnection(code, short), ends=True)

    def hang_up(self) -> None:
        self._stream.close()

    def _send(self, event: Callable[[], Any], *, ends: bool = False) -> bool:
        with self._mutex:
            if self._is_closing or self._stream.is_closed:
                return False
            self._is_closing = ends
            return self._stream.push(self._protocol.send(event()))

    def _on_closed(self) -> None:
        self.on_closed()

    def _on_old(self) -> None:
        self.on_old()

    def _ping(self) -> bytes:
        with self._mutex:
            return b"" if self._is_closing else bytes(self._protocol.send(self._events.Ping()))

    def _receive(self, data: bytes) -> None:
        """Handle input; whatever breaks the protocol ends the connection."""
        from wsproto.utilities import LocalProtocolError, RemoteProtocolError

        messages: list[bytes] = []
        take = functools.partial(self._handle, messages)
        try:
            with self._mutex:
                self._protocol.receive_data(data)
                ends = any(list(map(take, self._protocol.events())))  # all are handled
        except RemoteProtocolError as exc:
            reply = exc.event_hint
            if reply is not None:
                self._send(lambda: reply, ends=True)
            ends = True
        except LocalProtocolError:  # input behind the end
            ends = True
        for message in messages:
            self.on_bytes(message)
        if ends:
            self._stream.close()

    def _handle(self, messages: list[bytes], event: Any) -> bool:
        """Handle an event under the mutex; return whether the connection ends."""
        events = self._events
        if isinstance(event, events.Ping):
            self._stream.push(self._protocol.send(event.response()))
        elif isinstance(event, events.CloseConnection):
            if not self._is_closing:
                self._stream.push(self._protocol.send(event.response()))
            return True
        elif isinstance(event, events.Message):
            data = event.data.encode() if isinstance(event.data, str) else bytes(event.data)
            self._message += data
            if len(self._message) > MOST_MESSAGE:
                most = f"a message has {MOST_MESSAGE} bytes at most"
                if not self._is_closing:
                    close = events.CloseConnection(TOO_BIG, most)
                    self._stream.push(self._protocol.send(close))
                return True
            if event.message_finished:
                messages.append(bytes(self._message))
                self._message.clear()
        return False
