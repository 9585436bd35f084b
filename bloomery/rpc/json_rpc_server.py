"""Conductors that answer JSON-RPC 2.0 over HTTP, as Ironic's do.

    POST / {"jsonrpc": "2.0", "id": "...", "method": "vif_list",
            "params": {"node_uuid": "...", "context": {...}, "rpc.version": "1.0"}}

A failure is {"error": {"code": status, "message": text, "data": {"class": ..., "facts": ...}}}.
Batches are refused, and a message without an id is run without an answer (204).

A server that stops loses no call: callers use no connection that was idle for ``REUSED_WITHIN_S``,
and the server closes those that were idle for ``_CLOSED_AFTER_S``; each answer ends its own.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from cheroot import connections, makefile, wsgi
from cheroot.ssl import Adapter

from bloomery import errors, htpasswd
from bloomery.conf import Conf
from bloomery.db import rows
from bloomery.rpc import wire
from bloomery.rpc.dispatch import Dispatcher

LOG = logging.getLogger(__name__)

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
VERSION_KEY, HOST_KEY, INSTANCE_KEY = "rpc.version", "rpc.host", "rpc.instance"
INSTANCE_HEADER: Final = "Bloomery-Instance"
CLASSES: Final = "bloomery.errors."
REUSED_WITHIN_S: Final = 1.0  # of its last answer, by a caller
_CLOSED_AFTER_S: Final = 2.0  # of its last answer, by a server that stops
_SLACK_S: Final = 2.0  # to look for those, twice a second
_IDLE_S: Final = 75  # that a connection is kept between two calls
_LOOK_S: Final = 0.01
_BACKLOG: Final = 128
_MIB: Final = 1024 * 1024
_PROTOCOL_CODES: Final = {"CallMalformed": INVALID_PARAMS, "MethodUnknown": METHOD_NOT_FOUND}
_JSON: Final = ("Content-Type", "application/json")


class JsonRpcServer:
    """Listens once it is made; answers from ``start`` until ``stop``."""

    def __init__(self, dispatcher: Dispatcher, conf: Conf) -> None:
        """Bind the address.  Raises CannotStart."""
        ours = conf.json_rpc
        strategy = ours.auth_strategy or conf.default.auth_strategy
        _check_exposure(conf, strategy)
        self._logins = _logins(conf, strategy)
        self._dispatcher = dispatcher
        self._server = _HttpServer(
            (ours.host_ip, ours.port),
            self._answer,
            numthreads=conf.default.executor_thread_pool_size,
            server_name="",
            request_queue_size=_BACKLOG,
            timeout=_IDLE_S,
        )
        self._server.keep_alive_conn_limit = None  # type: ignore[assignment]  # as many as come
        self._server.max_request_body_size = ours.max_body_size * _MIB
        self._server.ssl_adapter = self._tls = _Tls(conf) if ours.use_ssl else None
        self._server.error_log = _log  # type: ignore[method-assign]  # cheroot's way
        self._thread = threading.Thread(target=self._server.serve, name="json-rpc", daemon=True)
        self._bind(ours.host_ip, ours.port)

    def start(self) -> None:
        """Begin to answer; returns at once."""
        self._thread.start()

    def stop(self, within_s: float | None = None, *, returns: bool = False) -> None:
        """Take no more calls, and let those that run end: as long as it takes, or ``within_s``.

        Before that, calls are taken until no connection is kept: for ``_CLOSED_AFTER_S`` and
        ``_SLACK_S`` at most.  Those that are kept still are closed, whoever is about to use them.
        """
        self._server.shutdown_timeout = within_s
        self._server.stop()
        if self._thread.ident is not None:
            self._thread.join(within_s)

    def reload(self) -> None:
        """Read certificate and key again, if there are any; the file of passwords is watched."""
        if self._tls is not None:
            self._tls.reload()

    def _bind(self, host: str, port: int) -> None:
        try:
            self._server.prepare()
        except OSError as exc:
            raise errors.CannotStart(
                reason=f"cannot listen for JSON-RPC on {host} port {port}: {exc.strerror or exc}; "
                "choose another [json_rpc]host_ip or port"
            ) from exc

    # ---------------------------------------------------------------------------- one request

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        status, headers, body = self._answered(environ)
        instance = (INSTANCE_HEADER, self._dispatcher.instance)
        start_response(status, [*headers, instance, ("Content-Length", str(len(body)))])
        return [body] if body else []

    def _answered(self, environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
        if environ["REQUEST_METHOD"] != "POST":
            return "405 Method Not Allowed", [("Allow", "POST")], b""
        if refusal := self._login_refusal(environ.get("HTTP_AUTHORIZATION", "")):
            return refusal, [("WWW-Authenticate", 'Basic realm="JSON-RPC"')], b""
        if not environ.get("CONTENT_TYPE", "").startswith("application/json"):
            return "415 Unsupported Media Type", [], b""
        answer = self._reply(environ["wsgi.input"].read())
        if answer is None:
            return "204 No Content", [], b""
        return "200 OK", [_JSON], rows.dump_document(answer).encode()

    def _login_refusal(self, header: str) -> str | None:
        if self._logins is None:
            return None
        try:
            self._logins.user(header)
        except htpasswd.Unauthorized:
            return "401 Unauthorized"
        except htpasswd.Malformed:
            return "400 Bad Request"
        except htpasswd.Busy:
            return "503 Service Unavailable"
        return None

    def _reply(self, body: bytes) -> dict[str, Any] | None:
        """Return the answer to a body; None: the caller wants none."""
        try:
            document = rows.load_document(body.decode())
        except (ValueError, RecursionError):
            return _refused(None, PARSE_ERROR, "cannot parse the call: it is no JSON")
        if fault := _fault_of(document):
            return _refused(None, *fault)
        reply = self._dispatcher.dispatch(self._message(document))
        return _answer_to(document["id"], reply) if "id" in document else None

    def _message(self, document: dict[str, Any]) -> dict[str, Any]:
        params = dict(document["params"])
        message = {
            "method": document["method"],
            "call_id": str(document.get("id", "")),
            "version": params.pop(VERSION_KEY, "1.0"),
            "host": params.pop(HOST_KEY, self._dispatcher.host),
            "context": params.pop("context", None),
        }
        if (instance := params.pop(INSTANCE_KEY, None)) is not None:
            message["instance"] = instance
        return message | {"arguments": params}


def _fault_of(document: Any) -> tuple[int, str] | None:
    """Return code and sentence where a document is no call."""
    if isinstance(document, list):
        return INVALID_REQUEST, "cannot run a batch: send one call at a time"
    if not isinstance(document, dict) or document.get("jsonrpc") != "2.0":
        return INVALID_REQUEST, 'cannot read the call: it is no object with "jsonrpc": "2.0"'
    if not isinstance(document.get("method"), str):
        return INVALID_REQUEST, "cannot read the call: it names no method"
    if not isinstance(document.get("params"), dict):
        return INVALID_PARAMS, "cannot read the call: params is no object"
    return None


def _refused(call_id: Any, code: int, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "error": {"code": code, "message": text}}


def _answer_to(call_id: Any, reply: wire.Reply) -> dict[str, Any]:
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": call_id}
    if "failure" not in reply:
        return answer | {"result": reply["result"]}
    failure = reply["failure"]
    code = _PROTOCOL_CODES.get(failure["class"], failure["status"])
    data = {
        "class": f"{CLASSES}{failure['class']}", "facts": failure["facts"],
        "status": failure["status"],
    }  # fmt: skip
    return answer | {"error": {"code": code, "message": failure["text"], "data": data}}


# ------------------------------------------------------------------------------- who may call


def _logins(conf: Conf, strategy: str) -> htpasswd.Checker | None:
    if strategy == "noauth":
        return None
    if strategy != "http_basic":
        raise errors.CannotStart(
            reason=f"cannot use auth_strategy = {strategy} for JSON-RPC: set "
            "[json_rpc]auth_strategy = http_basic"
        )
    path = Path(conf.json_rpc.http_basic_auth_user_file)
    return htpasswd.Checker(htpasswd.PasswordFile(path, "[json_rpc]http_basic_auth_user_file"))


def _check_exposure(conf: Conf, strategy: str) -> None:
    """Without logins, only this machine may call, unless the operator says otherwise."""
    host = conf.json_rpc.host_ip
    if strategy != "noauth" or conf.json_rpc.insecure_listen or _is_loopback(host):
        return
    raise errors.CannotStart(
        reason=f"cannot listen for JSON-RPC on {host} with auth_strategy noauth: whoever reaches "
        "it would order machines about; set [json_rpc]auth_strategy = http_basic, or "
        "[json_rpc]host_ip = 127.0.0.1, or [json_rpc]insecure_listen = true if the network is "
        "yours alone"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _HttpServer(wsgi.Server):
    """``closed_after_s``: how long a kept connection may be idle while the server stops."""

    closed_after_s = _CLOSED_AFTER_S
    _connections: Any

    def prepare(self) -> None:
        super().prepare()
        self._connections.close()
        self._connections = _Connections(self)

    def stop(self) -> None:
        """Part with the callers, close the listener, and let calls that run end.

        How long a connection was idle is told by the time of day, which may be set back meanwhile.
        """
        self.keep_alive_conn_limit = -1  # each answer ends its own
        self.timeout = self.closed_after_s
        give_up_at = time.monotonic() + self.closed_after_s + _SLACK_S
        while self._connections.has_kept and time.monotonic() < give_up_at:
            time.sleep(_LOOK_S)
        if self._connections.has_kept:
            LOG.warning("json-rpc: stopping: closes connections that callers may still use")
        super().stop()

    @staticmethod
    def bind_socket(socket_: socket.socket, bind_addr: tuple[str, int]) -> socket.socket:
        """Bind; a socket that cannot be bound is closed, which cheroot leaves to chance."""
        try:
            socket_.bind(bind_addr)
        except OSError:
            socket_.close()
            raise
        return socket_


class _Connections(connections.ConnectionManager):
    _selector: Any
    _num_connections: int
    _from_server_socket: Any

    @property
    def has_kept(self) -> bool:
        """Is a connection between two calls?"""
        return self._num_connections > 0

    def stop(self) -> None:
        """End the loop and the listener; who was let in by then is heard."""
        super().stop()
        while ready := list(self._selector.select(0)):
            for number, connection in ready:
                self._hear(number, connection)
        self.server.socket.close()

    def _hear(self, number: int, connection: Any) -> None:
        if connection is self.server:
            connection = self._from_server_socket(self.server.socket)
        else:
            self._selector.unregister(number)
        if connection is not None:
            self.server.process_conn(connection)


class _Tls(Adapter):
    """TLS whose handshake is made by the thread that reads the call, not by the accepting one."""

    def __init__(self, conf: Conf) -> None:
        """Raises CannotStart."""
        certificate = conf.json_rpc.cert_file or conf.ssl.cert_file
        key = conf.json_rpc.key_file or conf.ssl.key_file
        if not certificate or not key:
            raise errors.CannotStart(
                reason="cannot speak TLS without [json_rpc]cert_file and key_file: set them, or "
                "unset [json_rpc]use_ssl"
            )
        super().__init__(certificate, key)
        self.context = self._new_context()

    def _new_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.private_key, password="")
        except (OSError, ValueError) as exc:
            raise errors.CannotStart(
                reason=f"cannot use [json_rpc]cert_file {self.certificate} with key_file "
                f"{self.private_key}: {exc}"
            ) from exc
        return context

    def reload(self) -> None:
        """Read the files again; what cannot be used leaves those of before in force."""
        try:
            self.context = self._new_context()
        except errors.CannotStart as exc:
            LOG.warning("certificates of JSON-RPC were not read again: %s", exc)
        else:
            LOG.info("certificates of JSON-RPC were read again")

    def bind(self, sock: socket.socket) -> socket.socket:
        return sock

    def wrap(self, sock: socket.socket) -> tuple[ssl.SSLSocket, dict[str, str]]:
        secure = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        return secure, self.get_environ(secure)

    def get_environ(self, sock: ssl.SSLSocket | None = None) -> dict[str, str]:
        return {"wsgi.url_scheme": "https", "HTTPS": "on"}

    def makefile(self, sock: ssl.SSLSocket, mode: str = "r", bufsize: int = -1) -> Any:
        return makefile.MakeFile(sock, mode, bufsize)


def _log(msg: str = "", level: int = logging.WARNING, traceback: bool = False) -> None:
    LOG.log(level, "%s", msg, exc_info=traceback)
