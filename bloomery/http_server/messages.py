"""HTTP requests as they come off a connection, piece by piece.

    reader = Reader(Bodies(most=2**29))
    reader.feed(data)                   # never raises
    reader.messages                     # in the order of the wire; the last may be incomplete

llhttp (through httptools) decides what HTTP is.  It is strict where proxies disagree: a bare LF,
two lengths, a length beside chunks, and blanks before a colon are refused.  A message that cannot
be understood is noted in its place with a ``Refusal``, so that those before it are answered first.
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
MAX_AHEAD: Final = 64  # requests that a client may send before it has read an answer
UNASKED: Final = 16 * KIB  # a body of this size is taken before anybody has looked at its head
IN_MEMORY: Final = 64 * KIB  # what is longer goes to a temporary file
_FRAMING: Final = 8  # bytes on the wire for each of a body's, which small chunks may cost
_BETWEEN: Final = 8  # bytes between name and value of a header, and at its end
_VERSIONS: Final = ("1.0", "1.1")
_UNKNOWN_METHOD: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32} \S+ HTTP/1\.[01]\r\n")
_ABSOLUTE: Final = re.compile(rb"https?://([^/?#@\\]+)((?:[/?][^#]*)?)", re.IGNORECASE)
METHODS: Final = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the server answers by itself, before it ends the connection."""

    status: int
    text: str
    allow: str = ""


class Refused(Exception):
    """Raised inside a callback of the parser."""

    def __init__(self, status: int, text: str, allow: str = "") -> None:
        super().__init__(text)
        self.refusal = Refusal(status, text, allow)


class Bodies:
    """How many bytes there are of all bodies together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._mutex = threading.Lock()

    def take(self, size: int) -> None:
        """Raises Refused when there would be too many."""
        with self._mutex:
            if self._size + size > self._most:
                raise Refused(503, "too many large bodies are on their way: ask again later")
            self._size += size

    def give_back(self, size: int) -> None:
        with self._mutex:
            self._size -= size


class Message:
    """One request.

    ``wanted``: how many bytes of the body the application asked for, when it was shown the head;
    None: it has not been.  ``login`` is the check that it waits for, if any.  ``parking``: what its
    passes share; None before the first one.
    """

    __slots__ = (
        "_bodies", "asks_first", "body", "has_head", "headers", "is_chunked", "is_whole",
        "keep_alive", "length", "login", "method", "parking", "refusal", "size", "target",
        "version", "wanted",
    )  # fmt: skip

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self.method = ""
        self.target = b""
        self.version = "1.1"
        self.headers: list[tuple[bytes, bytes]] = []
        self.length = 0
        self.is_chunked = False
        self.asks_first = False  # sends its body when told to
        self.keep_alive = False
        self.has_head = False
        self.is_whole = False
        self.body: IO[bytes] | None = None
        self.size = 0
        self.wanted: int | None = None
        self.login: Any = None
        self.parking: Parking | None = None
        self.refusal: Refusal | None = None

    @property
    def is_ready(self) -> bool:
        """A thread can work on it without waiting for the client."""
        if self.is_whole or self.refusal is not None:
            return True
        if self.wanted is not None:
            return self.size >= self.wanted
        return self.has_head and (self.asks_first or self.is_chunked or self.length > UNASKED)

    def add(self, data: bytes) -> None:
        """Take more of the body; what is long goes to a file without a name."""
        self._bodies.take(len(data))
        self.size += len(data)
        if self.body is None:
            self.body = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  see close
        self.body.seek(0, io.SEEK_END)  # the application may have been shown its beginning
        self.body.write(data)

    def stream(self) -> Any:
        """Return the body as WSGI reads it, from its beginning."""
        if self.body is not None:
            self.body.seek(0)
        here = self.body or io.BytesIO()
        return here if self.is_whole else _Incomplete(here, self.size)

    def refuse(self, refusal: Refusal) -> None:
        self.refusal, self.keep_alive = refusal, False

    def close(self) -> None:
        """Let go of the body."""
        if self.body is not None:
            with contextlib.suppress(OSError):  # on a full disk: nobody reads what is not written
                self.body.close()
            self.body = None
            self._bodies.give_back(self.size)


class _Incomplete:
    """A body whose end is still to come.  Nobody waits for it: ``read`` raises Awaited."""

    def __init__(self, here: IO[bytes], size: int) -> None:
        self._here = here
        self._size = size

    def read(self, size: int) -> bytes:
        wanted = self._here.tell() + size
        if wanted > self._size:
            raise Awaited(wanted)
        return self._here.read(size)


class Reader:
    """The requests of one connection.  Feed it from one thread at a time."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self.messages: deque[Message] = deque()
        self._parser = httptools.HttpRequestParser(self)
        self._message: Message | None = None  # the one that is not whole yet
        self._head_size = 0  # of what was understood
        self._raw_size = 0  # of what came for one head, or for one body
        self._is_over = False  # nothing more is understood

    @property
    def is_within(self) -> bool:
        """Part of a request has come."""
        return self._message is not None

    @property
    def is_in_body(self) -> bool:
        return self._message is not None and self._message.has_head

    @property
    def is_asked_for(self) -> bool:
        """The application wants the body that is on its way."""
        return self._message is not None and self._message.wanted is not None

    def feed(self, data: bytes) -> None:
        """Understand what has come.  After a refusal, or a last request, it is dropped."""
        if self._is_over:
            return
        self._raw_size += len(data)
        try:
            self._parser.feed_data(data)
            self._check_framing()
        except httptools.HttpParserUpgrade:
            self._end()  # we speak no other protocol: the request is answered as it stands
        except httptools.HttpParserCallbackError as exc:
            self._fail(_cause(exc))
        except httptools.HttpParserError as exc:
            is_first = not any(message.target for message in self.messages)
            self._fail(_reason(exc, data if is_first else b""))
        except Refused as exc:
            self._fail(exc.refusal)

    def refuse(self, status: int, text: str) -> None:
        """End the request that is under way, for a reason outside of it."""
        self._fail(Refusal(status, text))

    def _end(self) -> None:
        self._is_over = True
        self._message = None
        if self.messages:
            self.messages[-1].keep_alive = False

    def _fail(self, refusal: Refusal) -> None:
        """Note a refusal, unless the client has said before that nothing would follow."""
        last = self.messages[-1] if self.messages else None
        if last is None or last.is_whole:
            if last is not None and not last.keep_alive:
                return self._end()
            last = Message(self._bodies)
            self.messages.append(last)
        last.refuse(refusal)
        self._end()
        return None

    def _check_framing(self) -> None:
        """Refuse heads without end, and bodies that are hardly more than the frames of chunks."""
        message = self._message
        if message is None:
            return
        if not message.has_head:
            if self._raw_size > MAX_HEADER_BYTES + _BETWEEN * MAX_HEADERS:
                raise Refused(431, f"the headers are longer than {MAX_HEADER_BYTES} bytes")
        elif self._raw_size > 2 * UNASKED + _FRAMING * message.size:
            raise Refused(400, "the chunks of the body are hardly more than their frames")

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
        if message.has_head:  # it is a trailer, which nobody reads
            return
        if len(message.headers) >= MAX_HEADERS:
            raise Refused(431, f"more than {MAX_HEADERS} headers")
        message.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        message = self._current()
        message.method = self._parser.get_method().decode()
        message.version = self._parser.get_http_version()
        message.keep_alive = self._parser.should_keep_alive()
        _check_head(message)
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


