"""Conversion between messages and WSGI: environment in, bytes out."""

from __future__ import annotations

import errno
import functools
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

import orjson

from bloomery.http_server.connections import NOTHING
from bloomery.http_server.login import DEFERRED
from bloomery.http_server.messages import Message, Refusal
from bloomery.http_server.streams import Stream
from bloomery.metrics import METRICS
from bloomery.model.request import Request

SERVER: Final = "Bloomery"
REQUEST_ID_HEADERS: Final = ("x-openstack-request-id", "openstack-request-id")
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_SECURITY: Final = (  # what a browser may do with an answer: of all answers, as any may be opened
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
)
_SLASH: Final = re.compile(rb"%2F", re.IGNORECASE)
_OWN_NAMES: Final = ("CONTENT_TYPE", "CONTENT_LENGTH")
_BODILESS: Final = frozenset({"204", "304"})
_FILE_PIECE: Final = 256 << 10
_LINE_ENDS: Final = re.compile(r"[\r\n\0]")

Headers = list[tuple[str, str]]
Wsgi: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def environ(message: Message, base: Mapping[str, Any], peer: tuple[Any, ...]) -> dict[str, Any]:
    """Return WSGI's environment.  ``base``: the part common to all requests of a server.

    Headers with an underscore are left out, since WSGI would confuse them with a hyphen.
    """
    path, _, query = message.target.partition(b"?")
    environment = dict(base)
    environment |= {
        "PATH_INFO": _unquoted(path),
        "QUERY_STRING": query.decode("latin-1"),
        "REMOTE_ADDR": str(peer[0]),
        "REMOTE_PORT": str(peer[1]),
        "REQUEST_METHOD": message.method,
        "REQUEST_URI": message.target.decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{message.version}",
        "wsgi.input": message.stream(),
        "wsgi.input_terminated": message.is_chunked,
        DEFERRED: message.login,
    }
    for header, value in message.headers:
        key = _key(header)
        if key in environment and key:
            environment[key] = f"{environment[key]},{value.decode('latin-1')}"
        elif key:
            environment[key] = value.decode("latin-1")
    return environment


def base(host: str, port: int, scheme: str = "http") -> dict[str, Any]:
    """Return the common part of all environments of one server."""
    return {
        "SCRIPT_NAME": "",
        **name((host, port)),
        "SERVER_SOFTWARE": SERVER,
        "wsgi.errors": sys.stderr,
        "wsgi.multiprocess": False,
        "wsgi.multithread": True,
        "wsgi.run_once": False,
        "wsgi.url_scheme": scheme,
        "wsgi.version": (1, 0),
    }


def name(address: tuple[Any, ...]) -> dict[str, str]:
    """Return a server's name in an environment."""
    host, port = address[:2]
    return {"SERVER_NAME": f"[{host}]" if ":" in host else host, "SERVER_PORT": str(port)}


@functools.lru_cache(maxsize=512)
def _key(name: bytes) -> str:
    if b"_" in name:
        return ""
    key = name.decode("latin-1").upper().replace("-", "_")
    return key if key in _OWN_NAMES else f"HTTP_{key}"


def _unquoted(path: bytes) -> str:
    """Return the path unquoted, except slashes, which would add segments."""
    if b"%" not in path:
        return path.decode("latin-1")
    return b"%2F".join(unquote_to_bytes(part) for part in _SLASH.split(path)).decode("latin-1")


class FilePieces:
    """The bytes of a file from ``start`` to ``stop``, read in a thread of its own as it sends."""

    def __init__(self, path: Path, start: int, stop: int) -> None:
        self._path, self._start, self._stop = path, start, stop

    def app_iter_range(self, start: int, stop: int) -> FilePieces:
        """Return a range of the file: WebOb's name."""
        return FilePieces(self._path, start, stop)

    def __iter__(self) -> Iterator[bytes]:
        """Raises OSError where the file is gone, or shorter than declared."""
        remaining = self._stop - self._start
        with self._path.open("rb") as file:
            file.seek(self._start)
            while remaining and (piece := file.read(min(remaining, _FILE_PIECE))):
                remaining -= len(piece)
                yield piece
        if remaining:
            raise OSError(errno.ESTALE, "a file became shorter while it was sent")


