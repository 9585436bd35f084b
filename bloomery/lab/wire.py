"""HTTP in front of a BMC: authentication, ETags, faults, and the ``/lab`` pages.

GET|POST|DELETE /lab/faults      see ``faults``
GET /lab, /lab/events            what happens in the rack: a page, JSON
GET /lab/systems/ID              the true state of a machine
GET /lab/any.iso                 an ISO for a deployment, of zeros
GET /lab/stats                   counters of requests, connections and logins
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import json
import logging
import os
import re
import socket
import ssl
import struct
import sys
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, Final

from bloomery.lab import overview, refusal, resources, routing
from bloomery.lab.bmc import ROOT, SimulatedBmc
from bloomery.lab.model import merged
from bloomery.lab.refusal import Refusal
from bloomery.lab.routing import Ask, Reply
from bloomery.lab.timers import draw

LOG = logging.getLogger(__name__)

ISO: Final = "/lab/any.iso"
_OPEN: Final = ("", "/redfish", ROOT)
_LOGIN: Final = f"{ROOT}/SessionService/Sessions"
_HTML: Final = b"<html>Please wait...</html>"


class Server(http.server.ThreadingHTTPServer):
    """One listening socket in front of one BMC."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], bmc: SimulatedBmc) -> None:
        self.bmc = bmc
        self.overview: Callable[[], dict[str, Any]] = dict
        self._open: set[socket.socket] = set()
        self._mutex = threading.Lock()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, Handler)

    @property
    def netloc(self) -> str:
        """The address and port, as URLs write them."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._mutex:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._mutex:
            self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Close the clients' connections."""
        with self._mutex:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""
        if not isinstance(sys.exc_info()[1], OSError):
            LOG.error("the lab's server broke", exc_info=True)  # noqa: LOG014  called by one


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Server

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.bmc.rules.idle_s)
        self.server.bmc.count("connections")
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
            self.server.bmc.count("handshakes")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its parent's name
        """Log nothing."""

    def do_any(self) -> None:
        self.server.bmc.count("requests")
        path = self.path.partition("?")[0]
        try:
            raw = self._read_body()
            if path == "/lab":
                self._send(200, overview.PAGE.encode(), {"Content-Type": "text/html"})
            elif path == ISO:
                self._send(200, bytes(2048), {"Content-Type": "application/octet-stream"})
            elif path.startswith("/lab/"):
                self._answer(self._lab(path, raw))
            else:
                self._answer_faulty(path, raw)
        except Refusal as no:
            self._answer(_refused(no))

    def _answer_faulty(self, path: str, raw: bytes) -> None:
        """Answer, subject to the faults that hit this request."""
        bmc = self.server.bmc
        delay_s, patches, fault = bmc.faults.take(self.command, path)
        bmc.stopping.wait(delay_s + draw(bmc.rules.late_s, bmc.random))
        kind = fault.get("kind")
        misbehaves = kind in ("status", "nojson", "hang", "reset")
        if misbehaves:
            self.close_connection = kind != "status"
        if kind == "status":
            body = fault.get("body", refusal.document("lab fault"))
            self._answer(Reply(fault.get("status", 500), body, fault.get("headers") or {}))
        elif kind == "nojson":
            self._send(200, _HTML, {"Content-Type": "text/html"})
        elif kind == "hang":
            bmc.stopping.wait(fault.get("seconds", 60))
        elif kind == "reset":
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            os.close(self.connection.detach())
        if misbehaves:
            return
        if kind == "expire":
            bmc.sessions.clear()
        try:
            ask = self._admitted(path, raw, stuck=kind == "stuck")
            reply = self._put_off(ask, fault) if kind in ("later", "task") else self._serve(ask)
        except Refusal as no:
            reply = _refused(no)
        if kind == "after":
            reply = Reply(fault.get("status", 500), refusal.document("late fault"))
        if patches and reply.status == 200 and reply.document is not None:
            document = functools.reduce(merged, patches, reply.document)
            headers = {"ETag": etag(reply.document), **reply.headers}  # of the true document
            reply = Reply(200, document, headers)
        self._answer(reply, cut=kind == "truncate")

    def _put_off(self, ask: Ask, fault: Mapping[str, Any]) -> Reply:
        """Answer as if the request were carried out; a task does so, or fails, after a time."""
        bmc = self.server.bmc

        def carry_out() -> None:
            if "message" in fault:
                raise Refusal(400, fault["message"])
            with bmc.lock:
                routing.serve(bmc, ask)

        task = bmc.begin(f"{ask.method} {ask.path}", fault.get("seconds", 5), carry_out)
        if fault["kind"] == "task":
            return resources.services.accepted(task)
        return Reply(fault.get("status", 204))

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = do_any  # noqa: N815

    def _read_body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not re.fullmatch("[0-9]{1,8}", length):
            self.close_connection = True  # the body's end is unknown
            raise Refusal(411, "a plain Content-Length is needed")
        return self.rfile.read(int(length))

    def _admitted(self, path: str, raw: bytes, *, stuck: bool) -> Ask:
        """Return the request of a client that may make it."""
        if path.rstrip("/") not in _OPEN and (self.command, path.rstrip("/")) != ("POST", _LOGIN):
            token, basic = self.headers.get("X-Auth-Token"), self.headers.get("Authorization", "")
            self.server.bmc.admit(token, basic)
        try:
            body = json.loads(raw) if raw else {}
        except (ValueError, RecursionError):
            raise Refusal(400, "malformed JSON", "MalformedJSON") from None
        if not isinstance(body, dict):
            raise Refusal(400, "the body is not a JSON object", "MalformedJSON")
        return Ask(method=self.command, path=path, body=body, stuck=stuck)

    def _serve(self, ask: Ask) -> Reply:
        """Serve a read, with $expand, or a change, whose If-Match is checked."""
        bmc = self.server.bmc
        if ask.path.rstrip("/") == "/redfish":
            return Reply(200, {"v1": f"{ROOT}/"})
        if ask.method not in ("PATCH", "PUT"):
            reply = routing.serve(bmc, ask)
            query = urllib.parse.parse_qs(self.path.partition("?")[2])
            if "$expand" not in query or ask.method not in ("GET", "HEAD"):
                return reply
            if not bmc.rules.expands:
                raise Refusal(501, "$expand is not supported", "QueryNotSupported")
            return routing.expanded(bmc, reply)
        if_match = self.headers.get("If-Match")
        with bmc.lock:  # the check and the change are atomic
            if if_match is not None or bmc.rules.require_etag:
                current = etag(routing.serve(bmc, Ask(method="GET", path=ask.path)).document or {})
                strong_only = bmc.view is not None and bmc.view.model.weak_etags
                tags = re.findall('(?:W/)?"[^"]*"', if_match or "")
                accepted = tags if strong_only else [tag.removeprefix("W/") for tag in tags]
                if if_match != "*" and current not in accepted:
                    raise Refusal(
                        412, "If-Match is missing or does not match", "PreconditionFailed",
                        {"ETag": current},
                    )  # fmt: skip
            return routing.serve(bmc, ask)

    def _answer(self, reply: Reply, *, cut: bool = False) -> None:
        if reply.status == 401:
            self.server.bmc.count("refused")
        data = b"" if reply.document is None else json.dumps(reply.document).encode()
        headers = {"Content-Type": "application/json", "OData-Version": "4.0"}
        is_document = isinstance(reply.document, dict) and "error" not in reply.document
        if reply.status == 200 and reply.document and is_document:
            view = self.server.bmc.view
            weak = "W/" if view is not None and view.model.weak_etags else ""
            headers["ETag"] = weak + etag(reply.document)
        self.close_connection = self.close_connection or cut
        self._send(reply.status, data, headers | dict(reply.headers), cut=cut)

    def _send(
        self,
        status: int,
        data: bytes,
        headers: Mapping[str, str],
        *,
        cut: bool = False,
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")  # else clients pool a closing connection
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if cut else data)

    def _lab(self, path: str, raw: bytes) -> Reply:
        bmc = self.server.bmc
        if path == "/lab/faults":
            if self.command == "POST":
                bmc.faults.add_json(raw)
            elif self.command == "DELETE":
                bmc.faults.clear()
            return Reply(200, {"faults": bmc.faults.shown()})
        ident = path.removeprefix("/lab/systems/")
        if ident in bmc.systems:
            return Reply(200, bmc.systems[ident].shown())
        if path == "/lab/events":
            return Reply(200, self.server.overview())
        if path == "/lab/stats":
            now = {"systems": len(bmc.systems), "sessions": len(bmc.live_sessions())}
            return Reply(200, bmc.counted() | now)
        raise refusal.missing(
            f"{path}; here are /lab, /lab/events, /lab/faults, /lab/stats and /lab/systems/ID"
        )


def _refused(no: Refusal) -> Reply:
    return Reply(no.status, no.document, no.headers)


def etag(document: Mapping[str, Any]) -> str:
    same = {key: value for key, value in document.items() if key != "DateTime"}
    digest = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
    return f'"{digest[:16]}"'
