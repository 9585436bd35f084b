"""HTTP in front of BMCs: authentication, ETags, faults, and the ``/lab`` pages.

GET|POST|DELETE /lab/faults      see ``faults``
GET /lab, /lab/events            what happens in the rack: a page, JSON
GET /lab/systems/ID              the true state of a machine
GET /lab/switch                  the true state of a switch
GET /lab/any.iso                 an ISO for a deployment, of zeros
GET /lab/stats                   counters of requests, connections and logins

One event loop serves all BMCs of a rack: an open connection costs no thread, and a late answer is a
timer.  A BMC that downloads images answers in threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import http.client
import json
import logging
import re
import socket
import ssl
import struct
import threading
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bloomery.lab import overview, refusal, resources, routing
from bloomery.lab.bmc import ROOT, SimulatedBmc
from bloomery.lab.model import merged
from bloomery.lab.refusal import Refusal
from bloomery.lab.routing import Ask, Reply
from bloomery.lab.switch import SimulatedSwitch
from bloomery.lab.timers import draw

LOG = logging.getLogger(__name__)

ISO: Final = "/lab/any.iso"
_OPEN: Final = ("", "/redfish", ROOT)
_LOGIN: Final = f"{ROOT}/SessionService/Sessions"
_HTML: Final = b"<html>Please wait...</html>"
_MOST_HEAD: Final = 65536  # bytes of a request's line and headers
_BACKLOG: Final = 512
_LENGTH: Final = re.compile("[0-9]{1,8}")
_CHUNK: Final = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """``headers`` by names in small letters; ``closes``: the connection ends with the answer."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    closes: bool = False

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


class Server:
    """One listening socket in front of BMCs, which differ by the address that is called.

    ``bmcs``: by address; the only one is behind every address.  Raises OSError.
    """

    def __init__(self, address: tuple[str, int], bmcs: Mapping[str, SimulatedBmc]) -> None:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket = socket.create_server(address, family=family, backlog=_BACKLOG)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self.bmcs = bmcs
        self.overview: Callable[[], dict[str, Any]] = dict
        self.open: set[Connection] = set()

    def start(self, loop: asyncio.AbstractEventLoop, tls: ssl.SSLContext | None) -> None:
        loop.add_reader(self._socket, self._accept, loop, tls)

    def _accept(self, loop: asyncio.AbstractEventLoop, tls: ssl.SSLContext | None) -> None:
        with contextlib.suppress(OSError):  # the client has gone, or no more are there
            for _ in range(_BACKLOG):
                client, _address = self._socket.accept()
                here = client.getsockname()[0]
                bmcs = self.bmcs
                bmc = next(iter(bmcs.values())) if len(bmcs) == 1 else bmcs.get(here)
                if bmc is None:  # an address without a BMC
                    client.close()
                    continue
                client.setblocking(False)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if tls is not None:
                    client = tls.wrap_socket(
                        client, server_side=True, do_handshake_on_connect=False
                    )
                self.open.add(Connection(self, loop, client, bmc))

    def hang_up(self) -> None:
        """End the clients' connections, from any thread."""
        for connection in list(self.open):
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """Close the port and the connections.  The loop has ended."""
        self._socket.close()
        for connection in list(self.open):
            connection.socket.close()
        self.open.clear()


