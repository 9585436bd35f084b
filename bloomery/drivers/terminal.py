"""A TCP port that leads to the serial line of a machine, for several connections at once.

    terminal = Terminal(name="web-1", listener=listen(address, ports), line=line, conf=conf.console)
    terminal.stop()

One thread serves all connections.  The first one opens the line, the last one closes it; a recorded
line stays open.  All connections get what the machine writes, and may type.  A later connection
first gets the last ``REPLAYED`` bytes.  A connection that does not read is closed, and delays no
other.  When the line ends, so do its connections: they may connect again.

The audit file, if there is one, gets the begin and the end of each connection; without room for the
begin there is none.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from bloomery import errors
from bloomery.audit import Trail
from bloomery.conf.drivers import Console

LOG = logging.getLogger(__name__)

KIB: Final = 1024
REPLAYED: Final = 16 * KIB
MOST_UNREAD: Final = 256 * KIB  # of a connection that does not read
MOST_TYPED: Final = 16 * KIB  # for a line that takes nothing; more is not read
MOST_CONNECTIONS: Final = 16
_PIECE: Final = 16 * KIB
_WAITING: Final = 16  # connections that the kernel queues
_PAUSES_S: Final = (1.0, 2.0, 5.0, 15.0, 60.0)  # before a recorded line is opened again
_SETTLED_S: Final = 60.0  # a line that was open as long begins with the first pause
_FAULT_S: Final = 1.0  # pause after a fault of ours, for a bounded log


class Line(Protocol):
    """The way to a serial line.  The thread of a terminal calls ``open`` and ``close`` in turn."""

    def open(self) -> socket.socket:
        """Return a socket that carries the line.  Raises OSError and FetchRefused."""

    def close(self) -> None:
        """End what ``open`` has begun, also at the BMC.  The socket is closed."""

    def abort(self) -> None:
        """Let the socket end soon, from any thread; returns at once."""

    def kill(self, after_s: float) -> None:
        """As ``abort``, but certain after so many seconds."""


def listen(address: str, ports: Iterable[int]) -> socket.socket:
    """Return a socket on the first free port.  Raises NoFreeIPMITerminalPorts."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for port in ports:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address, port))
            listener.listen(_WAITING)
        except OSError as exc:
            LOG.debug("console port %s of %s: %s", port, address, exc)
            listener.close()
        else:
            return listener
    raise errors.NoFreeIPMITerminalPorts(address=address)


