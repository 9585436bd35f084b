"""Templates behind URLs, fetched for tenants by the service, and so with suspicion.

    Fetcher.of(timeout_s=60.0, networks=("10.1.0.0/16",)).text("https://example.org/web.yaml")

Whoever may create a stack decides where the request goes, and it is sent from the network of the
service.  So the address is looked at that is connected to, not the name: a name that resolves
anew, or a redirect, changes nothing.  Addresses that are not public are refused unless the
operator lists their network; only http and https are spoken, never https and then http.  Time
and size are bounded in all, whatever the server does, and no answer is unpacked.
"""

from __future__ import annotations

import functools
import http.client
import ipaddress
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits

SCHEMES: Final = {"http": 80, "https": 443}
MOST_REDIRECTS: Final = 5
PATIENCE_S: Final = 1.0
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
OK: Final = 200
CHUNK: Final = 65_536
SAFE: Final = "/%:=&?~+!$,;'@()*[]"  # of a path and a query: stays as it is
NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve: TypeAlias = Callable[[str, int], Sequence[tuple[Any, ...]]]


@functools.cache
def _slots(count: int) -> threading.BoundedSemaphore:
    """Those of this process: each fetch may keep a thread for as long as a server likes."""
    return threading.BoundedSemaphore(count)


class FetchRefused(Exception):
    """Why there is no text, in words for whoever named the URL."""


def _resolved(host: str, port: int) -> Sequence[tuple[Any, ...]]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """``timeout_s``: for one text, redirects and all.  ``networks``: allowed, though not public.

    ``at_once``: so many are fetched in this process at a time, so that threads are left.
    """

    timeout_s: float = 60.0
    at_once: int = 2
    networks: tuple[Network, ...] = ()
    limits: Limits = LIMITS
    resolve: Resolve = _resolved

    @classmethod
    def of(
        cls,
        *,
        timeout_s: float,
        networks: Sequence[str] = (),
        limits: Limits = LIMITS,
        at_once: int = 2,
    ) -> Fetcher:
        """Read the options.  Raises CannotStart for a network that is none."""
        try:
            parsed = tuple(ipaddress.ip_network(text) for text in networks)
        except ValueError as exc:
            raise errors.CannotStart(
                reason=f"cannot use [orchestration]template_fetch_networks: {exc}"
            ) from exc
        return cls(timeout_s=timeout_s, networks=parsed, limits=limits, at_once=at_once)

    def text(self, url: str) -> str:
        """Return the text behind ``url``.

        Raises TemplateUnreadable: why there is none.  FetchesBusy.
        """
        try:
            return self.fetch(url, time.monotonic() + self.timeout_s)
        except FetchRefused as exc:
            raise errors.TemplateUnreadable(
                reason=f"Could not retrieve template {shown(url)}: {exc}"
            ) from exc

    def fetch(self, url: str, until_s: float) -> str:
        """Return the text behind ``url``, before ``until_s`` of the monotonic clock.

        Raises FetchRefused, and FetchesBusy where others take long.
        """
        here = _checked(url)
        slots = _slots(self.at_once)
        if not slots.acquire(timeout=PATIENCE_S):
            raise errors.FetchesBusy(count=self.at_once)
        try:
            return self._followed(here, until_s)
        finally:
            slots.release()

    def _followed(self, here: urllib.parse.SplitResult, until_s: float) -> str:
        for _redirect in range(MOST_REDIRECTS + 1):
            onward, content = self._answer(here, until_s)
            if onward is None:
                return self._decoded(content)
            there = _checked(urllib.parse.urljoin(here.geturl(), onward))
            if here.scheme == "https" and there.scheme != "https":
                raise FetchRefused("it redirects from https to http")
            here = there
        raise FetchRefused(f"it redirects more than {MOST_REDIRECTS} times")

    def _answer(self, url: urllib.parse.SplitResult, until_s: float) -> tuple[str | None, bytes]:
        """Return where the server sends us, or what it sends."""
        connection = _Connection(url, self, until_s)
        answer: http.client.HTTPResponse | None = None
        try:
            connection.request("GET", _target(url), headers=_HEADERS)
            answer = connection.getresponse()
            if answer.status in REDIRECTS and (onward := answer.getheader("Location")):
                return onward, b""
            if answer.status != OK:
                raise FetchRefused(f"the server answers {answer.status}")
            if answer.getheader("Content-Encoding", "identity").lower() != "identity":
                raise FetchRefused("the server packs its answer, though it was asked not to")
            return None, self._content(answer, connection)
        except (OSError, http.client.HTTPException, ValueError) as exc:
            raise FetchRefused(connection.why(exc, self.timeout_s)) from exc
        finally:
            if answer is not None:
                answer.close()
            connection.end()

    def _content(self, answer: http.client.HTTPResponse, connection: _Connection) -> bytes:
        """Read all of it; one byte over the limit is read, and that is the end."""
        parts, size = [], 0
        while chunk := answer.read1(CHUNK):
            parts.append(chunk)
            size += len(chunk)
            if size > self.limits.template_bytes:
                break
        if connection.late():
            raise TimeoutError
        return b"".join(parts)

    def _decoded(self, content: bytes) -> str:
        if len(content) > self.limits.template_bytes:
            most = self.limits.template_bytes
            raise FetchRefused(f"it has more than {most} bytes (template_bytes)")
        try:
            return content.decode()
        except UnicodeDecodeError as exc:
            raise FetchRefused("it is not UTF-8; save it as UTF-8") from exc

    def addresses(self, host: str, port: int) -> Iterator[tuple[Any, ...]]:
        """Yield what ``getaddrinfo`` knows of ``host``, without addresses that are off limits."""
        nowhere = True
        for entry in self.resolve(host, port):
            if self._may_reach(ipaddress.ip_address(str(entry[4][0]).partition("%")[0])):
                nowhere = False
                yield entry
        if nowhere:
            raise FetchRefused(
                "it leads to an address that is not public; send the template itself, or ask an "
                "operator to allow its network (template_fetch_networks)"
            )

    def _may_reach(self, address: Address) -> bool:
        inner = _embedded(address)
        if any(inner in network for network in self.networks):
            return True
        special = inner.is_multicast or inner.is_reserved or inner.is_unspecified
        return inner.is_global and not special