class Connection:
    """One connection; its requests are answered one after another."""

    def __init__(
        self,
        server: Server,
        loop: asyncio.AbstractEventLoop,
        client: socket.socket,
        bmc: SimulatedBmc,
    ) -> None:
        self.server, self.socket, self.bmc, self._loop = server, client, bmc, loop
        self._received, self._unsent = bytearray(), b""
        self._is_new, self._is_busy, self._continues, self._closes = True, False, False, False
        self._used_at = loop.time()
        self._idle = loop.call_later(bmc.rules.idle_s, self._close_if_idle)
        bmc.count("connections")
        loop.add_reader(client, self._read)

    def _close(self, *, resets: bool = False) -> None:
        """Close the connection; ``resets``: without telling the client its end."""
        if self not in self.server.open:
            return
        self.server.open.discard(self)
        self._idle.cancel()
        self._loop.remove_reader(self.socket)
        self._loop.remove_writer(self.socket)
        if not resets:
            with contextlib.suppress(OSError):  # unread data would reset the connection
                self.socket.shutdown(socket.SHUT_WR)
                self.socket.recv(_CHUNK)
        self.socket.close()

    def _close_if_idle(self) -> None:
        """Close a connection that was idle for too long, or look again when it may be."""
        idle_s = self.bmc.rules.idle_s
        left_s = idle_s if self._is_busy else self._used_at + idle_s - self._loop.time()
        if left_s > 0:
            self._idle = self._loop.call_later(left_s, self._close_if_idle)
        else:
            self._close()

    def _read(self) -> None:
        """Shake hands; then take what has come."""
        try:
            if self._is_new and isinstance(self.socket, ssl.SSLSocket):
                self.socket.do_handshake()
                self.bmc.count("handshakes")
            self._is_new = False
            data = self.socket.recv(_CHUNK)
            while isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
                data += self.socket.recv(_CHUNK)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
            return
        except OSError:
            data = b""
        if not data:
            self._close()
            return
        self._received += data
        self._used_at = self._loop.time()
        self._take()

    def _write(self, data: bytes) -> None:
        """Send what the socket takes now, and the rest when it takes more."""
        self._unsent += data
        try:
            while self._unsent:
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
            self._loop.add_writer(self.socket, self._write, b"")
            return
        except OSError:
            self._close()
            return
        self._loop.remove_writer(self.socket)
        if self._closes:
            self._close()

    # ------------------------------------------------------------------------------ requests

    def _take(self) -> None:
        """Begin the next request if it is complete, and no other is being answered."""
        end = self._received.find(b"\r\n\r\n")
        if self._is_busy or self._closes:
            return
        if end < 0 and self._received[:1].isalpha() and len(self._received) < _MOST_HEAD:
            return
        first, *lines = self._received[: max(end, 0)].decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        words = first.split()
        length = headers.get("content-length", "0")
        if len(words) != 3 or "transfer-encoding" in headers or not _LENGTH.fullmatch(length):
            request = Request(method="GET", target="", headers=headers, closes=True)
            status = 400 if len(words) != 3 else 411  # TLS at a port of plain HTTP is no request
            reason = "a request line and a plain Content-Length are needed"
            self._answer(request, Reply(status, refusal.document(reason)))
            return
        start, stop = end + 4, end + 4 + int(length)
        if len(self._received) < stop:
            if headers.get("expect", "").lower() == "100-continue" and not self._continues:
                self._continues = True
                self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return
        closes = headers.get("connection", "").lower() == "close" or words[2] == "HTTP/1.0"
        body = bytes(self._received[start:stop])
        del self._received[:stop]
        self._is_busy, self._continues = True, False
        self.serve(Request(
            method=words[0], target=words[1], headers=headers, body=body, closes=closes,
        ))  # fmt: skip

    def serve(self, request: Request) -> None:
        """Answer a request, after the time that the BMC and its faults take."""
        bmc, path = self.bmc, request.path
        bmc.count("requests")
        if path == "/lab":
            self._send(request, 200, overview.PAGE.encode(), {"Content-Type": "text/html"})
        elif path == ISO:
            kind = {"Content-Type": "application/octet-stream"}
            self._send(request, 200, bytes(2048), kind)
        elif path.startswith("/lab/"):
            self._answer(request, _reply(self._lab, request))
        else:
            delay_s, patches, fault = bmc.faults.take(request.method, path)
            delay_s += draw(bmc.rules.late_s, bmc.random)
            if delay_s > 0:
                self._loop.call_later(delay_s, self._serve_faulty, request, patches, fault)
            else:
                self._serve_faulty(request, patches, fault)

    def _serve_faulty(
        self, request: Request, patches: Sequence[dict[str, Any]], fault: Mapping[str, Any]
    ) -> None:
        """Answer, subject to the faults that hit this request."""
        if self not in self.server.open:
            return  # the client has gone
        match fault.get("kind"):
            case "status":
                body = fault.get("body", refusal.document("lab fault"))
                headers = fault.get("headers") or {}
                self._answer(request, Reply(fault.get("status", 500), body, headers))
            case "nojson":
                closing = replace(request, closes=True)
                self._send(closing, 200, _HTML, {"Content-Type": "text/html"})
            case "hang":
                self._loop.call_later(fault.get("seconds", 60), self._close)
            case "reset":
                linger = struct.pack("ii", 1, 0)
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self._close(resets=True)
            case kind:
                cut = kind == "truncate"
                work = functools.partial(self._carry_out, request, patches, fault)
                if not any(system.spec.fetch for system in self.bmc.systems.values()):
                    self._answer(request, work(), cut=cut)
                    return

                def work_in_thread() -> None:
                    reply = work()
                    with contextlib.suppress(RuntimeError):  # the rack has stopped
                        self._loop.call_soon_threadsafe(
                            functools.partial(self._answer, request, reply, cut=cut)
                        )

                threading.Thread(target=work_in_thread, daemon=True).start()

    def _carry_out(
        self, request: Request, patches: Sequence[dict[str, Any]], fault: Mapping[str, Any]
    ) -> Reply:
        """Return the answer of the BMC, with the faults of what it says."""
        kind = fault.get("kind")
        if kind == "expire":
            self.bmc.sessions.clear()
        reply = _reply(self._serve_admitted, request, fault)
        if kind == "after":
            reply = Reply(fault.get("status", 500), refusal.document("late fault"))
        if patches and reply.status == 200 and reply.document is not None:
            document = functools.reduce(merged, patches, reply.document)
            headers = {"ETag": etag(reply.document), **reply.headers}  # of the true document
            reply = Reply(200, document, headers)
        return reply

    def _serve_admitted(self, request: Request, fault: Mapping[str, Any]) -> Reply:
        """Serve the request of a client that may make it, now or as a task.  Raises Refusal."""
        bmc, path = self.bmc, request.path.rstrip("/")
        is_open = path in _OPEN and not self.bmc.rules.root_needs_login
        if not is_open and (request.method, path) != ("POST", _LOGIN):
            headers = request.headers
            user = bmc.admit(headers.get("x-auth-token"), headers.get("authorization", ""))
            resources.accounts.require_changed(bmc, user, request.method, path)
        try:
            body = json.loads(request.body) if request.body else {}
        except (ValueError, RecursionError):
            raise Refusal(400, "malformed JSON", "MalformedJSON") from None
        if not isinstance(body, dict):
            raise Refusal(400, "the body is not a JSON object", "MalformedJSON")
        kind = fault.get("kind")
        query = dict(urllib.parse.parse_qsl(request.target.partition("?")[2]))
        ask = Ask(
            method=request.method, path=request.path, query=query, body=body,
            stuck=kind == "stuck",
        )  # fmt: skip
        if kind not in ("later", "task"):
            return self._serve(request, ask)

        def carry_out() -> None:
            if "message" in fault:
                raise Refusal(400, fault["message"])
            with bmc.lock:
                _route(bmc, ask)

        task = bmc.begin(f"{ask.method} {ask.path}", fault.get("seconds", 5), carry_out)
        if kind == "task":
            return resources.services.accepted(task)
        return Reply(fault.get("status", 204))

    def _serve(self, request: Request, ask: Ask) -> Reply:
        """Serve a read, with $expand, or a change, whose If-Match is checked."""
        bmc = self.bmc
        if ask.path.rstrip("/") == "/redfish":
            return Reply(200, {"v1": f"{ROOT}/"})
        if ask.method not in ("PATCH", "PUT"):
            reply = _route(bmc, ask)
            if "$expand" not in ask.query or ask.method not in ("GET", "HEAD"):
                return reply
            if not bmc.rules.expands:
                raise Refusal(501, "$expand is not supported", "QueryNotSupported")
            return routing.expanded(bmc, reply)
        if_match = request.headers.get("if-match")
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
            return _route(bmc, ask)

    def _lab(self, request: Request) -> Reply:
        bmc, path = self.bmc, request.path
        if path == "/lab/faults":
            if request.method == "POST":
                bmc.faults.add_json(request.body)
            elif request.method == "DELETE":
                bmc.faults.clear()
            return Reply(200, {"faults": bmc.faults.shown()})
        ident = path.removeprefix("/lab/systems/")
        if ident in bmc.systems:
            return Reply(200, bmc.systems[ident].shown())
        if path == "/lab/switch" and isinstance(bmc, SimulatedSwitch):
            return Reply(200, bmc.shown())
        if path == "/lab/events":
            return Reply(200, self.server.overview())
        if path == "/lab/stats":
            now = {"systems": len(bmc.systems), "sessions": len(bmc.live_sessions())}
            return Reply(200, bmc.counted() | now)
        raise refusal.missing(
            f"{path}; here are /lab, /lab/events, /lab/faults, /lab/stats and /lab/systems/ID"
        )

    # ------------------------------------------------------------------------------- answers

    def _answer(self, request: Request, reply: Reply, *, cut: bool = False) -> None:
        if reply.status == 401:
            self.bmc.count("refused")
        data = b"" if reply.document is None else json.dumps(reply.document).encode()
        headers = {"Content-Type": "application/json", "OData-Version": "4.0"}
        is_document = isinstance(reply.document, dict) and "error" not in reply.document
        if reply.status == 200 and reply.document and is_document and "ETag" not in reply.headers:
            view = self.bmc.view
            weak = "W/" if view is not None and view.model.weak_etags else ""
            headers["ETag"] = weak + etag(reply.document)
        self._send(request, reply.status, data, headers | dict(reply.headers), cut=cut)

    def _send(
        self,
        request: Request,
        status: int,
        data: bytes,
        headers: Mapping[str, str],
        *,
        cut: bool = False,
    ) -> None:
        """Send an answer, and begin the request that came meanwhile.  ``cut``: half of it."""
        closes = request.closes or cut
        lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, '')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if status != 204:
            lines.append(f"Content-Length: {len(data)}")
        if closes:
            lines.append("Connection: close")  # else clients pool a closing connection
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        body = b"" if request.method == "HEAD" else data[: len(data) // 2] if cut else data
        self._used_at, self._is_busy, self._closes = self._loop.time(), False, closes
        self._write(head + body)
        if self._received:
            self._loop.call_soon(self._take)


def _reply(serve: Callable[..., Reply], *args: Any) -> Reply:
    """Return what is served, or its refusal."""
    try:
        return serve(*args)
    except Refusal as no:
        return Reply(no.status, no.document, no.headers)


def _route(bmc: SimulatedBmc, ask: Ask) -> Reply:
    return bmc.serve(ask) if isinstance(bmc, SimulatedSwitch) else routing.serve(bmc, ask)


def etag(document: Mapping[str, Any]) -> str:
    same = {key: value for key, value in document.items() if key != "DateTime"}
    digest = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
    return f'"{digest[:16]}"'