class Record:
    """A file with what a machine has written: ``path``, and before it ``path.1``.

    Both together have ``most`` bytes at most.  They are readable for their owner only.
    """

    def __init__(self, path: Path, most: int) -> None:
        self._path, self._most, self._has_failed = path, most, False

    def add(self, data: bytes) -> None:
        """Append.  A file that cannot be written is warned of once, and misses those bytes."""
        try:
            with contextlib.suppress(FileNotFoundError):
                if self._path.stat().st_size + len(data) > self._most // 2:
                    self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            file = os.open(self._path, flags, 0o600)
            try:
                os.write(file, data[-self._most // 2 :])
            finally:
                os.close(file)
        except OSError as exc:
            if not self._has_failed:
                LOG.warning("console record %s misses output: %s", self._path, exc.strerror)
            self._has_failed = True
        else:
            self._has_failed = False


@dataclass(slots=True, eq=False)
class _Connection:
    socket: socket.socket
    address: str
    unread: bytearray = field(default_factory=bytearray)  # what the client has yet to take


class Terminal:
    """Serves a listening socket until ``stop``.

    ``record``: gets what the machine writes, from the start to the stop.
    """

    def __init__(
        self,
        *,
        name: str,
        listener: socket.socket,
        line: Line,
        conf: Console,
        trail: Trail | None = None,
        record: Record | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener, self._line, self._conf = listener, line, conf
        self._trail, self._record, self._clock = trail, record, clock
        self.name, self.port = name, int(listener.getsockname()[1])
        listener.setblocking(False)
        self._stopping = threading.Event()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._bell, selectors.EVENT_READ)
        self._session: socket.socket | None = None
        self._connections: list[_Connection] = []
        self._typed, self._replay = bytearray(), bytearray()
        self._byte_at = self._opened_at = clock()
        self._failures, self._open_at = 0, 0.0  # of a recorded line
        self._thread = threading.Thread(target=self._serve, name=f"console-{name}", daemon=True)
        self._thread.start()

    def begin_stop(self) -> None:
        """As ``stop``, but returns at once."""
        self._stopping.set()
        os.eventfd_write(self._bell, 1)
        self._line.abort()

    def stop(self) -> None:
        """Close the port and the connections, end the session at the BMC, and join the thread."""
        self.begin_stop()
        self._line.kill(self._conf.kill_timeout)
        self._thread.join()
        os.close(self._bell)

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                self._turn()
            except Exception:
                LOG.exception("console of node %s: served on after an unexpected fault", self.name)
                self._stopping.wait(_FAULT_S)
        self._end_session("it is switched off")
        self._selector.close()
        self._listener.close()

    def _turn(self) -> None:
        """Open the line where it is wanted, then wait for something and handle it."""
        now, limit_s = self._clock(), self._conf.terminal_timeout
        is_wanted = bool(self._connections) or (self._record is not None and now >= self._open_at)
        if self._session is None and is_wanted:
            self._open_session()
        self._watch_all()
        pauses = [self._open_at - now] if self._record is not None and not self._session else []
        if limit_s and self._connections:
            pauses.append(self._byte_at + limit_s - now)
        for key, events in self._selector.select(max(0.0, min(pauses)) if pauses else None):
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj is self._session and self._session is not None:
                self._serve_session(events)
            elif isinstance(key.data, _Connection) and key.data in self._connections:
                self._serve_connection(key.data, events)
        if limit_s and self._connections and self._clock() >= self._byte_at + limit_s:
            reason = f"no byte came for {limit_s} s"
            if self._record is None:
                self._end_session(reason)
            for each in list(self._connections):
                self._say(each, f"closed: {reason}")
                self._drop(each)
        if self._session is not None and not self._connections and self._record is None:
            self._end_session("nobody is connected")

    # ------------------------------------------------------------------------ the line

    def _open_session(self) -> None:
        try:
            session = self._line.open()
        except Exception as exc:  # noqa: BLE001  of any driver: its reason is told
            reason = exc.strerror if isinstance(exc, OSError) else errors.brief(exc)
            self._end_session(f"the serial line cannot be opened: {reason}")
            return
        session.setblocking(False)
        self._session = session
        self._opened_at = self._byte_at = self._clock()
        self._mark("opened")
        if self._stopping.is_set():  # its abort may have come before the line was open
            self._line.abort()

    def _serve_session(self, events: int) -> None:
        assert self._session is not None
        try:
            if events & selectors.EVENT_WRITE and self._typed:
                del self._typed[: self._session.send(self._typed)]
            data = self._session.recv(_PIECE) if events & selectors.EVENT_READ else None
        except BlockingIOError:
            return
        except OSError as exc:
            self._end_session(f"the serial line ended: {exc.strerror}")
            return
        if data is None:
            return
        if not data:
            self._end_session("the serial line ended")
            return
        self._byte_at = self._clock()
        self._replay += data
        del self._replay[:-REPLAYED]
        if self._record is not None:
            self._record.add(data)
        for each in list(self._connections):
            self._send(each, data)

    def _end_session(self, reason: str) -> None:
        """Close the line, if it is open, and all connections."""
        reason = "it is switched off" if self._stopping.is_set() else reason
        for each in list(self._connections):
            self._say(each, reason)
            self._drop(each)
        was_open = self._session is not None
        if self._session is not None:
            self._forget(self._session)
            self._session = None
        self._typed.clear()
        self._replay.clear()
        if was_open:
            self._mark(f"closed: {reason}")
            self._line.close()
        now = self._clock()
        is_settled = was_open and now - self._opened_at >= _SETTLED_S
        self._failures = 0 if is_settled else min(self._failures + 1, len(_PAUSES_S) - 1)
        self._open_at = now + _PAUSES_S[self._failures]

    def _mark(self, what: str) -> None:
        if self._record is not None:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self._record.add(f"\r\n[{now} console {what}]\r\n".encode())

    def _watch_all(self) -> None:
        """Wait for output of the line, for room in it and in clients, and for what they type."""
        if self._session is not None:
            self._watch(self._session, selectors.EVENT_READ, self._typed)
        for each in self._connections:
            reads = selectors.EVENT_READ if len(self._typed) < MOST_TYPED else 0
            self._watch(each.socket, reads, each.unread, each)

    def _watch(
        self, sock: socket.socket, events: int, unsent: bytearray, data: _Connection | None = None
    ) -> None:
        events |= selectors.EVENT_WRITE if unsent else 0
        if sock not in self._selector.get_map():
            if events:
                self._selector.register(sock, events, data)
        elif events:
            self._selector.modify(sock, events, data)
        else:
            self._selector.unregister(sock)

    def _forget(self, sock: socket.socket) -> None:
        if sock in self._selector.get_map():
            self._selector.unregister(sock)
        sock.close()

    # --------------------------------------------------------------------- connections

    def _accept(self) -> None:
        try:
            client, peer = self._listener.accept()
        except OSError:  # the client has gone
            return
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection = _Connection(client, str(peer[0]))
        if len(self._connections) >= MOST_CONNECTIONS:
            self._say(connection, f"refused: {MOST_CONNECTIONS} connections are open")
            client.close()
            return
        try:
            self._audit("console_opened", connection)
        except errors.AuditUnwritable as exc:
            LOG.warning("console of node %s: %s", self.name, exc)
            client.close()
            return
        self._connections.append(connection)
        self._byte_at = self._clock()
        if self._replay:
            self._send(connection, bytes(self._replay[self._replay.find(b"\n") + 1 :]))

    def _serve_connection(self, connection: _Connection, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE and connection.unread:
                del connection.unread[: connection.socket.send(connection.unread)]
            data = connection.socket.recv(_PIECE) if events & selectors.EVENT_READ else None
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data == b"":
            self._drop(connection)
        elif data is not None:
            self._byte_at = self._clock()
            self._typed += data

    def _send(self, connection: _Connection, data: bytes) -> None:
        """Send, or buffer for a slow client; one that does not read at all is closed."""
        connection.unread += data
        try:
            del connection.unread[: connection.socket.send(connection.unread)]
        except BlockingIOError:
            if len(connection.unread) > MOST_UNREAD:
                LOG.warning("console of node %s: %s does not read", self.name, connection.address)
                self._drop(connection)
        except OSError:
            self._drop(connection)

    def _say(self, connection: _Connection, reason: str) -> None:
        """Tell a client in words why it is closed, unless it does not read."""
        with contextlib.suppress(OSError):
            connection.socket.send(
                bytes(connection.unread) + f"\r\n[console {reason}]\r\n".encode()
            )

    def _drop(self, connection: _Connection) -> None:
        self._connections.remove(connection)
        self._forget(connection.socket)
        try:
            self._audit("console_closed", connection)
        except errors.AuditUnwritable as exc:
            LOG.warning("console of node %s: %s", self.name, exc)

    def _audit(self, kind: str, connection: _Connection) -> None:
        """Add a record to the audit.  Raises AuditUnwritable."""
        if self._trail is not None:
            facts = {"node": self.name, "address": connection.address}
            self._trail.add(kind, facts, is_durable=True)
