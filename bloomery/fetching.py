"""Guarded HTTP requests to URLs that users name.

    parts = fetching.checked("https://example.org/web.yaml")
    connection = fetching.Connection(parts, addresses, time.monotonic() + 5.0)

The request comes from the service's network, so the address of the connection is checked, not the
name: DNS rebinding has no effect.  Only http and https are allowed, redirects are not followed, and
the connection ends at its deadline.
"""

from __future__ import annotations

import functools
import http.client
import io
import ipaddress
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import standardwebhooks

SCHEMES: Final = {"http": 80, "https": 443}
CHUNK: Final = 65_536
PLAIN_HTTP: Final = "it speaks plain HTTP at this port, and no TLS"
ONLY_TLS: Final = "it speaks TLS at this port, and no plain HTTP"
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "wrong version number")
_TLS_ALERT: Final = "\x15\x03"  # the first bytes of a TLS alert
_START: Final = 5  # bytes of a broken line that identify a TLS record
SAFE: Final = "/%:=&?~+!$,;'@()*[]"  # not quoted in a path and a query
NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
# Metadata services of clouds; 169.254.169.254 is link-local already.
METADATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16")
)

_DISCARD: Final = 9  # a port: with 0 the kernel returns no peer

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve: TypeAlias = Callable[[str, int], Sequence[tuple[Any, ...]]]
Addresses: TypeAlias = Callable[[str, int], Iterable[tuple[Any, ...]]]

HEADERS: Final = {
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "bloomery",
}

LEADS_HERE: Final = (
    "it leads to the machine itself, to a link-local address or to a cloud's metadata; "
    "an operator may allow that with {option}"
)


class FetchRefused(Exception):
    """The URL was not fetched, with a reason for its user."""


def resolved(host: str, port: int) -> Sequence[tuple[Any, ...]]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def numeric(url: urllib.parse.SplitResult) -> Sequence[tuple[Any, ...]]:
    """Return the addresses of a URL with a numeric host; none for a name, which is not resolved."""
    try:
        return socket.getaddrinfo(
            url.hostname, 0, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except (OSError, UnicodeError):
        return []


def embedded(address: Address) -> Address:
    """Return the embedded IPv4 address of an IPv6 address, if any."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, address))[1]


def is_local(entry: tuple[Any, ...]) -> bool:
    """Is this result of ``getaddrinfo`` local: this machine, its link or its cloud's metadata?"""
    return is_reserved(entry) or is_own(entry)


def is_reserved(entry: tuple[Any, ...]) -> bool:
    """Is the address local on every machine?"""
    address = embedded(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]))
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address in METADATA
    )


def is_own(entry: tuple[Any, ...]) -> bool:
    """Does the address belong to this machine?  The kernel then sends from it; no packet leaves."""
    try:
        with socket.socket(entry[0], socket.SOCK_DGRAM) as probe:
            probe.connect((entry[4][0], _DISCARD, *entry[4][2:]))
            own, there = probe.getsockname(), probe.getpeername()
    except OSError:  # no route, or no IPv6
        return False
    return bool(own[0] == there[0])


class FetchFailed(Exception):
    """The server gave no whole answer, with the reason: a repetition may help."""


def reachable(
    entries: Iterable[tuple[Any, ...]], option: str, *, allow_local: bool
) -> Iterator[tuple[Any, ...]]:
    """Yield the results of ``getaddrinfo`` that may be called; ``option`` allows local ones.

    Raises FetchRefused where all are local.
    """
    is_nowhere = True
    for entry in entries:
        if allow_local or not is_local(entry):
            is_nowhere = False
            yield entry
    if is_nowhere:
        raise FetchRefused(LEADS_HERE.format(option=option))


def signed(
    signer: standardwebhooks.Webhook, message_id: str, now: datetime, body: bytes
) -> dict[str, str]:
    """Return the headers of a POST of JSON, signed as in Standard Webhooks (HMAC-SHA256)."""
    return {
        **HEADERS,
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signer.sign(message_id, now, body.decode()),
    }


def tls_context(trust: bool | str) -> ssl.SSLContext:
    """Return a context for the system's CAs, for a file or folder of others, or for none: False.

    Callers share it and leave it as it is: to read the system's CAs takes 20 ms of CPU.
    Raises OSError for a path without certificates.
    """
    system = ssl.get_default_verify_paths()
    paths = (trust,) if isinstance(trust, str) else (system.cafile, system.capath) if trust else ()
    return _tls_context(trust, tuple(Path(path).stat().st_mtime_ns for path in paths if path))


@functools.lru_cache(maxsize=64)
def _tls_context(trust: bool | str, _changed_at: tuple[int, ...]) -> ssl.SSLContext:
    """Return a context; changed files are read again."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if isinstance(trust, str):
        context.load_verify_locations(**{"capath" if Path(trust).is_dir() else "cafile": trust})
    elif trust:
        context.load_default_certs()
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class Response(http.client.HTTPResponse):
    """Raise ConnectionError for truncated headers, which http.client accepts."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fp = _Lines(self.fp.detach())


class _Lines(io.BufferedReader):
    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if not line.endswith(b"\n") and len(line) != size:
            start = line[:_START].decode("latin-1")
            raise ConnectionError(start) if start else ConnectionResetError
        return line