def _embedded(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address leads to, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, address))[1]


_HEADERS: Final = {
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "bloomery",
}


class _Connection(http.client.HTTPConnection):
    """A connection to a checked address, which ends when time is over, whatever it is doing.

    Time-outs of sockets begin again with each byte; so a timer shuts the socket down.
    """

    def __init__(self, url: urllib.parse.SplitResult, fetcher: Fetcher, until_s: float) -> None:
        host, port = str(url.hostname), url.port or SCHEMES[url.scheme]
        super().__init__(host, port)
        self._secure = url.scheme == "https"
        self._fetcher = fetcher
        self._until_s = until_s
        self._timer: threading.Timer | None = None
        self._guard: socket.socket | None = None

    def connect(self) -> None:
        plain = self._dialled()
        self._guard = plain.dup()  # TLS takes the other one over
        self._timer = threading.Timer(self._left_s(), _shut, [self._guard])
        self._timer.daemon = True
        self._timer.start()
        if self._secure:
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(plain, server_hostname=self.host)
        else:
            self.sock = plain

    def _dialled(self) -> socket.socket:
        fault = OSError("the name has no address")
        for family, kind, protocol, _name, address in self._fetcher.addresses(self.host, self.port):
            plain = socket.socket(family, kind, protocol)
            try:
                plain.settimeout(self._left_s())
                plain.connect(address)
            except OSError as exc:
                fault = exc
                plain.close()
            else:
                return plain
        raise fault

    def _left_s(self) -> float:
        if self.late():
            raise TimeoutError
        return self._until_s - time.monotonic()

    def late(self) -> bool:
        return time.monotonic() >= self._until_s

    def end(self) -> None:
        """Close all; ``close`` alone is called as soon as the headers of an answer are there."""
        if self._timer is not None:
            self._timer.cancel()
        self.close()
        if self._guard is not None:
            self._guard.close()

    def why(self, exc: Exception, timeout_s: float) -> str:
        """What is said of a fetch that failed."""
        if isinstance(exc, TimeoutError) or self.late():
            return f"it takes longer than {timeout_s:g} s (template_fetch_timeout)"
        if isinstance(exc, ssl.SSLCertVerificationError):
            return f"the server's certificate is not trusted: {exc.verify_message}"
        if isinstance(exc, socket.gaierror | UnicodeError):
            return "the name of the server is not known"
        if isinstance(exc, OSError):
            return exc.strerror or "the connection broke off"
        return "the server does not speak HTTP"


def _shut(plain: socket.socket) -> None:
    try:
        plain.shutdown(socket.SHUT_RDWR)
    except OSError:
        """It is closed already."""


def _checked(url: str) -> urllib.parse.SplitResult:
    """Return the parts of a URL that may be fetched."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError as exc:
        raise FetchRefused(f"this is no URL: {exc}") from exc
    if parts.scheme not in SCHEMES:
        raise FetchRefused(f"only URLs of http and https are fetched, not of {parts.scheme!r}")
    if not host:
        raise FetchRefused("the URL names no server")
    if "@" in parts.netloc:
        raise FetchRefused("leave user and password out of the URL")
    return parts


def _target(url: urllib.parse.SplitResult) -> str:
    path = urllib.parse.quote(url.path or "/", safe=SAFE)
    return f"{path}?{urllib.parse.quote(url.query, safe=SAFE)}" if url.query else path


def shown(url: str) -> str:
    """The URL without what may be a secret in it: user, password, and the query."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return "from that URL"
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))[:200]
