"""The HTTP server inside the process: few threads, many connections.

A connection needs no thread: one thread waits for all of them (``connections``), and ``threads``
others answer whole requests.  Measured, more threads cost time without benefit: conductors do the
work.  Agents call in bursts, so their requests have threads of their own and delay no user.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import resource
import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors
from bloomery.http_server import bodies, connections, login, tls, wsgi
from bloomery.http_server.bodies import KIB
from bloomery.http_server.connections import Connection, Limits
from bloomery.http_server.messages import Refusal
from bloomery.http_server.streams import HAND_OVER
from bloomery.http_server.wsgi import Wsgi
from bloomery.model.request import PARKING_KEY, Parked, Parking

LOG = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 10_000
MOST_DESCRIPTORS: Final = 65_536  # programs that close each possible descriptor would take long
STOP_S: Final = 5
ALIVE: Final = b"/healthz"
READY: Final = b"/readyz"
METRICS: Final = b"/metrics"
LAST_S: Final = 0.5  # to close the connections
LARGE: Final = 4 * KIB * KIB  # bodies of this size are parsed one at a time
_BROKEN: Final = ("500 Internal Server Error", [("Content-Type", "text/plain")])


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Address, threads and TLS of a server.

    ``name``: prefix of its threads' names.  ``advice``: the remedy if the address is in use.
    ``shares_port``: other processes listen there too, and the kernel spreads connections.
    """

    host: str
    port: int
    threads: int
    advice: str
    name: str = "api"
    tls: tls.Settings | None = None
    shares_port: bool = False


