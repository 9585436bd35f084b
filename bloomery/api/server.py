"""The HTTP server inside the process: few threads, many connections.

A connection costs no thread: one thread waits for all of them (``connections``), and ``threads``
others answer the requests that are whole.  More of those cost, measured, and help nobody: work
is done by conductors.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import resource
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from bloomery import errors
from bloomery.api import auth, bodies, connections, declare, tls, wsgi
from bloomery.api.bodies import KIB
from bloomery.api.connections import Connection, Limits
from bloomery.api.layers import Wsgi
from bloomery.api.messages import Refusal
from bloomery.conf import Conf

LOG = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 10_000
MOST_DESCRIPTORS: Final = 65_536  # some programs that we start close each one that there may be
BACKLOG: Final = 1024
STOP_S: Final = 5
LAST_S: Final = 0.5  # to see that nobody is there
LARGE: Final = 4 * KIB * KIB  # bodies of this size are parsed one after the other
_BROKEN: Final = ("500 Internal Server Error", [("Content-Type", "text/plain")])


class Server:
    """Listens once it is made; answers from ``start`` until ``stop``."""

    def __init__(
        self,
        app: Wsgi,
        conf: Conf,
        limits: Limits | None = None,
        *,
        port_option: str = "--port",
        fault: Callable[[Refusal], Any] = wsgi.bare_fault,
    ) -> None:
        """Bind the address; ``port_option`` is what names another one.  Raises CannotStart.

        ``fault`` returns the document that answers what no application can be shown.
        """
        _check_exposure(conf)
        self._app, self._fault = app, fault
        self._tls = tls.Tls(conf) if conf.api.enable_ssl_api else None
        self._scheme = "http" if self._tls is None else "https"
        self._listener = _listener(conf, port_option)
        self._base = wsgi.base(*self.address, self._scheme)
        self._ready = WorkQueue()
        self._large = _OneByOne(self._ready)
        limits = limits or Limits(connections=most_connections())
        self._connections = connections.Connections(
            self._listener, self._take, limits, self._tls.secure if self._tls else None
        )
        self._loop = threading.Thread(target=self._connections.run, args=(STOP_S,), name="api")
        self._threads = [
            threading.Thread(target=self._work, name=f"api-{number}", daemon=True)
            for number in range(conf.serving_threads)
        ]
        self._loop.daemon = True

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: the port is the real one, also if any was asked for."""
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
        """Read the certificates again, if there are any."""
        if self._tls is not None:
            self._tls.reload()

    def start(self) -> None:
        """Begin to answer; returns at once."""
        for thread in (self._loop, *self._threads):
            thread.start()

    def begin_stop(self) -> None:
        """Refuse new connections and requests from now on; returns at once."""
        self._connections.stop()

    def stop(self, within_s: float | None = None) -> None:
        """As ``begin_stop``; then let running requests end, and join the threads.

        ``within_s``: for how long, by default as long as it takes.  Requests that are not
        answered by then are left behind: only the end of the process ends them.
        """
        self.begin_stop()
        if self._loop.ident is None:
            self._connections.run(0)
            return
        self._loop.join(None if within_s is None else within_s + LAST_S)
        for _ in self._threads:
            self._ready.put(None)
        if self._loop.is_alive():
            LOG.warning("stopping: the time is over, and some requests are left without an answer")
            return
        for thread in self._threads:
            thread.join()

    def _take(self, connection: Connection) -> None:
        message = connection.reader.messages[0]
        if message.is_whole and message.size > LARGE:
            self._large.put(connection)
        else:
            self._ready.put(connection)

    def _work(self) -> None:
        """Answer requests, until there is a None; no fault of one ends the thread."""
        while (connection := self._ready.get()) is not None:
            try:
                self._answer_or_wait(connection)
            except Exception:
                LOG.exception("a request could not be answered for an unexpected reason")
                self._connections.abandon(connection)
            self._large.done(connection)

    def _answer_or_wait(self, connection: Connection) -> None:
        try:
            self._answer(connection)
        except auth.Deferred as exc:
            self._answer_after(exc.check, connection)
        except bodies.Awaited as exc:
            self._connections.wait_for_more(connection, exc.size)

    def _answer(self, connection: Connection) -> None:
        """Raises Deferred and Awaited for what no thread is to wait for."""
        message = connection.reader.messages[0]
        if message.refusal is not None:
            data = wsgi.refusal(message, message.refusal, self._fault(message.refusal))
            return self._connections.answer(connection, data, keep=False)
        environ = wsgi.environ(message, self._base, connection.address)
        if not environ.get("HTTP_HOST"):  # then links say where the client has reached us
            environ |= wsgi.name(connection.socket.getsockname())
        response = wsgi.Response()
        environ[declare.HAND_OVER] = response.hand_over
        try:
            response.take(self._app(environ, response.start))
            if response.stream is not None and not self._connections.is_stopping:
                begin = response.encoded_begin(message)
                return self._connections.stream(connection, begin, response.stream)
            ends = response.ends_connection or self._connections.is_stopping
            keep = message.keep_alive and message.is_whole and not ends
            data = response.encoded(message, keep=keep)
        except (auth.Deferred, bodies.Awaited):
            raise
        except Exception:
            LOG.exception("unexpected error outside of any handler")
            keep, response = False, wsgi.Response()
            response.start(*_BROKEN)
            data = response.encoded(message, keep=False)
        finally:
            environ.clear()  # Pecan keeps its last request in each thread, body included
        return self._connections.answer(connection, data, keep=keep, pieces=response.pieces)

    def _answer_after(self, check: auth.Check, connection: Connection) -> None:
        connection.reader.messages[0].login = check
        check.outcome.add_done_callback(lambda _: self._take(connection))


