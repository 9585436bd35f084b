"""The caller's terminal on the serial console of a node, over a web socket of the API.

    console = Console(client, "/ext/v1/nodes/web-1/console")
    Session(console, sys.stdin.buffer, sys.stdout.buffer).run()

As in ssh, ``~.`` at the begin of a line ends the session, ``~~`` types a tilde, ``~?`` tells that.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import ssl
import termios
import time
import tty
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from wsproto import ConnectionType, WSConnection, events
from wsproto.utilities import ProtocolError

from bloomery.cli.client import ApiError, Client

_PROTOCOL: Final = "bloomery.console"
_CONNECT_S: Final = 30.0
_SILENT_S: Final = 60.0  # the service sends a ping every 15 s
_PIECE: Final = 16 * 1024
_AGAIN_S: Final = 1.0  # before the console is opened again
_LAST_TRY: Final = 30
_HELP: Final = b"\r\n~.  end the session\r\n~~  type a tilde\r\n~?  this help\r\n"


@dataclass(frozen=True, slots=True)
class Notice:
    """What the service tells of the connection: ``state`` is open, lost or ended."""

    state: str
    message: str
    may_type: bool
    again: bool


class Console:
    """A web socket to a console.  Raises ApiError where the service refuses or is gone."""

    def __init__(self, client: Client, path: str) -> None:
        self._client, self._ws = client, WSConnection(ConnectionType.CLIENT)
        parts = urllib.parse.urlsplit(client.url)
        is_tls = parts.scheme == "https"
        host, port = str(parts.hostname), parts.port or (443 if is_tls else 80)
        try:
            self._socket: socket.socket = socket.create_connection((host, port), _CONNECT_S)
            if is_tls:
                context = client.tls or ssl.create_default_context()
                self._socket = context.wrap_socket(self._socket, server_hostname=host)
        except OSError as exc:
            raise self._unreachable(exc) from exc
        try:
            self._shake_hands(parts.netloc, parts.path + path)
        except BaseException:
            self._socket.close()
            raise

    def _shake_hands(self, host: str, target: str) -> None:
        headers = [
            (name.encode(), value.encode()) for name, value in self._client.headers().items()
        ]
        request = events.Request(
            host=host.rpartition("@")[2], target=target, subprotocols=[_PROTOCOL],
            extra_headers=headers,
        )  # fmt: skip
        self._early: list[Any] = []
        status, body = 0, b""
        try:
            self._socket.sendall(self._ws.send(request))
            while True:
                data = self._socket.recv(_PIECE)
                self._ws.receive_data(data or None)
                for event in self._ws.events():
                    if isinstance(event, events.AcceptConnection):
                        status = 101
                    elif isinstance(event, events.RejectConnection):
                        status = event.status_code
                    elif isinstance(event, events.RejectData):
                        body += event.data
                    elif status == 101:
                        self._early.append(event)
                    if isinstance(event, events.RejectData) and event.body_finished:
                        raise self._client.refused(status, body)
                if status == 101:
                    return
                if not data:
                    raise self._client.refused(status, body)
        except (OSError, ProtocolError) as exc:
            raise self._unreachable(exc) from exc

    def _unreachable(self, exc: Exception) -> ApiError:
        return ApiError(
            reason=f"cannot reach {self._client.url}: {exc}; is the service running?", answer=None
        )

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> Iterator[bytes | Notice]:
        """Yield what has come: output, and notices.  Raises ApiError at the end."""
        waiting, self._early = self._early, []
        if not waiting:
            try:
                data = self._socket.recv(_PIECE)
                if isinstance(self._socket, ssl.SSLSocket):
                    while self._socket.pending():
                        data += self._socket.recv(_PIECE)
                self._ws.receive_data(data or None)
                waiting = list(self._ws.events())
            except TimeoutError:
                return
            except (OSError, ProtocolError) as exc:
                raise self._unreachable(exc) from exc
        for event in waiting:
            if isinstance(event, events.Ping):
                self._send(event.response())
            elif isinstance(event, events.BytesMessage):
                yield bytes(event.data)
            elif isinstance(event, events.TextMessage):
                facts = json.loads(event.data)
                yield Notice(
                    facts["state"], facts["message"], bool(facts.get("may_type")),
                    bool(facts.get("again")),
                )  # fmt: skip
            elif isinstance(event, events.CloseConnection):
                raise ApiError(reason=event.reason or "the service ended the console", answer=None)

    @property
    def has_early(self) -> bool:
        """Have messages come with the handshake, so that the socket need not be readable?"""
        return bool(self._early)

    def type(self, data: bytes) -> None:
        self._send(events.BytesMessage(data))

    def _send(self, event: Any) -> None:
        try:
            self._socket.sendall(self._ws.send(event))
        except (OSError, ProtocolError) as exc:
            raise self._unreachable(exc) from exc

    def close(self) -> None:
        with contextlib.suppress(ApiError):
            self._send(events.CloseConnection(1000))
        self._socket.close()


class Escape:
    """Finds ``~.``, ``~~`` and ``~?`` at the begin of a line of what is typed."""

    def __init__(self) -> None:
        self._is_begin, self._has_tilde = True, False
        self.has_ended = self.asks_help = False

    def filter(self, data: bytes) -> bytes:
        """Return what is to be typed; sets ``has_ended`` and ``asks_help``."""
        typed = bytearray()
        for number in data:
            byte = bytes([number])
            if self._has_tilde:
                self._has_tilde = False
                if byte == b".":
                    self.has_ended = True
                    return bytes(typed)
                if byte == b"?":
                    self.asks_help = self._is_begin = True
                    continue
                typed += b"~" if byte == b"~" else b"~" + byte
            elif byte == b"~" and self._is_begin:
                self._has_tilde = True
                continue
            else:
                typed += byte
            self._is_begin = byte in b"\r\n"
        return bytes(typed)


class Session:
    """``connect`` opens the console, also again; ``say`` gets sentences about the connection."""

    def __init__(
        self,
        connect: Callable[[], Console],
        keyboard: BinaryIO,
        screen: BinaryIO,
        say: Callable[[str], None],
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._connect, self._say, self._pause = connect, say, pause
        self._keyboard, self._screen = keyboard, screen
        self._escape, self._keyboard_has_ended = Escape(), False

    def run(self) -> None:
        """Return where the caller ends the session.  Raises ApiError where another does."""
        tries = 0
        with _raw(self._keyboard):
            while True:
                try:
                    console = self._connect()
                except ApiError as exc:
                    answer = exc.facts["answer"]
                    tries += 1
                    if tries in (1, _LAST_TRY) or answer is not None:
                        raise
                    self._pause(_AGAIN_S)
                    continue
                tries = 1
                with contextlib.closing(console):
                    if self._carry(console):
                        return
                self._pause(_AGAIN_S)

    def _carry(self, console: Console) -> bool:
        """Carry bytes until the end; return whether the caller ended it, or it is opened again."""
        while True:
            sources: list[Any] = [console, *([] if self._keyboard_has_ended else [self._keyboard])]
            ready = [console] if console.has_early else select.select(sources, [], [], _SILENT_S)[0]
            if not ready:
                raise ApiError(reason="the service has fallen silent", answer=None)
            if console in ready:
                for message in console.receive():
                    if isinstance(message, bytes):
                        self._screen.write(message)
                        self._screen.flush()
                        continue
                    self._say(message.message)
                    if message.state == "ended" and message.again:
                        return False
                    if message.state == "ended":
                        raise ApiError(reason=message.message, answer=None)
            if self._keyboard in ready:
                data = os.read(self._keyboard.fileno(), _PIECE)
                self._keyboard_has_ended = not data
                typed = self._escape.filter(data)
                if typed:
                    console.type(typed)
                if self._escape.asks_help:
                    self._escape.asks_help = False
                    self._screen.write(_HELP)
                    self._screen.flush()
                if self._escape.has_ended:
                    return True


@contextlib.contextmanager
def _raw(keyboard: BinaryIO) -> Iterator[None]:
    """Let a terminal pass each key at once, without an echo."""
    if not keyboard.isatty():
        yield
        return
    before = termios.tcgetattr(keyboard)
    tty.setraw(keyboard.fileno())
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
