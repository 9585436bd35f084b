"""Parse HTTP requests incrementally.

    reader = Reader(Bodies(most=2**29))
    reader.feed(data)                   # never raises
    reader.messages                     # in the order of the wire; the last may be incomplete

llhttp (through httptools) parses.  It is strict where proxies disagree: a bare LF, two lengths, a
length beside chunks, and blanks before a colon are refused.  A malformed message is queued with a
``Refusal``, so that the messages before it are answered first.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import threading
from collections import deque
from dataclasses import dataclass
from typing import IO, Any, Final

import httptools

from bloomery.http_server.bodies import KIB, Awaited
from bloomery.model.request import Parking

MAX_HEADER_BYTES: Final = 64 * KIB
MAX_HEADERS: Final = 256
MAX_AHEAD: Final = 64  # pipelined requests of a client
UNASKED: Final = 16 * KIB  # a body up to this size is read before the head is checked
IN_MEMORY: Final = 64 * KIB  # larger bodies go to a temporary file
_FRAMING: Final = 8  # bytes on the wire for each of a body's, the limit for small chunks
_BETWEEN: Final = 8  # bytes between name and value of a header, and at its end
_VERSIONS: Final = ("1.0", "1.1")
_UNKNOWN_METHOD: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32} \S+ HTTP/1\.[01]\r\n")
_ABSOLUTE: Final = re.compile(rb"https?://([^/?#@\\]+)((?:[/?][^#]*)?)", re.IGNORECASE)
METHODS: Final = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer of the server itself, before it closes the connection."""

    status: int
    text: str
    allow: str = ""


class Refused(Exception):
    """Raised inside a callback of the parser."""

    def __init__(self, status: int, text: str, allow: str = "") -> None:
        super().__init__(text)
        self.refusal = Refusal(status, text, allow)


