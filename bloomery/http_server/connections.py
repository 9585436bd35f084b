"""Connections that need no thread until their request has arrived.

One thread waits for all connections (epoll), reads, and hands over requests that are whole, or
whose head is enough for a refusal.  One thread at a time owns a connection: epoll reports it once
(EPOLLONESHOT) until it is armed again, by the thread that answers the request.  This module also
sends the rest of answers to slow clients.

    accepted -> READING -> BUSY (a thread works) -> READING, or WRITING, DRAINING, CLOSED
                                                 -> STREAMING (``streams``) -> CLOSED
"""

from __future__ import annotations

import contextlib
import errno
import functools
import heapq
import logging
import math
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from bloomery.http_server.bodies import KIB
from bloomery.http_server.messages import Bodies, Message, Reader
from bloomery.http_server.streams import Stream

LOG = logging.getLogger(__name__)

PIECE: Final = 64 * KIB  # read at once
ACCEPTED_AT_ONCE: Final = 64
SENT_AT_ONCE: Final = 4 * KIB * KIB  # then another connection's turn
FILE_AT_ONCE: Final = KIB * KIB  # of a file: one thread reads all files
MOST_QUEUED: Final = 1024  # connections that the kernel queues for a listener
SWEEP_S: Final = 1.0
STOP_LOOK_S: Final = 0.1  # between two checks while stopping
FAULT_S: Final = 1.0  # pause after a fault of ours, for a bounded log
COMPLAIN_S: Final = 60.0  # a shortage is logged once in that time
ROOM: Final = 16  # one of this many idle connections is closed if there is no room for new ones
NOTHING: Final[Iterator[bytes]] = iter(())
_IN: Final = select.EPOLLIN | select.EPOLLONESHOT
_OUT: Final = select.EPOLLOUT | select.EPOLLONESHOT
_SHORTAGE: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ENOSPC}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of connections, and their time-outs in seconds.

    ``bodies``: the total bytes of all incomplete bodies, in memory and in files.
    """

    connections: int
    bodies: int = 512 * KIB * KIB
    idle_s: float = 60  # between requests
    head_s: float = 30  # for first line and headers
    body_s: float = 60  # for a body, plus one second for each ``slowest`` bytes
    slowest: int = 16 * KIB
    write_s: float = 60  # without progress of the answer
    drain_s: float = 5  # to read an answer while unread input is left
    kept_s: float = 0  # after a connection's last answer, during a stop


class State(Enum):
    READING = "reading"
    BUSY = "busy"  # a thread has its request
    WRITING = "writing"
    STREAMING = "streaming"  # an answer without an end
    DRAINING = "draining"  # answered for the last time; further input is dropped
    CLOSED = "closed"


class Connection:
    """``since``: time of arrival, last answer or first byte of a request; ``out``: unsent bytes.

    ``pieces``: the rest of the answer.  ``deadline``: of the state, except BUSY. ``stream``: an
    answer without an end.
    """

    __slots__ = ("address", "body_since", "closes", "deadline", "fd", "out", "pieces", "reader",
                 "since", "socket", "state", "stream")  # fmt: skip

    def __init__(
        self,
        sock: socket.socket,
        address: tuple[Any, ...],
        reader: Reader,
        deadline: float,
    ) -> None:
        self.socket = sock
        self.fd = sock.fileno()
        self.address = address
        self.reader = reader
        self.state = State.READING
        self.since = time.monotonic()
        self.deadline = deadline
        self.body_since: float | None = None
        self.out = memoryview(b"")
        self.pieces = NOTHING
        self.closes = False
        self.stream: Stream | None = None

    @property
    def is_idle(self) -> bool:
        """May the connection be closed without loss, except of a request that nobody has read yet?

        Such a request counts as idle at any size: its client may have no login.
        """
        if self.state is State.DRAINING:
            return True
        return self.state is State.READING and not self.reader.is_asked_for

    def first(self) -> Message | None:
        return self.reader.messages[0] if self.reader.messages else None


class Connections:
    """All connections of a listening socket.

    ``handle`` gets each connection whose first message is ready; it must return at once, and
    ``answer`` or ``wait_for_more`` must be called later, from any thread.
    """

    def __init__(
        self,
        listener: socket.socket,
        handle: Callable[[Connection], None],
        limits: Limits,
        secure: Callable[[socket.socket], socket.socket] | None = None,
        send_file: Callable[[Connection], None] | None = None,
    ) -> None:
        """``send_file`` lets another thread call ``send_piece``, so that no other waits for a disk.

        ``secure`` turns a client's socket into a TLS socket; None: no TLS.
        """
        self.limits = limits
        self._secure = secure
        self._listener = listener
        self._handle = handle
        self._send_file = send_file or self.send_piece
        self._bodies = Bodies(limits.bodies)
        self._all: dict[int, Connection] = {}
        self._mutex = threading.Lock()  # for changes of a connection's owner
        self._poll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll.register(self._bell, select.EPOLLIN)
        self._poll.register(listener, select.EPOLLIN)
        self._is_accepting = True
        self._paused_until = 0.0
        self._swept_at = time.monotonic()
        self._complained_at: float | None = None
        self._stop_at: float | None = None
        self._has_ended = False

    @property
    def is_stopping(self) -> bool:
        return self._stop_at is not None

    def __len__(self) -> int:
        return len(self._all)

    # ------------------------------------------------------------------------- its own thread

    def run(self, stop_s: float) -> None:
        """Serve until ``stop``; then let requests end, and clients read for ``stop_s``.

        With ``kept_s`` existing connections may still send requests until then.

        No fault ends the loop, since the process would live without serving.
        """
        while not self._is_done(stop_s):
            try:
                rests = self._is_accepting and not self._all  # no time-out to check
                look_s = SWEEP_S if self._stop_at is None else STOP_LOOK_S
                for fd, _event in self._poll.poll(None if rests else look_s):
                    if fd == self._bell:
                        os.eventfd_read(fd)
                    elif fd == self._listener.fileno():
                        self._accept()
                    elif (connection := self._all.get(fd)) is not None:
                        self._guarded(connection, self._serve)
                now = time.monotonic()
                if now - self._swept_at >= SWEEP_S:
                    self._swept_at = now
                    for each in list(self._all.values()):
                        if each.stream is not None:
                            each.stream.beat()
                    for each in list(self._all.values()):
                        if _is_late(each, now):
                            self._guarded(each, functools.partial(self._end_late, now))
                self._accept_again()
            except Exception:
                LOG.exception("connections are served on after an unexpected fault")
                time.sleep(FAULT_S)
        self.close()

    def wake(self) -> None:
        """Wake ``run``."""
        with self._mutex:
            if not self._has_ended:
                os.eventfd_write(self._bell, 1)

    def stop(self) -> None:
        """Accept no more connections and requests; ``run`` ends after the last answer."""
        if self._stop_at is None:
            self._stop_at = time.monotonic()
        self.wake()

    def _guarded(self, connection: Connection, step: Callable[[Connection], None]) -> None:
        try:
            step(connection)
        except Exception:
            LOG.exception("a connection failed for an unexpected reason, and is closed")
            self._end(connection)

    def _serve(self, connection: Connection) -> None:
        if connection.state is State.READING:
            self._read(connection)
        elif connection.state is State.WRITING:
            self._send_on(connection)
        elif connection.state is State.DRAINING:
            try:
                has_ended = not connection.socket.recv(PIECE)
            except (BlockingIOError, InterruptedError):
                has_ended = False
            except OSError:
                has_ended = True
            if has_ended:
                self._close(connection)
            else:
                self._arm(connection, State.DRAINING, _IN, connection.deadline)
        elif connection.stream is not None:
            connection.stream.go_on()

    def _is_done(self, stop_s: float) -> bool:
        """Stop to listen once the server stops; return whether nothing is left to serve.

        Connections that may send no more requests are closed; a body that the application has
        asked for is awaited.
        """
        if self._stop_at is None:
            return False
        if self._listener.fileno() >= 0:
            if self.limits.kept_s:
                self._accept(MOST_QUEUED)
            self._listener.close()
            self._is_accepting = False
        now = time.monotonic()

        def is_unkept(connection: Connection) -> bool:
            if connection.state is not State.READING:
                return False
            kept_s = self.limits.kept_s
            awaited = kept_s > 0 and connection.reader.is_asked_for
            return not awaited and now >= connection.since + kept_s

        for connection in list(self._all.values()):
            self._close_if(connection, is_unkept)
        states = {connection.state for connection in list(self._all.values())}
        is_late = now >= self._stop_at + self.limits.kept_s + stop_s
        return State.BUSY not in states and (is_late or not states & {State.WRITING, State.READING})

    def close(self) -> None:
        """Close everything in any state, when ``run`` has ended."""
        self._listener.close()
        for connection in list(self._all.values()):
            self._end(connection)
        with self._mutex:
            self._has_ended = True
            self._poll.close()
            os.close(self._bell)

    # ------------------------------------------------------------------------------ accepting

    def _accept(self, most: int = ACCEPTED_AT_ONCE) -> None:
        for number in range(most):
            if number and not self._has_room():
                return None  # epoll reports further clients
            if not self._has_room() and not self._make_room():
                return self._pause(f"{len(self._all)} connections are open, the most there may be")
            try:
                connection = self._added(*self._listener.accept())
            except BlockingIOError:
                return None
            except Exception as exc:
                if isinstance(exc, OSError) and exc.errno not in _SHORTAGE:
                    return None  # only the client is gone
                if not isinstance(exc, OSError):
                    LOG.exception("a connection cannot be taken for an unexpected reason")
                self._make_room()
                self._paused_until = time.monotonic() + SWEEP_S
                why = exc.strerror if isinstance(exc, OSError) else type(exc).__name__
                return self._pause(f"cannot take a connection: {why}")
            # its request may have arrived, so it is not idle
            self._guarded(connection, self._serve)
        return None

    def _added(self, client: socket.socket, address: tuple[Any, ...]) -> Connection:
        try:
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            deadline = time.monotonic() + self.limits.head_s
            if self._secure is not None:
                client = self._secure(client)
            connection = Connection(client, address, Reader(self._bodies), deadline)
            self._poll.register(connection.fd, _IN)
        except Exception:
            client.close()
            raise
        self._all[connection.fd] = connection
        return connection

    def _make_room(self) -> bool:
        """Close the connections that have been idle longest; return whether there were any."""
        idle = [each for each in list(self._all.values()) if each.is_idle]
        oldest = heapq.nsmallest(len(idle) // ROOM + 1, idle, key=lambda each: each.since)
        closed = [
            each for each in oldest if self._close_if(each, lambda connection: connection.is_idle)
        ]
        return bool(closed)

    def _pause(self, why: str) -> None:
        """Leave new connections in the kernel's queue until there is room."""
        self._poll.modify(self._listener, 0)
        self._is_accepting = False
        now = time.monotonic()
        if self._complained_at is None or now - self._complained_at >= COMPLAIN_S:
            self._complained_at = now
            LOG.warning("%s; others wait until one goes (more: ulimit -n)", why)

    def _accept_again(self) -> None:
        if self._is_accepting or self._stop_at is not None:
            return
        if time.monotonic() >= self._paused_until and (self._has_room() or self._make_room()):
            self._poll.modify(self._listener, select.EPOLLIN)
            self._is_accepting = True

    def _has_room(self) -> bool:
        return len(self._all) < self.limits.connections

    # -------------------------------------------------------------------------------- reading

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.socket.recv(PIECE)
        except (BlockingIOError, InterruptedError):
            return self._await(connection)
        except OSError:
            return self._close(connection)
        reader = connection.reader
        was_within = reader.is_within
        if data:
            reader.feed(data)
        elif was_within:
            reader.refuse(400, "the request ends before its end")
        else:
            return self._close(connection)
        if not was_within and reader.is_within:
            connection.since = time.monotonic()
            connection.deadline = connection.since + self.limits.head_s
        return self._go_on(connection)

    def _go_on(self, connection: Connection) -> None:
        """Have the first message handled, or wait for more of it."""
        message = connection.first()
        takes_requests = self._stop_at is None or self.limits.kept_s > 0
        if message is not None and message.is_ready and takes_requests:
            connection.state = State.BUSY
            connection.body_since = None
            self._handle(connection)
        else:
            self._await(connection)

    def _await(self, connection: Connection) -> None:
        limits, reader = self.limits, connection.reader
        deadline = connection.deadline
        if reader.is_in_body:
            began = connection.body_since = connection.body_since or time.monotonic()
            deadline = began + limits.body_s + reader.messages[-1].size / limits.slowest
        elif connection.state is not State.READING:  # it has been answered
            connection.since = time.monotonic()
            deadline = connection.since + (limits.head_s if reader.is_within else limits.idle_s)
        self._arm(connection, State.READING, _IN, deadline)
        if not self._is_accepting:
            self.wake()  # it may be closed now to make room

    def _arm(self, connection: Connection, state: State, events: int, deadline: float) -> None:
        """Release the connection: epoll may report it to another thread."""
        with self._mutex:
            if connection.state is State.CLOSED or self._has_ended:
                return
            connection.state, connection.deadline = state, deadline
            self._poll.modify(connection.fd, events)

    # ----------------------------------------------------------------------- called by workers

    def wait_for_more(self, connection: Connection, size: int) -> None:
        """Read the body of the first message up to this size."""
        message = connection.reader.messages[0]
        message.asked_bytes = size
        if message.asks_first:
            message.asks_first = False
            try:
                connection.socket.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            except OSError:
                return self._close(connection)
        return self._go_on(connection)

    def answer(
        self,
        connection: Connection,
        data: bytes,
        *,
        keep: bool,
        pieces: Iterator[bytes] = NOTHING,
    ) -> None:
        """Answer the first message, and drop the rest of it.

        ``pieces``: the parts after ``data``, each read when the client has taken the last.
        """
        message = connection.reader.messages.popleft()
        message.close()
        connection.closes = not (keep and message.is_whole and self._stop_at is None)
        connection.out, connection.pieces = memoryview(data), pieces
        self._send_on(connection)
        if self._stop_at is not None:
            self.wake()

    def stream(self, connection: Connection, head: bytes, begin: Callable[[Stream], None]) -> None:
        """Answer the first message without an end; ``begin`` gets the wire."""
        connection.reader.messages.popleft().close()
        stream = connection.stream = Stream(_Wire(self, connection))
        connection.state = State.STREAMING
        if stream.push(head):
            begin(stream)
        stream.go_on()

    def await_turn(self, connection: Connection, *, to_write: bool) -> None:
        """Wait for a stream's client, without a deadline unless it has to read."""
        deadline = time.monotonic() + self.limits.write_s if to_write else math.inf
        self._arm(connection, State.STREAMING, _OUT | _IN if to_write else _IN, deadline)

    def abandon(self, connection: Connection) -> None:
        """Close the connection of a stream, or one whose first message cannot be answered."""
        self._close(connection)

    def _send_on(self, connection: Connection) -> None:
        if connection.pieces is NOTHING:
            return self._send(connection, SENT_AT_ONCE)
        connection.state = State.BUSY
        return self._send_file(connection)

    def send_piece(self, connection: Connection) -> None:
        """Read and send more of a file, in the calling thread."""
        self._guarded(connection, lambda reader: self._send(reader, FILE_AT_ONCE))
        if self._stop_at is not None:
            self.wake()

    def _send(self, connection: Connection, most: int) -> None:
        sent = 0
        try:
            while connection.out and sent < most:
                taken = connection.socket.send(connection.out)
                sent += taken
                connection.out = connection.out[taken:] or memoryview(next(connection.pieces, b""))
        except (BlockingIOError, InterruptedError):
            """The client takes the rest later."""
        except OSError as exc:
            if exc.errno == errno.ESTALE:
                LOG.warning("an answer was cut off: %s", exc.strerror)
            return self._close(connection)
        if connection.out:
            deadline = time.monotonic() + self.limits.write_s
            return self._arm(connection, State.WRITING, _OUT, deadline)
        if not connection.closes:
            return self._go_on(connection)
        try:  # a client that still sends gets time to read its answer
            connection.socket.shutdown(socket.SHUT_WR)
        except OSError:
            return self._close(connection)
        deadline = time.monotonic() + self.limits.drain_s
        return self._arm(connection, State.DRAINING, _IN, deadline)

    # -------------------------------------------------------------------------------- closing

    def _close(self, connection: Connection) -> None:
        self._close_if(connection, lambda _: True)

    def _close_if(self, connection: Connection, right: Callable[[Connection], bool]) -> bool:
        with self._mutex:
            if connection.state is State.CLOSED or not right(connection):
                return False
            connection.state = State.CLOSED
        self._all.pop(connection.fd, None)
        connection.pieces = NOTHING
        with contextlib.suppress(OSError):  # the descriptor is closed in any case
            connection.socket.close()
        for message in connection.reader.messages:
            message.close()
        return True

    def _end(self, connection: Connection) -> None:
        """Close from this thread; a stream may be written by another thread meanwhile."""
        if connection.stream is None:
            self._close(connection)
        else:
            connection.stream.close()

    def _end_late(self, now: float, connection: Connection) -> None:
        """Close a connection, or answer its incomplete request with 408."""
        if connection.state is State.READING and connection.reader.is_within:
            with self._mutex:
                if connection.state is not State.READING or not _is_late(connection, now):
                    return
                connection.state = State.BUSY
            connection.reader.refuse(408, "the request took too long to come")
            self._handle(connection)
        elif connection.stream is not None:
            connection.stream.close()
        else:
            self._close_if(connection, lambda late: _is_late(late, now))


class _Wire:
    """The connection of a stream."""

    def __init__(self, connections: Connections, connection: Connection) -> None:
        self._connections, self._connection = connections, connection

    def send(self, data: memoryview) -> int:
        return self._connection.socket.send(data)

    def receive(self) -> bytes:
        return self._connection.socket.recv(PIECE)

    def await_turn(self, *, to_write: bool) -> None:
        self._connections.await_turn(self._connection, to_write=to_write)

    def hang_up(self) -> None:
        self._connections.abandon(self._connection)


def _is_late(connection: Connection, now: float) -> bool:
    return connection.state is not State.BUSY and connection.deadline <= now
