"""Relays between clients and consoles: a thread for each client.

    relays.check_room()                  # raises TooManyConsoles
    relays.start(Relay(client, locate, may_type=True, idle_s=600))

A relay connects to the TCP port of the console, wherever its conductor is.  Bytes pass unchanged.
What happens to the connection is told beside them, as JSON: ``{"state": "open", "message": ...}``.
A connection that ends is made again after a pause, after ``locate`` has checked rights and node.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import orjson

from bloomery import errors

LOG = logging.getLogger(__name__)

MOST_TYPED: Final = 64 * 1024  # bytes that the console has yet to take
PAUSES_S: Final = (1, 2, 5, 10, 15, 30, 30, 30)  # a dead conductor's nodes move
_PIECE: Final = 16 * 1024
_CONNECT_S: Final = 5.0
_LOOK_MS: Final = 1000
_LAST_S: Final = 5.0  # for a client to answer the end
_SETTLED_S: Final = 30.0  # a connection that lasted as long begins with the first pause
_NORMAL: Final = 1000  # the code of an end that was announced
_FINAL: Final = (  # a later try gives the same
    errors.NodeNotFound, errors.Forbidden, errors.ConsoleNotEnabled, errors.ConsoleNotSerial,
)  # fmt: skip

Place = tuple[str, int]


class Client(Protocol):
    """A client's web socket, implemented by ``http_server.web_socket``."""

    on_bytes: Callable[[bytes], None]
    on_closed: Callable[[], None]
    on_old: Callable[[], None]

    @property
    def is_closed(self) -> bool: ...

    def send_bytes(self, data: bytes) -> bool: ...

    def send_text(self, text: str) -> bool: ...

    def close(self, code: int, reason: str) -> None: ...

    def hang_up(self) -> None: ...