class Bodies:
    """The total bytes of all bodies."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._mutex = threading.Lock()

    def take(self, size: int) -> None:
        """Raises Refused at the limit."""
        with self._mutex:
            if self._size + size > self._most:
                raise Refused(503, "too many large bodies are on their way: ask again later")
            self._size += size

    def give_back(self, size: int) -> None:
        with self._mutex:
            self._size -= size


class Message:
    """One request.

    ``asked_bytes``: size of the body that the application asked for after the head; None: it has
    not seen the head.  ``login``: the running check, if any.  ``parking``: shared by all passes of
    the request; None before the first one.
    """

    __slots__ = (
        "_bodies", "asked_bytes", "asks_first", "body", "has_head", "headers", "is_chunked",
        "is_whole", "keep_alive", "length", "login", "method", "parking", "refusal", "size",
        "target", "version",
    )  # fmt: skip

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self.method = ""
        self.target = b""
        self.version = "1.1"
        self.headers: list[tuple[bytes, bytes]] = []
        self.length = 0
        self.is_chunked = False
        self.asks_first = False  # Expect: 100-continue
        self.keep_alive = False
        self.has_head = False
        self.is_whole = False
        self.body: IO[bytes] | None = None
        self.size = 0
        self.asked_bytes: int | None = None
        self.login: Any = None
        self.parking: Parking | None = None
        self.refusal: Refusal | None = None

    @property
    def is_ready(self) -> bool:
        """Can a thread work on it without waiting for the client?"""
        if self.is_whole or self.refusal is not None:
            return True
        if self.asked_bytes is not None:
            return self.size >= self.asked_bytes
        return self.has_head and (self.asks_first or self.is_chunked or self.length > UNASKED)

    def add(self, data: bytes) -> None:
        """Add to the body; a long body moves to an unnamed file."""
        self._bodies.take(len(data))
        self.size += len(data)
        if self.body is None:
            self.body = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  see close
        self.body.seek(0, io.SEEK_END)  # the application may have read its beginning
        self.body.write(data)

    def stream(self) -> Any:
        """Return the body for WSGI, from its beginning."""
        if self.body is not None:
            self.body.seek(0)
        here = self.body or io.BytesIO()
        return here if self.is_whole else _Incomplete(here, self.size)

    def refuse(self, refusal: Refusal) -> None:
        self.refusal, self.keep_alive = refusal, False

    def close(self) -> None:
        """Free the body."""
        if self.body is not None:
            # a full disk does not matter: the body is not read again
            with contextlib.suppress(OSError):
                self.body.close()
            self.body = None
            self._bodies.give_back(self.size)


class _Incomplete:
    """An incomplete body; ``read`` raises Awaited at its end."""

    def __init__(self, here: IO[bytes], size: int) -> None:
        self._here = here
        self._size = size

    def read(self, size: int) -> bytes:
        end = self._here.tell() + size
        if end > self._size:
            raise Awaited(end)
        return self._here.read(size)


class Reader:
    """The requests of one connection.  Feed it from one thread at a time."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self.messages: deque[Message] = deque()
        self._parser = httptools.HttpRequestParser(self)
        self._message: Message | None = None  # the incomplete one
        self._head_size = 0  # of the parsed bytes
        self._raw_size = 0  # of the received bytes of one head, or of one body
        self._is_over = False  # further input is dropped

    @property
    def is_within(self) -> bool:
        return self._message is not None

    @property
    def is_in_body(self) -> bool:
        return self._message is not None and self._message.has_head

    @property
    def is_asked_for(self) -> bool:
        """Does the application want the body that is arriving?"""
        return self._message is not None and self._message.asked_bytes is not None

    def feed(self, data: bytes) -> None:
        """Parse input.  After a refusal, or a last request, it is dropped."""
        if self._is_over:
            return
        self._raw_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._end()  # no other protocol is supported: the request is answered as it is
        except httptools.HttpParserCallbackError as exc:
            cause = exc.__context__ or exc.__cause__
            if not isinstance(cause, Refused):
                raise  # a fault of ours
            self._fail(cause.refusal)
        except httptools.HttpParserError as exc:
            # an unknown method, or a protocol that is not HTTP
            is_first = not any(message.target for message in self.messages)
            is_method = isinstance(exc, httptools.HttpParserInvalidMethodError)
            if is_method and _UNKNOWN_METHOD.match(data if is_first else b""):
                self._fail(Refusal(405, f"Allowed here: {METHODS}", METHODS))
            else:
                self._fail(Refusal(400, f"This is no HTTP request: {exc}"))
        else:
            message = self._message
            if message is not None and not message.has_head:
                if self._raw_size > MAX_HEADER_BYTES + _BETWEEN * MAX_HEADERS:
                    self.refuse(431, f"the headers are longer than {MAX_HEADER_BYTES} bytes")
            elif message is not None and self._raw_size > 2 * UNASKED + _FRAMING * message.size:
                self.refuse(400, "the chunks of the body are hardly more than their frames")

    def refuse(self, status: int, text: str) -> None:
        """Refuse the incomplete request, for a reason outside of it."""
        self._fail(Refusal(status, text))

    def _end(self) -> None:
        self._is_over = True
        self._message = None
        if self.messages:
            self.messages[-1].keep_alive = False

    def _fail(self, refusal: Refusal) -> None:
        """Queue a refusal, unless the client has announced the end."""
        last = self.messages[-1] if self.messages else None
        if last is None or last.is_whole:
            if last is not None and not last.keep_alive:
                return self._end()
            last = Message(self._bodies)
            self.messages.append(last)
        last.refuse(refusal)
        self._end()
        return None

    # ------------------------------------------------------------------- what the parser calls

    def on_message_begin(self) -> None:
        if len(self.messages) >= MAX_AHEAD:
            raise Refused(400, f"more than {MAX_AHEAD} requests were sent ahead")
        self._message = Message(self._bodies)
        self._head_size = 0
        self.messages.append(self._message)

    def on_url(self, url: bytes) -> None:
        message = self._current()
        message.target += url
        self._measure(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        message = self._current()
        self._measure(name + value)
        if message.has_head:  # a trailer, which is ignored
            return
        if len(message.headers) >= MAX_HEADERS:
            raise Refused(431, f"more than {MAX_HEADERS} headers")
        message.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        message = self._current()
        message.method = self._parser.get_method().decode()
        message.version = self._parser.get_http_version()
        message.keep_alive = self._parser.should_keep_alive()
        if message.version not in _VERSIONS:
            raise Refused(505, "HTTP/1.1 is spoken here")
        values: dict[bytes, bytes] = dict(message.headers)
        names = [name for name, _ in message.headers]
        if names.count(b"host") != 1 and (message.version == "1.1" or b"host" in values):
            raise Refused(400, "HTTP/1.1 wants one header Host")
        target = message.target
        absolute = _ABSOLUTE.fullmatch(target)
        if target == b"*" and message.method == "OPTIONS":
            pass
        elif absolute is not None:  # replaces the header Host (RFC 9112, 3.2.2)
            host, path = absolute.groups()
            message.target = path if path.startswith(b"/") else b"/" + path
            message.headers = [each for each in message.headers if each[0] != b"host"]
            message.headers.append((b"host", host))
        elif not target.startswith(b"/") or b"#" in target:
            raise Refused(400, "the address asked for must be a path, as /v1/nodes, or a URL")
        encoding = values.get(b"transfer-encoding")
        if encoding is not None:
            if b"content-length" in values or message.version == "1.0":
                raise Refused(
                    400, "a chunked body cannot have a Content-Length, nor be of HTTP/1.0"
                )
            if encoding.strip().lower() != b"chunked" or names.count(b"transfer-encoding") > 1:
                raise Refused(501, "the only Transfer-Encoding that is known here is chunked")
            message.is_chunked = True
        message.length = int(values.get(b"content-length", b"0"))
        asks = values.get(b"expect", b"").lower() == b"100-continue"
        message.asks_first = (
            asks and message.version == "1.1" and (message.length > 0 or encoding is not None)
        )
        message.has_head = True
        self._raw_size = 0

    def on_body(self, body: bytes) -> None:
        try:
            self._current().add(body)
        except OSError as exc:
            raise Refused(503, f"the body cannot be kept: {exc.strerror}") from exc

    def on_message_complete(self) -> None:
        self._current().is_whole = True
        self._message = None
        self._raw_size = 0

    def _current(self) -> Message:
        assert self._message is not None  # llhttp begins each message
        return self._message

    def _measure(self, part: bytes) -> None:
        self._head_size += len(part)
        if self._head_size > MAX_HEADER_BYTES:
            raise Refused(431, f"the headers are longer than {MAX_HEADER_BYTES} bytes")