class WorkQueue:
    """Connections whose first message is ready, for the thread that has rested least.

    What a request needs is still in its processor's caches.  The queues of the library wake
    threads in turn, ``SimpleQueue`` one more for nothing each time: a tenth of what a GET costs.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._connections: deque[Connection | None] = deque()
        self._resting: list[threading.Lock] = []  # each locked until its thread is called

    def put(self, connection: Connection | None) -> None:
        """Call a thread, if one rests; None: for its end."""
        with self._mutex:
            self._connections.append(connection)
            call = self._resting.pop() if self._resting else None
        if call is not None:
            call.release()

    def get(self) -> Connection | None:
        """Return the next connection, the first put first; rest until there is one."""
        while True:
            with self._mutex:
                if self._connections:
                    return self._connections.popleft()
                call = threading.Lock()
                call.acquire()
                self._resting.append(call)
            call.acquire()


class _OneByOne:
    """Large bodies wait here for each other: what is parsed needs several times its size."""

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
        """A thread has worked on a connection; if that was a large one, the next may come."""
        if self._now is not connection:
            return
        with self._mutex:
            self._now = self._waiting.popleft() if self._waiting else None
            following = self._now
        if following is not None:
            self._ready.put(following)


def raise_descriptor_limit() -> None:
    """Allow as many descriptors as the system lets us have, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def most_connections() -> int:
    """Return how many leave enough descriptors to the database and to BMCs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(8, min(MOST_CONNECTIONS, soft * 3 // 4 - 32))


def _listener(conf: Conf, port_option: str) -> socket.socket:
    host, port = conf.api.host_ip, conf.api.port
    try:
        (family, _, _, _, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        is_any = host == "::" and socket.has_dualstack_ipv6()
        listener = socket.create_server(
            address, family=family, backlog=BACKLOG, dualstack_ipv6=is_any
        )
    except OSError as exc:
        why = exc.strerror if isinstance(exc, socket.gaierror) else os.strerror(exc.errno or 0)
        raise errors.CannotStart(
            reason=f"cannot listen on {host} port {port}: {why}; "
            f"choose another --host or {port_option}",
        ) from exc
    listener.setblocking(False)
    return listener


def _check_exposure(conf: Conf) -> None:
    """Without logins, only this machine may ask, unless the operator says otherwise."""
    if conf.default.auth_strategy != "noauth" or conf.api.insecure_listen:
        return
    if not _is_loopback(conf.api.host_ip):
        raise errors.CannotStart(
            reason=f"cannot listen on {conf.api.host_ip}: auth_strategy is noauth, so that "
            "everybody would be an operator; set [DEFAULT]auth_strategy = http_basic, or "
            "[api]insecure_listen = true if the network is yours alone",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
