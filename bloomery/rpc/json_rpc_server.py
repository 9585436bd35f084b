"""JSON-RPC 2.0 server of conductors over HTTP, as in Ironic.

    POST / {"jsonrpc": "2.0", "id": "...", "method": "vif_list",
            "params": {"node_uuid": "...", "context": {...}, "rpc.version": "1.0"}}

A failure is {"error": {"code": status, "message": text, "data": {"class": ..., "facts": ...}}}.
Batches are refused, and a message without an id is run without an answer (204).

A stopping server loses no call: callers reuse no connection that was idle for ``REUSED_WITHIN_S``,
and the server accepts calls on those that were idle for less than ``_KEPT_S``; each answer closes
its connection.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from bloomery import errors, htpasswd
from bloomery.conf import Conf
from bloomery.db import rows
from bloomery.http_server import bodies, server, tls
from bloomery.http_server.connections import Limits
from bloomery.http_server.login import HttpBasic
from bloomery.http_server.server import Server, is_loopback, most_connections
from bloomery.rpc.dispatch import Dispatcher

LOG = logging.getLogger(__name__)

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
VERSION_KEY, HOST_KEY, INSTANCE_KEY = "rpc.version", "rpc.host", "rpc.instance"
INSTANCE_HEADER: Final = "Bloomery-Instance"
CLASSES: Final = "bloomery.errors."
REUSED_WITHIN_S: Final = 1.0  # after its last answer, by a caller
_KEPT_S: Final = 2.0  # after its last answer, by a stopping server
_MOST_CONNECTIONS: Final = 1000  # leaves descriptors for BMCs
_MIB: Final = 1024 * 1024
_PROTOCOL_CODES: Final = {"CallMalformed": INVALID_PARAMS, "MethodUnknown": METHOD_NOT_FOUND}
_LOGIN_REFUSALS: Final[dict[type[Exception], str]] = {
    htpasswd.Unauthorized: "401 Unauthorized",
    htpasswd.Malformed: "400 Bad Request",
    htpasswd.Busy: "503 Service Unavailable",
}
_JSON: Final = ("Content-Type", "application/json")


class JsonRpcServer:
    """Listens from its construction; answers from ``start`` until ``stop``."""

    is_connected = None

    def __init__(self, dispatcher: Dispatcher, conf: Conf) -> None:
        """Bind the address.  Raises CannotStart."""
        ours = conf.json_rpc
        strategy = ours.auth_strategy or conf.default.auth_strategy
        secure = tls.Settings(
            group="json_rpc", switch="use_ssl", cert_file=ours.cert_file, key_file=ours.key_file,
            ssl=conf.ssl,
        )  # fmt: skip
        settings = server.Settings(
            host=ours.host_ip, port=ours.port, threads=conf.default.executor_thread_pool_size,
            name="json-rpc", advice="choose another [json_rpc]host_ip or port",
            tls=secure if ours.use_ssl else None,
        )  # fmt: skip
        app = _Application(dispatcher, _logins(conf, strategy), ours.max_body_size * _MIB)
        most = min(most_connections(), _MOST_CONNECTIONS)
        self._server = Server(app, settings, Limits(connections=most, kept_s=_KEPT_S))
        name = dispatcher.host.removesuffix(f":{ours.port}")
        if is_loopback(ours.host_ip) and not is_loopback(name):
            LOG.warning(
                "json-rpc: no other machine can call conductor %s: it listens on "
                "[json_rpc]host_ip = %s", dispatcher.host, ours.host_ip,
            )  # fmt: skip

    def start(self) -> None:
        """Start the threads; returns at once."""
        self._server.start()

    @property
    def address(self) -> tuple[str, int]:
        return self._server.address

    def begin_stop(self) -> None:
        """As ``stop``, but returns at once."""
        self._server.begin_stop()

    def stop(self, within_s: float | None = None, *, returns: bool = False) -> None:
        """Accept no more connections, and let calls end, within ``within_s`` if set.

        Existing connections may call for ``_KEPT_S`` after their last answer.
        """
        self._server.stop(within_s)

    def reload(self) -> None:
        """Reload certificate and key, if any; the password file is watched."""
        self._server.reload()


class _Application:
    """The WSGI application: login, then body, then call."""

    def __init__(self, dispatcher: Dispatcher, logins: HttpBasic | None, most: int) -> None:
        """``most``: the length of a body, in bytes."""
        self._dispatcher, self._logins, self._most = dispatcher, logins, most

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Raises Deferred, Awaited: retry when the login is checked, or the body has arrived."""
        status, headers, body = self._answered(environ)
        start_response(status, [*headers, (INSTANCE_HEADER, self._dispatcher.instance)])
        return [body]

    def _answered(self, environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
        if environ["REQUEST_METHOD"] != "POST":
            return "405 Method Not Allowed", [("Allow", "POST")], b""
        try:
            if self._logins is not None:
                self._logins.user(environ)
        except tuple(_LOGIN_REFUSALS) as exc:
            status = _LOGIN_REFUSALS[type(exc)]
            return status, [("WWW-Authenticate", 'Basic realm="JSON-RPC"')], b""
        if not environ.get("CONTENT_TYPE", "").startswith("application/json"):
            return "415 Unsupported Media Type", [], b""
        try:
            answer = self._reply(bodies.read_bytes(environ, self._most))
        except bodies.TooLarge:
            return "413 Content Too Large", [], b""
        if answer is None:
            return "204 No Content", [], b""
        return "200 OK", [_JSON], rows.dump_document(answer).encode()

    def _reply(self, body: bytes) -> dict[str, Any] | None:
        """Return the answer to a body, or None if the caller wants none."""
        try:
            document = rows.load_document(body.decode())
        except (ValueError, RecursionError):
            return _refused(None, PARSE_ERROR, "cannot parse the call: it is no JSON")
        if fault := _fault_of(document):
            return _refused(None, *fault)
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
        reply = self._dispatcher.dispatch(message | {"arguments": params})
        if "id" not in document:
            return None
        if "failure" not in reply:
            return {"jsonrpc": "2.0", "id": document["id"], "result": reply["result"]}
        failure = reply["failure"]
        code = _PROTOCOL_CODES.get(failure["class"], failure["status"])
        answer = _refused(document["id"], code, failure["text"])
        answer["error"]["data"] = {
            "class": f"{CLASSES}{failure['class']}", "facts": failure["facts"],
            "status": failure["status"],
        }  # fmt: skip
        return answer


def _fault_of(document: Any) -> tuple[int, str] | None:
    """Return code and sentence of a malformed call."""
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


# -------------------------------------------------------------------------------------- login


def _logins(conf: Conf, strategy: str) -> HttpBasic | None:
    """Return the logins of callers; without logins the server listens on loopback alone.

    [json_rpc]insecure_listen allows more.  Raises CannotStart.
    """
    ours = conf.json_rpc
    if strategy == "noauth":
        if ours.insecure_listen or is_loopback(ours.host_ip):
            return None
        raise errors.CannotStart(
            reason=f"cannot listen for JSON-RPC on {ours.host_ip} with auth_strategy noauth: "
            "whoever reaches it would order machines about; set [json_rpc]auth_strategy = "
            "http_basic, or [json_rpc]host_ip = 127.0.0.1, or [json_rpc]insecure_listen = true if "
            "the network is yours alone"
        )
    if strategy != "http_basic":
        raise errors.CannotStart(
            reason=f"cannot use auth_strategy = {strategy} for JSON-RPC: set "
            "[json_rpc]auth_strategy = http_basic"
        )
    path = Path(ours.http_basic_auth_user_file)
    return HttpBasic(path, option="[json_rpc]http_basic_auth_user_file")
