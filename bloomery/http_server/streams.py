"""Answers without an end: bytes are pushed to a client without a waiting thread.

A thread of the API writes the head and hands the connection over (``Connections.stream``); then any
thread pushes.  Up to ``MOST_UNSENT`` bytes are buffered; a slower client is disconnected, and may
reconnect and request the events that it missed.  A comment every fifteen seconds keeps the
connection alive.  After an hour the client must reconnect, which checks its login.

A stream of events drops what its client sends.  A web socket (``web_socket``) takes it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from bloomery.http_server.bodies import KIB

MOST_UNSENT: Final = 512 * KIB
HEARTBEAT_S: Final = 15.0
HEARTBEAT: Final = b": still here\n\n"
LIFETIME_S: Final = 3600.0
HAND_OVER: Final = "bloomery.hand_over"  # in the environment: hands the connection to a stream


class Wire(Protocol):
    """The connection below a stream."""

    def send(self, data: memoryview) -> int:
        """Return the number of bytes sent.  Raises BlockingIOError, OSError."""

    def receive(self) -> bytes:
        """Return the client's bytes, b"" at its end.  Raises as ``send``."""

    def await_turn(self, *, to_write: bool) -> None:
        """Call ``go_on`` when the client sends or closes, or can be written to."""

    def hang_up(self) -> None: ...


class Stream:
    """One client's stream.  Safe to use from any thread: TLS reads or writes one at a time.

    ``on_drained`` is called when the buffer is empty, ``on_closed`` once, ``on_input`` with the
    client's bytes in their order, ``on_old`` at the maximal age.  ``heartbeat`` returns the bytes
    that keep the connection alive.
    """

    def __init__(self, wire: Wire, clock: Callable[[], float] = time.monotonic) -> None:
        self._wire, self._clock = wire, clock
        self._mutex = threading.RLock()
        self._input_mutex = threading.Lock()  # taken before the other
        self._unsent = bytearray()
        self._began_at = self._pushed_at = clock()
        self.is_closed = False
        self.on_drained: Callable[[], None] = lambda: None
        self.on_closed: Callable[[], None] = lambda: None
        self.on_input: Callable[[bytes], None] = lambda _: None
        self.on_old: Callable[[], None] = self.close
        self.heartbeat: Callable[[], bytes] = lambda: HEARTBEAT

    @property
    def unsent(self) -> int:
        """Return the number of buffered bytes."""
        return len(self._unsent)

    def push(self, data: bytes) -> bool:
        """Send or buffer; False: the client is gone, or was too slow and is disconnected."""
        with self._mutex:
            if self.is_closed:
                return False
            if len(self._unsent) + len(data) > MOST_UNSENT:
                self.close()
                return False
            waits = bool(self._unsent)
            self._unsent += data
            self._pushed_at = self._clock()
            if not waits and not self._send():
                self._wire.await_turn(to_write=True)
            return not self.is_closed

    def beat(self) -> None:
        """Keep the connection alive, and close it at its maximal age; called periodically."""
        now = self._clock()
        if now - self._began_at >= LIFETIME_S:
            self.on_old()
        elif now - self._pushed_at >= HEARTBEAT_S and not self._unsent:
            self.push(self.heartbeat())

    def go_on(self) -> None:
        """Handle input, the end, or room in the socket."""
        with self._input_mutex:
            data = self._received()
            if data is None:
                return
            if data:  # without the other mutex: whoever takes it may push
                self.on_input(data)
        with self._mutex:
            waits = bool(self._unsent)
            if self.is_closed:
                return
            is_done = self._send()
            if not self.is_closed:
                self._wire.await_turn(to_write=not is_done)
        if waits and is_done:
            self.on_drained()

    def _received(self) -> bytes | None:
        """Return what has come from the client; None: the connection is closed."""
        with self._mutex:
            if self.is_closed:
                return None
            try:
                data = self._wire.receive()
            except BlockingIOError:
                return b""
            except OSError:
                data = b""
            if not data:
                self.close()
            return data or None

    def _send(self) -> bool:
        """Send as much as possible; False: some is left."""
        try:
            while self._unsent:
                with memoryview(self._unsent) as view:
                    sent = self._wire.send(view)
                del self._unsent[:sent]
        except BlockingIOError:
            return False
        except OSError:
            self.close()
        return True

    def close(self) -> None:
        """Close; the next push returns False."""
        with self._mutex:
            if self.is_closed:
                return
            self.is_closed = True
            self._unsent.clear()
            self._wire.hang_up()
        self.on_closed()
