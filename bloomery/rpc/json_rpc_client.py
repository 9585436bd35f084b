"""JSON-RPC calls to conductors over HTTP: kept-alive connections, one pool for each host.

A conductor's name is its address, with the port unless it is the default.  Idle connections are not
reused, since the server may be about to close them.  After a connection broke during a call, the
call is repeated once with the same id and the instance of the first process, which answers from
memory; other processes refuse it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import urllib3
from urllib3 import connection, exceptions

from bloomery import errors
from bloomery.conf import Conf, default
from bloomery.db import rows
from bloomery.rpc.json_rpc_server import (
    CLASSES,
    HOST_KEY,
    INSTANCE_HEADER,
    INSTANCE_KEY,
    REUSED_WITHIN_S,
    VERSION_KEY,
)

CONNECT_S: Final = 4.0
_NOT_SENT: Final = (
    exceptions.NewConnectionError,
    exceptions.ConnectTimeoutError,
    exceptions.LocationValueError,
    exceptions.SSLError,
)

_REFUSALS: Final = {  # of calls that the conductor did not read, by status
    401: "it does not know [json_rpc]username with this password",
    413: "the call is larger than its [json_rpc]max_body_size",
}


class _Connection(connection.HTTPConnection):
    def __init__(self, *args: Any, clock: Callable[[], float], **named: Any) -> None:
        super().__init__(*args, **named)
        self._clock = clock
        self._answered_at = clock()

    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]  # urllib3's signature
        response = super().getresponse()
        self._answered_at = self._clock()
        return response

    @property
    def is_connected(self) -> bool:
        """May the connection be reused?  If not, it is closed and opened anew."""
        is_fresh = self._clock() - self._answered_at < REUSED_WITHIN_S
        return is_fresh and super().is_connected


class _SecureConnection(_Connection, connection.HTTPSConnection):
    """The same over TLS."""


class JsonRpcChannel:
    """Safe to use from any thread."""

    is_connected = None

    def __init__(self, conf: Conf, clock: Callable[[], float] = time.monotonic) -> None:
        ours = conf.json_rpc
        self._conf, self._clock = ours, clock
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if ours.username is not None:
            login = f"{ours.username}:{ours.password or ''}"
            self._headers |= urllib3.make_headers(basic_auth=login)
        self._mutex = threading.Lock()
        self._pools: dict[str, urllib3.HTTPConnectionPool] = {}
        self._instances: dict[str, str] = {}  # of the processes that answered last
        self._connections = conf.serving_threads

    def call(self, host: str, message: dict[str, Any], timeout_s: float) -> Mapping[str, Any]:
        try:
            response = self._posted(host, message, timeout_s)
        except exceptions.ProtocolError as first:
            silent = errors.ConductorSilent(
                host=host, method=message["method"], reason="the connection broke"
            )
            if (instance := self._instances.get(host)) is None:
                raise silent from first
            try:
                response = self._posted(host, message | {"instance": instance}, timeout_s)
            except (errors.ConductorUnreached, exceptions.ProtocolError) as exc:
                raise silent from exc
        if instance := response.headers.get(INSTANCE_HEADER):
            self._instances[host] = instance
        if response.status != 200:
            reason = f"it refused the call with HTTP {response.status}"
            raise errors.ConductorUnreached(
                host=host, reason=_REFUSALS.get(response.status, reason)
            )
        return _reply(host, message, response.data)

    def missing(self) -> list[str]:
        return []

    def close(self) -> None:
        with self._mutex:
            for pool in self._pools.values():
                pool.close()
            self._pools.clear()

    def _posted(
        self, host: str, message: dict[str, Any], timeout_s: float
    ) -> urllib3.BaseHTTPResponse:
        """Raises ProtocolError after a lost connection, and the errors of ``call``."""
        params = message["arguments"] | {
            "context": message["context"], VERSION_KEY: message["version"],
            HOST_KEY: message["host"],
        }  # fmt: skip
        if "instance" in message:
            params[INSTANCE_KEY] = message["instance"]
        document = {
            "jsonrpc": "2.0", "id": message["call_id"], "method": message["method"],
            "params": params,
        }  # fmt: skip
        body = rows.dump_document(document).encode()
        timeout = urllib3.Timeout(connect=CONNECT_S, read=timeout_s)
        try:
            return self._pool(host).urlopen(
                "POST", "/", body=body, headers=self._headers, timeout=timeout,
                retries=False, redirect=False,
            )  # fmt: skip
        except _NOT_SENT as exc:
            cause = exc.__cause__ or exc
            reason = str(getattr(cause, "strerror", None) or cause)
            is_late = isinstance(cause, TimeoutError | exceptions.ConnectTimeoutError)
            if is_late and not isinstance(cause, exceptions.NewConnectionError):
                reason = f"no connection within {CONNECT_S:g} s"
            raise errors.ConductorUnreached(host=host, reason=reason) from exc
        except exceptions.ReadTimeoutError as exc:
            raise errors.ConductorSilent(
                host=host, method=message["method"], reason=f"no answer within {timeout_s:g} s"
            ) from exc

    def _pool(self, host: str) -> urllib3.HTTPConnectionPool:
        with self._mutex:
            if (pool := self._pools.get(host)) is not None:
                return pool
            name, port = address(host)
            if self._conf.client_use_ssl:
                pool = urllib3.HTTPSConnectionPool(
                    name, port, maxsize=self._connections, ca_certs=self._conf.cafile,
                    clock=self._clock,
                    cert_reqs="CERT_NONE" if self._conf.insecure else "CERT_REQUIRED",
                )  # fmt: skip
                pool.ConnectionCls = _SecureConnection
            else:
                pool = urllib3.HTTPConnectionPool(
                    name, port, maxsize=self._connections, clock=self._clock
                )
                pool.ConnectionCls = _Connection
            self._pools[host] = pool
            return pool


def address(host: str) -> tuple[str, int]:
    """Return a conductor's address: "rack-a", "rack-a:8090", "::1" or "[::1]:8090"."""
    name, colon, port = host.rpartition(":")
    if colon and port.isdecimal() and (":" not in name or name.startswith("[")):
        return name.strip("[]"), int(port)
    return host.strip("[]"), default.RPC_PORT


def _reply(host: str, message: dict[str, Any], body: bytes) -> Mapping[str, Any]:
    try:
        document = rows.load_document(body.decode())
        if "error" not in document:
            return {"result": document["result"]}
        error = document["error"]
        data = error.get("data") or {}
        failure = {
            "class": data.get("class", "Failure").removeprefix(CLASSES),
            "facts": data.get("facts", {}), "text": error["message"],
            "status": data.get("status", 500),
        }  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise errors.ConductorSilent(
            host=host, method=message["method"], reason="its answer is no JSON-RPC"
        ) from exc
    return {"failure": failure}