def _cause(error: Exception) -> Refusal:
    cause = error.__context__ or error.__cause__
    if isinstance(cause, Refused):
        return cause.refusal
    raise error  # a fault of ours


def _reason(error: Exception, data: bytes) -> Refusal:
    """Tell a method that nobody knows from what is no HTTP at all."""
    unknown = isinstance(error, httptools.HttpParserInvalidMethodError)
    if unknown and _UNKNOWN_METHOD.match(data):
        return Refusal(405, f"Allowed here: {METHODS}", METHODS)
    return Refusal(400, f"This is no HTTP request: {error}")


def _check_head(message: Message) -> None:
    """Note what the headers say of the body.  Raises Refused."""
    if message.version not in _VERSIONS:
        raise Refused(505, "HTTP/1.1 is spoken here")
    values: dict[bytes, bytes] = dict(message.headers)
    names = [name for name, _ in message.headers]
    if names.count(b"host") != 1 and (message.version == "1.1" or b"host" in values):
        raise Refused(400, "HTTP/1.1 wants one header Host")
    _check_target(message)
    encoding = values.get(b"transfer-encoding")
    if encoding is not None:
        if b"content-length" in values or message.version == "1.0":
            raise Refused(400, "a chunked body cannot have a Content-Length, nor be of HTTP/1.0")
        if encoding.strip().lower() != b"chunked" or names.count(b"transfer-encoding") > 1:
            raise Refused(501, "the only Transfer-Encoding that is known here is chunked")
        message.is_chunked = True
    message.length = int(values.get(b"content-length", b"0"))
    asks = values.get(b"expect", b"").lower() == b"100-continue"
    message.asks_first = (
        asks and message.version == "1.1" and (message.length > 0 or encoding is not None)
    )


def _check_target(message: Message) -> None:
    """Take the path; an address as a whole names the host, too (RFC 9112, 3.2.2)."""
    target = message.target
    if target == b"*" and message.method == "OPTIONS":
        return
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is not None:
        host, path = absolute.groups()
        message.target = path if path.startswith(b"/") else b"/" + path
        message.headers = [each for each in message.headers if each[0] != b"host"]
        message.headers.append((b"host", host))
    elif not target.startswith(b"/") or b"#" in target:
        raise Refused(400, "the address asked for must be a path, as /v1/nodes, or a URL")
