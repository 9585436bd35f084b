"""The HTTP server inside the process: cheroot, few threads, many idle connections.

An idle connection waits in a selector and costs no thread (``connections``).  More threads than
a few cost, measured, and help nobody: work is done by conductors.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import threading
from typing import Any, Final

from cheroot import errors as server_errors

from bloomery import errors
from bloomery.api import connections
from bloomery.api.bodies import KIB
from bloomery.api.front import Wsgi
from bloomery.conf import Conf

LOG = logging.getLogger(__name__)

MAX_HEADER_BYTES: Final = 64 * KIB
IDLE_CONNECTIONS: Final = 10_000  # cheroot's own limit of 10 would cut clients off
BACKLOG: Final = 1024
IDLE_S: Final = 60
STOP_S: Final = 5
_ERRNO: Final = re.compile(r"\[Errno -?\d+\] ([^)\]]+)")


class Server:
    """Listens once it is made; answers from ``start`` until ``stop``."""

    def __init__(self, app: Wsgi, conf: Conf, tls: Any = None) -> None:
        """Bind the address.  ``tls``: an adapter of cheroot's.  Raises CannotStart."""
        _check_exposure(conf)
        self._server = _server(app, conf)
        self._server.ssl_adapter = tls
        self._thread: threading.Thread | None = None
        self._prepare(conf)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: the port is the real one, also if any was asked for."""
        host, port = self._server.bind_addr[:2]
        return host, port

    def start(self) -> None:
        """Begin to answer; returns at once."""
        self._thread = threading.Thread(target=self._serve, name="api", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Refuse new connections, let running requests end, join the threads."""
        self._server.stop()
        if self._thread is not None:
            self._thread.join()

    def _prepare(self, conf: Conf) -> None:
        try:
            self._server.prepare()
        except OSError as exc:
            raise errors.CannotStart(
                reason=f"cannot listen on {conf.api.host_ip} port {conf.api.port}: "
                f"{_reason(exc)}; choose another --host or --port",
            ) from exc

    def _serve(self) -> None:
        try:
            self._server.serve()
        except server_errors.FatalSSLAlert:
            LOG.warning("a client broke off TLS")


def _server(app: Wsgi, conf: Conf) -> connections.Server:
    server = connections.Server(
        (conf.api.host_ip, conf.api.port),
        app,
        numthreads=conf.api.threads,
        request_queue_size=BACKLOG,
        timeout=IDLE_S,
        shutdown_timeout=STOP_S,
    )
    server.keep_alive_conn_limit = IDLE_CONNECTIONS
    server.max_request_header_size = MAX_HEADER_BYTES
    server.max_request_body_size = (conf.api.max_json_body_size_provision + 1) * KIB
    server.error_log = _log  # type: ignore[method-assign, assignment]  # cheroot wants it so
    return server


def _log(message: str = "", level: int = logging.INFO, traceback: bool = False) -> None:
    LOG.log(level, message, exc_info=traceback)


def _reason(exc: OSError) -> str:
    """Return what the kernel said; cheroot wraps it in words of its own, brackets included."""
    found = _ERRNO.findall(str(exc))
    return found[-1] if found else str(exc)


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