class Connection(http.client.HTTPConnection):
    """A connection to a checked address, closed at its deadline in any state.

    Each byte restarts a socket's time-out; so a timer shuts the socket down.
    """

    response_class = Response

    def __init__(
        self,
        url: urllib.parse.SplitResult,
        addresses: Addresses,
        until_s: float,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """``addresses`` yields results of ``getaddrinfo``, without forbidden addresses.

        ``context``: the trusted certificates, by default those of the system.
        """
        host, port = str(url.hostname), url.port or SCHEMES[url.scheme]
        super().__init__(host, port)
        self._secure = url.scheme == "https"
        self._addresses = addresses
        self._until_s, self._context = until_s, context
        self._timer: threading.Timer | None = None
        self._guard: socket.socket | None = None

    def connect(self) -> None:
        tcp = self._dialled()
        self._guard = tcp.dup()  # TLS takes the socket over
        self._timer = threading.Timer(self._left_s(), _shut, [self._guard])
        self._timer.daemon = True
        self._timer.start()
        if self._secure:
            context = self._context or tls_context(trust=True)
            self.sock = context.wrap_socket(tcp, server_hostname=self.host)
        else:
            self.sock = tcp

    def _dialled(self) -> socket.socket:
        fault = OSError("the name has no address")
        for family, kind, protocol, _name, address in self._addresses(self.host, self.port):
            tcp = socket.socket(family, kind, protocol)
            try:
                tcp.settimeout(self._left_s())
                tcp.connect(address)
            except OSError as exc:
                fault = exc
                tcp.close()
            else:
                return tcp
        raise fault

    def _left_s(self) -> float:
        self.check_time()
        return self._until_s - time.monotonic()

    def check_time(self) -> None:
        """Raise TimeoutError after the deadline: the data may be truncated."""
        if self.late():
            raise TimeoutError

    def late(self) -> bool:
        return time.monotonic() >= self._until_s

    def content(self, answer: http.client.HTTPResponse, most: int) -> bytes:
        """Return a body, or the beginning of one that is longer than ``most`` bytes.

        Raises TimeoutError after the deadline, ConnectionError for a truncated body.
        """
        parts, size, whole = [], 0, answer.length or 0
        while size <= most and (chunk := answer.read1(CHUNK)):
            parts.append(chunk)
            size += len(chunk)
        self.check_time()
        if size < whole and size <= most:
            raise ConnectionError
        return b"".join(parts)

    def end(self) -> None:
        """Close all; http.client calls ``close`` as soon as an answer's headers are read."""
        if self._timer is not None:
            self._timer.cancel()
        self.close()
        if self._guard is not None:
            self._guard.close()

    def why(self, exc: Exception, too_slow: str) -> str:
        """Describe a failed fetch; ``too_slow``: the text for a time-out."""
        if isinstance(exc, TimeoutError) or self.late():
            return too_slow
        if isinstance(exc, ssl.SSLCertVerificationError):
            return f"the server's certificate is not trusted: {exc.verify_message}"
        if isinstance(exc, socket.gaierror | UnicodeError):
            return "the name of the server is not known"
        if mismatch := explain_mismatch(str(exc)):
            return mismatch
        if isinstance(exc, OSError):
            return exc.strerror or "the connection broke off"
        return "the server does not speak HTTP"


def _shut(tcp: socket.socket) -> None:
    try:
        tcp.shutdown(socket.SHUT_RDWR)
    except OSError:
        """It is closed already."""


def checked(url: str) -> urllib.parse.SplitResult:
    """Return the parts of a URL that may be fetched.  Raises FetchRefused."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError as exc:
        raise FetchRefused(f"this is no URL: {exc}") from exc
    if parts.scheme not in SCHEMES:
        raise FetchRefused(f"only URLs of http and https are fetched, not of {parts.scheme!r}")
    if not host:
        raise FetchRefused("the URL names no server")
    if any(char <= " " or char == "\x7f" for char in host):
        raise FetchRefused("the name of its server holds a blank or a control character")
    if "@" in parts.netloc:
        raise FetchRefused("leave user and password out of the URL")
    return parts


def is_http(value: object) -> bool:
    """Return whether a value is a URL of http or https that names a server."""
    try:
        parts = urllib.parse.urlsplit(value) if isinstance(value, str) else None
    except ValueError:
        return False
    return parts is not None and parts.scheme in SCHEMES and bool(parts.hostname)


def path_of(url: str) -> str | None:
    """Return the path of a URL that a BMC wrote, or None where it is no URL."""
    try:
        return str(urllib.parse.urlsplit(url).path)
    except ValueError:
        return None


def target(url: urllib.parse.SplitResult) -> str:
    path = urllib.parse.quote(url.path or "/", safe=SAFE)
    return f"{path}?{urllib.parse.quote(url.query, safe=SAFE)}" if url.query else path


def shown(url: str) -> str:
    """Return the URL without possible secrets: user, password, and the query."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return "from that URL"
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))[:200]


def post(
    url: urllib.parse.SplitResult,
    body: bytes,
    headers: Mapping[str, str],
    addresses: Addresses,
    limit_s: float,
    context: ssl.SSLContext | None = None,
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Return status, headers, and the beginning of the body of a 2xx answer.

    Raises FetchRefused for a server that may not be called, FetchFailed.
    """
    connection, content = Connection(url, addresses, time.monotonic() + limit_s, context), b""
    try:
        connection.request("POST", target(url), body, headers)
        with connection.getresponse() as answer:
            if 200 <= answer.status < 300:
                content = connection.content(answer, CHUNK)
            return answer.status, answer.headers, content
    except (OSError, http.client.HTTPException, ValueError) as exc:
        raise FetchFailed(connection.why(exc, f"it took longer than {limit_s:g} s")) from exc
    finally:
        connection.end()


def explain_mismatch(message: str) -> str | None:
    """Return what a server speaks that answered the other of TLS and plain HTTP, or None."""
    if any(part in message for part in _NO_TLS):
        return PLAIN_HTTP
    return ONLY_TLS if _TLS_ALERT in message else None
