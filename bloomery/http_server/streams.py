"""Answers that do not end: bytes are pushed to a client as they come, and no thread waits.

A thread of the API writes the head and hands the connection over (``Connections.stream``); from
then on whoever has news pushes, from any thread.  What the client has not taken yet is kept, up to
``MOST_UNSENT``; a client that is slower than that is cut off, and may come back and ask for what it
missed.  A comment every fifteen seconds shows proxies and both ends that the connection lives.
After an hour the client has to come again, so that its login is looked at.
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
HAND_OVER: Final = "bloomery.hand_over"  # in the environment: keeps the connection for a stream


class Wire(Protocol):
    """The connection below a stream: its socket, and how its turns are waited for."""

    def send(self, data: memoryview) -> int:
        """Return how many bytes were taken.  Raises BlockingIOError, OSError."""

    def receive(self) -> bytes:
        """Return what the client sent, nothing where it has closed.  Raises the same."""

    def await_turn(self, *, to_write: bool) -> None:
        """Have ``go_on`` called once the client sends or closes, or can be written to."""

    def hang_up(self) -> None: ...


class Stream:
    """One client's end.  Safe to use from any thread: TLS reads or writes one at a time.

    ``on_drained`` is called when the client has taken all that waited for it, ``on_closed`` once.
    """

    def __init__(self, wire: Wire, clock: Callable[[], float] = time.monotonic) -> None:
        self._wire, self._clock = wire, clock
        self._mutex = threading.RLock()
        self._unsent = bytearray()
        self._began_at = self._pushed_at = clock()
        self.is_closed = False
        self.on_drained: Callable[[], None] = lambda: None
        self.on_closed: Callable[[], None] = lambda: None

    @property
    def unsent(self) -> int:
        """Return how many bytes the client has not taken yet."""
        return len(self._unsent)

    def push(self, data: bytes) -> bool:
        """Send, now or when the client takes it; False: it is gone, or too slow and cut off."""
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
        """Called now and then: show that the connection lives, and end what is too old."""
        now = self._clock()
        if now - self._began_at >= LIFETIME_S:
            self.close()
        elif now - self._pushed_at >= HEARTBEAT_S and not self._unsent:
            self.push(HEARTBEAT)

    def go_on(self) -> None:
        """The client sent something, closed, or takes more: see which."""
        with self._mutex:
            waits = bool(self._unsent)
            if self.is_closed or not self._is_open():
                return
            is_done = self._send()
            if not self.is_closed:
                self._wire.await_turn(to_write=not is_done)
        if waits and is_done:
            self.on_drained()

    def _is_open(self) -> bool:
        """Read and drop: a client has nothing to say any more but goodbye."""
        try:
            data = self._wire.receive()
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if not data:
            self.close()
        return bool(data)

    def _send(self) -> bool:
        """Send what the client takes at once; False: something is left."""
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
        """Hang up; whoever pushes is told by the next push."""
        with self._mutex:
            if self.is_closed:
                return
            self.is_closed = True
            self._unsent.clear()
            self._wire.hang_up()
        self.on_closed()