class Server:
    """Listens from its construction; answers from ``start`` until ``stop``."""

    def __init__(
        self,
        app: Wsgi,
        settings: Settings,
        limits: Limits | None = None,
        *,
        fault: Callable[[Refusal], Any] = wsgi.bare_fault,
        has_probes: bool = False,
        agent_calls: re.Pattern[str] | None = None,
    ) -> None:
        """Bind the address.  Raises CannotStart.

        ``fault`` returns the error document for requests that reach no application. ``has_probes``:
        the thread of connections answers ``ALIVE``, which must not block, and threads of their own
        ``READY`` and ``METRICS``: all answer while all workers wait for a database.
        ``agent_calls``: the paths of agents' requests, which half as many threads answer.
        """
        self._app, self._fault = app, fault
        self._tls = tls.Tls(settings.tls) if settings.tls is not None else None
        self._scheme = "http" if self._tls is None else "https"
        self._listener = _listener(settings)
        self._base = wsgi.base(*self.address, self._scheme)
        self._has_probes, self._agent_calls = has_probes, agent_calls
        self._ready, self._agents, self._files = (WorkQueue() for _ in range(3))
        self._probes, self._scrapes = WorkQueue(), WorkQueue()
        self._large = _OneByOne(self._ready)
        limits = limits or Limits(connections=most_connections())
        self._connections = connections.Connections(
            self._listener, self._take, limits, self._tls.secure if self._tls else None,
            self._files.put,
        )  # fmt: skip
        self._loop = threading.Thread(
            target=self._connections.run, args=(STOP_S,), name=settings.name
        )
        queues = {f"{settings.name}-{number}": self._ready for number in range(settings.threads)}
        if agent_calls is not None:
            count = max(settings.threads // 2, 1)
            queues |= {f"{settings.name}-agents-{number}": self._agents for number in range(count)}
        if has_probes:
            queues[f"{settings.name}-probes"] = self._probes
            queues[f"{settings.name}-scrapes"] = self._scrapes
        self._threads = [
            threading.Thread(target=self._work, args=(queue,), name=name, daemon=True)
            for name, queue in queues.items()
        ]
        self._threads.append(
            threading.Thread(target=self._send_files, name=f"{settings.name}-files", daemon=True)
        )
        self._loop.daemon = True

    @property
    def address(self) -> tuple[str, int]:
        """Return the URL with the real port, also if any port was requested."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    @property
    def url(self) -> str:
        host, port = self.address
        return (
            f"{self._scheme}://[{host}]:{port}"
            if ":" in host
            else f"{self._scheme}://{host}:{port}"
        )

    def reload(self) -> None:
        """Reload the TLS certificates, if any."""
        if self._tls is not None:
            self._tls.reload()

    def start(self) -> None:
        """Start the threads; returns at once."""
        for thread in (self._loop, *self._threads):
            thread.start()

    def begin_stop(self) -> None:
        """Refuse new connections and requests from now on; returns at once."""
        self._connections.stop()

    def stop(self, within_s: float | None = None) -> None:
        """As ``begin_stop``; then let running requests end, and join the threads.

        ``within_s``: the limit, by default none.  Requests beyond it end with the process.
        """
        self.begin_stop()
        if self._loop.ident is None:
            self._connections.close()
            return
        self._loop.join(None if within_s is None else within_s + LAST_S)
        self._probes.put(None)
        self._scrapes.put(None)
        self._files.put(None)
        for _ in self._threads:
            self._ready.put(None)
            self._agents.put(None)
        if self._loop.is_alive():
            LOG.warning("stopping: the time is over, and some requests are left without an answer")
            return
        for thread in self._threads:
            if thread.ident is not None:  # the start may have failed before it
                thread.join()

    def _take(self, connection: Connection) -> None:
        message = connection.reader.messages[0]
        path = message.target.partition(b"?")[0]
        if self._has_probes and path == ALIVE:
            self._answer_or_abandon(connection)
        elif self._has_probes and path == READY:
            self._probes.put(connection)
        elif self._has_probes and path == METRICS:
            self._scrapes.put(connection)
        elif message.is_whole and message.size > LARGE:
            self._large.put(connection)
        elif self._agent_calls and self._agent_calls.fullmatch(path.decode("latin-1")):
            self._agents.put(connection)
        else:
            self._ready.put(connection)

    def _work(self, ready: WorkQueue) -> None:
        """Answer requests until a None; no fault of a request ends the thread."""
        while (connection := ready.get()) is not None:
            self._answer_or_abandon(connection)
            self._large.done(connection)

    def _send_files(self) -> None:
        while (connection := self._files.get()) is not None:
            self._connections.send_piece(connection)

    def _answer_or_abandon(self, connection: Connection) -> None:
        try:
            try:
                self._answer(connection)
            except login.Deferred as exc:
                connection.reader.messages[0].login = exc.check
                self._take_after(exc.check.outcome, connection)
            except bodies.Awaited as exc:
                self._connections.wait_for_more(connection, exc.size)
            except Parked as exc:
                self._take_after(exc.outcome, connection)
        except Exception:
            LOG.exception("a request could not be answered for an unexpected reason")
            self._connections.abandon(connection)

    def _answer(self, connection: Connection) -> None:
        """Answer.  Raises Deferred, Awaited and Parked where no thread should wait."""
        message = connection.reader.messages[0]
        if message.refusal is not None:
            data = wsgi.refusal(message, message.refusal, self._fault(message.refusal))
            return self._connections.answer(connection, data, keep=False)
        environ = wsgi.environ(message, self._base, connection.address)
        if not environ.get("HTTP_HOST"):  # links then use the address of the connection
            environ |= wsgi.name(connection.socket.getsockname())
        response = wsgi.Response()
        environ[HAND_OVER] = response.hand_over
        environ[PARKING_KEY] = message.parking = message.parking or Parking()
        try:
            response.take(self._app(environ, response.start))
            if response.stream is not None and not self._connections.is_stopping:
                begin = response.encoded_begin(message)
                return self._connections.stream(connection, begin, response.stream)
            ends = response.ends_connection or self._connections.is_stopping
            keep = message.keep_alive and message.is_whole and not ends
            data = response.encoded(message, keep=keep)
        except (login.Deferred, bodies.Awaited, Parked):
            raise
        except Exception:
            LOG.exception("unexpected error outside of any handler")
            keep, response = False, wsgi.Response()
            response.start(*_BROKEN)
            data = response.encoded(message, keep=False)
        finally:
            environ.clear()  # closures keep it, the body included
        return self._connections.answer(connection, data, keep=keep, pieces=response.pieces)

    def _take_after(self, outcome: Future[Any], connection: Connection) -> None:
        outcome.add_done_callback(lambda _: self._take(connection))


class WorkQueue:
    """Connections whose first message is ready, for the thread that has rested least.

    Its processor's caches are warm.  The library's queues wake threads in turn, and ``SimpleQueue``
    wakes one more in vain: together a tenth of the cost of a GET.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._connections: deque[Connection | None] = deque()
        self._resting: list[threading.Lock] = []  # each locked until its thread is called

    def put(self, connection: Connection | None) -> None:
        """Wake a resting thread; None ends it."""
        with self._mutex:
            self._connections.append(connection)
            call = self._resting.pop() if self._resting else None
        if call is not None:
            call.release()

    def get(self) -> Connection | None:
        """Return the next connection, first in first out; rest until there is one."""
        while True:
            with self._mutex:
                if self._connections:
                    return self._connections.popleft()
                call = threading.Lock()
                call.acquire()
                self._resting.append(call)
            call.acquire()


class _OneByOne:
    """Large bodies are handled one at a time: parsing needs several times their size."""

    def __init__(self, ready: WorkQueue) -> None:
        self._ready = ready
        self._mutex = threading.Lock()
        self._now: Connection | None = None
        self._waiting: deque[Connection] = deque()

    def put(self, connection: Connection) -> None:
        with self._mutex:
            if self._now is not None:
                self._waiting.append(connection)
                return
            self._now = connection
        self._ready.put(connection)

    def done(self, connection: Connection) -> None:
        """Release the connection; after a large one, the next may come."""
        if self._now is not connection:
            return
        with self._mutex:
            self._now = self._waiting.popleft() if self._waiting else None
            following = self._now
        if following is not None:
            self._ready.put(following)


def raise_descriptor_limit() -> None:
    """Raise the limit of descriptors, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def most_connections() -> int:
    """Return the number that leaves enough descriptors to the database and to BMCs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(8, min(MOST_CONNECTIONS, soft * 3 // 4 - 32))


def _listener(settings: Settings) -> socket.socket:
    host, port = settings.host, settings.port
    try:
        (family, _, _, _, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        is_any = host == "::" and socket.has_dualstack_ipv6()
        listener = socket.create_server(
            address, family=family, backlog=connections.MOST_QUEUED, dualstack_ipv6=is_any,
            reuse_port=settings.shares_port,
        )  # fmt: skip
    except OSError as exc:
        why = exc.strerror if isinstance(exc, socket.gaierror) else os.strerror(exc.errno or 0)
        raise errors.CannotStart(
            reason=f"cannot listen on {host} port {port}: {why}; {settings.advice}"
        ) from exc
    listener.setblocking(False)
    return listener


def require_free(settings: Settings) -> None:
    """Raise CannotStart if the address is in use, also by processes that share it."""
    _listener(settings).close()


def is_loopback(host: str) -> bool:
    """Is an address reachable from this machine only?"""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