class Relay:
    """``locate`` returns host and port of the console; it raises errors, whose text is told.

    ``may_type``: False drops what the client types, and says so.  ``idle_s``: the time without a
    byte after which the relay ends; 0: never.  ``on_end`` is called once, at the end.
    """

    def __init__(
        self,
        client: Client,
        locate: Callable[[], Place],
        *,
        may_type: bool,
        idle_s: float,
        on_end: Callable[[], None] = lambda: None,
        pauses_s: Sequence[float] = PAUSES_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client, self._locate, self._may_type = client, locate, may_type
        self._idle_s, self._on_end, self._pauses_s, self._clock = idle_s, on_end, pauses_s, clock
        self._mutex = threading.Lock()
        self._typed, self._byte_at = bytearray(), clock()
        self._end: str | None = None  # why the relay ends
        self._again, self._has_refused = False, False
        self._ended, self._closed = threading.Event(), threading.Event()
        self._bell: int | None = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        client.on_bytes, client.on_closed = self._type, self._on_closed
        client.on_old = self._on_old
        if client.is_closed:
            self._on_closed()

    def end(self, reason: str, *, again: bool = False) -> None:
        """Let the relay end soon, for this reason; from any thread, returns at once.

        ``again``: the client may open another console at once.
        """
        with self._mutex:
            if self._end is None:
                self._end, self._again = reason, again
            self._ended.set()
            if self._bell is not None:
                os.eventfd_write(self._bell, 1)

    def run(self) -> None:
        """Relay until the client, the node or the right to read is gone."""
        try:
            reason = self._relay()
        except Exception:
            LOG.exception("a console is closed after an unexpected fault")
            reason = "the service met an unexpected error; its log tells more"
        self._tell("ended", reason, again=self._again)
        self.client.close(_NORMAL, reason)
        if not self.client.is_closed:
            self._closed.wait(_LAST_S)
        self.client.hang_up()
        with self._mutex:
            bell, self._bell = self._bell, None
        assert bell is not None
        os.close(bell)
        self._on_end()

    def _relay(self) -> str:
        """Connect, and again after each end; return why there is no further try."""
        failures = 0
        while True:
            try:
                place = self._locate()
            except _FINAL as exc:
                return errors.brief(exc)
            except errors.Failure as exc:
                reason = errors.brief(exc)
            else:
                began = self._clock()
                reason = self._connect(place)
                if self._clock() - began >= _SETTLED_S:
                    failures = 0
            if self._end is not None:
                return self._end
            if failures == len(self._pauses_s):
                return f"{reason}; given up after {failures + 1} tries"
            pause_s = self._pauses_s[failures]
            failures += 1
            self._tell("lost", f"{reason}; connecting again in {pause_s:.0f} s")
            if self._ended.wait(pause_s):
                return str(self._end)

    def _connect(self, place: Place) -> str:
        """Carry bytes between client and console; return why that ended."""
        host, port = place
        try:
            console = socket.create_connection(place, _CONNECT_S)
        except OSError as exc:
            hint = ""
            if host in ("127.0.0.1", "::1", "localhost"):
                hint = "; for other hosts, set [console]socat_address on the conductor's"
            return f"cannot reach the console at {host} port {port}: {exc.strerror or exc}{hint}"
        with console:
            for option, value in (
                (socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3),
            ):  # fmt: skip
                console.setsockopt(socket.IPPROTO_TCP, option, value)
            console.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            console.setblocking(False)
            self._tell("open", "connected")
            self._byte_at = self._clock()
            try:
                return self._carry(console)
            except OSError as exc:
                return f"the connection to the console ended: {exc.strerror}"

    def _carry(self, console: socket.socket) -> str:
        assert self._bell is not None
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        while self._end is None:
            poll.register(console, select.POLLIN | (select.POLLOUT if self._typed else 0))
            ready = dict(poll.poll(_LOOK_MS))
            if self._bell in ready:
                os.eventfd_read(self._bell)
            events = ready.get(console.fileno(), 0)
            if events & select.POLLOUT:
                with self._mutex, contextlib.suppress(BlockingIOError):
                    del self._typed[: console.send(self._typed)]
            if events & ~select.POLLOUT:
                data = console.recv(_PIECE)
                idle_s = self._clock() - self._byte_at
                if not data and self._idle_s and idle_s >= 0.9 * self._idle_s:
                    self.end(f"no byte came for {idle_s:.0f} s")  # the console says so, too
                if not data:
                    return "the console closed the connection"
                self._byte_at = self._clock()
                if not self.client.send_bytes(data):
                    self.end("the client does not read")
            if self._idle_s and self._clock() - self._byte_at >= self._idle_s:
                self.end(f"no byte came for {self._idle_s:.0f} s")
        return self._end

    def _type(self, data: bytes) -> None:
        """Take what the client types."""
        if not self._may_type:
            if not self._has_refused:
                self._has_refused = True
                self._tell("open", "this console is read-only for you: what you type is dropped")
            return
        with self._mutex:
            is_too_much = len(self._typed) + len(data) > MOST_TYPED
            if not is_too_much:
                self._typed += data
                self._byte_at = self._clock()
                if self._bell is not None:
                    os.eventfd_write(self._bell, 1)
        if is_too_much:
            self.end("more was typed than the console takes")

    def _on_closed(self) -> None:
        self._closed.set()
        self.end("the client is gone")

    def _on_old(self) -> None:
        self.end("the login has to be checked again", again=True)

    def _tell(self, state: str, message: str, **more: Any) -> None:
        facts = {"state": state, "message": message, "may_type": self._may_type} | more
        self.client.send_text(orjson.dumps(facts).decode())


class Relays:
    """The relays of this process."""

    def __init__(self, most: int = 200) -> None:
        """``most``: the limit of relays."""
        self._most = most
        self._mutex = threading.Lock()
        self._running: dict[Relay, threading.Thread] = {}
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._running)

    def check_room(self) -> None:
        """Raise TooManyConsoles at the limit."""
        if len(self._running) >= self._most:
            raise errors.TooManyConsoles(most=self._most)

    def start(self, relay: Relay, name: str) -> None:
        """Run a relay in a thread of its own; returns at once."""
        thread = threading.Thread(
            target=self._run, args=(relay,), name=f"console-relay-{name}", daemon=True
        )
        with self._mutex:
            self._running[relay] = thread
            if self._is_stopping:
                relay.end("the service stops", again=True)
            thread.start()

    def _run(self, relay: Relay) -> None:
        try:
            relay.run()
        finally:
            with self._mutex:
                del self._running[relay]

    def stop(self) -> None:
        """End all relays in words, and join their threads."""
        with self._mutex:
            self._is_stopping = True
            running = dict(self._running)
        for relay in running:
            relay.end("the service stops", again=True)
        for thread in running.values():
            thread.join(_LAST_S + 1)