class Response:
    """An application's answer, collected before it is sent.

    Files are not: ``pieces`` yields their body, behind ``encoded``.
    """

    def __init__(self) -> None:
        self._status = ""
        self._headers: Headers = []
        self._parts: list[bytes] = []
        self.ends_connection = False
        self.pieces = NOTHING
        self.stream: Callable[[Stream], None] | None = None

    def hand_over(self, begin: Callable[[Stream], None]) -> None:
        """Answer without an end: ``begin`` gets the connection once the head is sent."""
        self.stream = begin

    def start(self, status: str, headers: Headers, exc_info: Any = None) -> Callable[[bytes], None]:
        self._status, self._headers = status, list(headers)
        self.ends_connection = any(
            name.lower() == "connection" and value.lower() == "close" for name, value in headers
        )
        return self._parts.append

    def take(self, parts: Iterable[bytes]) -> None:
        if isinstance(parts, FilePieces):
            self.pieces = iter(parts)
            return
        try:
            self._parts += parts
        finally:
            close = getattr(parts, "close", None)
            if close is not None:
                close()

    def encoded_begin(self, message: Message) -> bytes:
        """Return head and first bytes of an answer that ends when the connection does."""
        headers = [each for each in self._headers if each[0].lower() != "content-length"]
        if self._status.startswith("101"):
            return self._head(headers, "Upgrade")
        return self._head(headers, "close") + b"".join(self._parts)

    def encoded(self, message: Message, *, keep: bool) -> bytes:
        """Return the bytes of the answer."""
        body = b"".join(self._parts)
        headers = list(self._headers)
        names = {name.lower() for name, _ in headers}
        if "content-length" not in names and self._status[:3] not in _BODILESS:
            headers.append(("Content-Length", str(len(body))))
        kept = "Keep-Alive" if message.version == "1.0" else None
        encoded = self._head(headers, kept if keep else "close")
        return encoded if message.method == "HEAD" else encoded + body

    def _head(self, headers: Headers, connection: str | None) -> bytes:
        headers = [each for each in headers if each[0].lower() != "connection"]
        if connection is not None:
            headers.append(("Connection", connection))
        head = [f"HTTP/1.1 {self._status}", *(f"{name}: {value}" for name, value in headers)]
        if _LINE_ENDS.search("".join(head)):
            raise ValueError("a header of an answer holds the end of a line")
        head.append(_own_headers(int(time.time())))
        return "\r\n".join(head).encode("latin-1")


def with_security_headers(app: Wsgi) -> Wsgi:
    """Add to each answer what our own server adds, for an application behind another server."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        def start(status: str, headers: Headers, exc_info: Any = None) -> Any:
            return start_response(status, [*headers, *_SECURITY], exc_info)

        return app(environ, start)

    return answer


@functools.lru_cache(maxsize=1)
def _own_headers(second: int) -> str:
    """Return the headers of the server itself, which are the same in all answers of a second."""
    own = [("Date", formatdate(second, usegmt=True)), ("Server", SERVER), *_SECURITY]
    return "".join(f"{name}: {value}\r\n" for name, value in own) + "\r\n"


def bare_fault(refusal: Refusal) -> dict[str, Any]:
    """Format a refusal as Ironic's API does."""
    return {"faultcode": "Client", "faultstring": refusal.text}


def refusal(message: Message, refusal: Refusal, fault: Any) -> bytes:
    """Return the answer to a request that reaches no application."""
    METRICS.send_counter(f"api_requests:other:{refusal.status}", 1)
    ident = Request.new().request_id
    headers = [
        ("Content-Type", "application/json"),
        *((name, ident) for name in REQUEST_ID_HEADERS),
    ]
    if refusal.allow:
        headers.append(("Allow", refusal.allow))
    response = Response()
    response.start(f"{refusal.status} {HTTPStatus(refusal.status).phrase}", headers)
    response.take([orjson.dumps(fault)])
    return response.encoded(message, keep=False)
