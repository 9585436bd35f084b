"""The requests to one BMC: bounded in time, on kept connections, and never to anybody else.

Each request has what is left of its call's time, is made once (the gateway and the steps decide
what is repeated), stays with the BMC that it was meant for, and is timed.  What was read within
a turn is not read again in it, until something is changed.
"""

from __future__ import annotations

import functools
import logging
import re
import ssl
import threading
import urllib.parse
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import certifi
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import ssl_ as urllib3_ssl

from bloomery.conf import Conf
from bloomery.drivers.bmc.gateway import BmcCall
from bloomery.drivers.redfish.driver_info import Account

LOG = logging.getLogger(__name__)
# It warns of connections beyond those that are kept, which are no news.
logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)

_MOST_BYTES: Final = 32 << 20
_CHUNK: Final = 1 << 16
_HARMLESS: Final = ("GET", "HEAD")
_PORTS: Final = {"http": 80, "https": 443}
_WRITE_IDLE_S: Final = 5.0  # a connection that was idle for longer may be dead, and a write lost
_KEEP_ALIVE: Final = re.compile(r"timeout=(\d{1,6})")
_OLDEST: Final = {
    "1.1": ssl.TLSVersion.TLSv1_1, "1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3,
}  # fmt: skip
_MARGIN_S: Final = 1.0  # a BMC closes an idle connection a little before we would use it

Reads = dict[str, Any]


class Wire(requests.Session):
    """The requests of one account.  ``during`` says which call a thread's requests belong to.

    ``token`` or ``basic`` is what each request shows, but those made ``bare``.
    """

    def __init__(self, account: Account, conf: Conf) -> None:
        super().__init__()
        self.trust_env = False  # neither proxies nor .netrc are meant for BMCs
        self._token: str | None = None
        self._tokens: deque[str] = deque(maxlen=4)
        self.basic: tuple[str, str] | None = None
        self.is_proven = account.username is None  # what is shown, if anything, was honoured once
        self._origin, self._conf = _origin(account.address), conf.redfish
        self._keep_s = float(conf.redfish.connection_idle_time)
        self._used_at: float | None = None
        self._mine = threading.local()
        self.headers["Connection"] = "keep-alive" if self._keep_s else "close"
        self._account, self._kept = account, conf.bmc.requests_at_once
        self._adapter: _Adapter | None = None

    # ------------------------------------------------------------------------- calls

    @contextmanager
    def during(self, call: BmcCall, reads: Reads | None = None) -> Iterator[None]:
        """Make this thread's requests in the name of ``call``; ``reads`` keeps what they read."""
        self._mine.call, self._mine.reads = call, {} if reads is None else reads
        self._mine.bare = False
        try:
            yield
        except BaseException:
            self._mine.reads.clear()  # who knows which of it was wrong
            raise
        finally:
            del self._mine.call

    @contextmanager
    def bare(self) -> Iterator[None]:
        """Show nothing to the BMC: this thread is logging in."""
        self._mine.bare = True
        try:
            yield
        finally:
            self._mine.bare = False

    @property
    def shows(self) -> str | tuple[str, str] | None:
        """What this thread's requests show to the BMC."""
        return None if self._mine.bare else self.token or self.basic

    @property
    def call(self) -> BmcCall:
        """The call that this thread's requests belong to."""
        call: BmcCall = self._mine.call
        return call

    @property
    def token(self) -> str | None:
        return self._token

    @token.setter
    def token(self, token: str | None) -> None:
        self._token = token
        if token is not None:
            self._tokens.append(token)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be seen in any error, though a BMC repeats it."""
        return tuple(self._tokens)

    # ---------------------------------------------------------------------- requests

    def request(self, method: Any, url: Any, *args: Any, **more: Any) -> requests.Response:
        """Make one request within the time that is left of the call."""
        self._stay(url)
        reads = self._mine.reads
        key = str(url).partition("#")[0]
        if method == "GET" and key in reads:
            known: requests.Response = reads[key]
            return known
        if method != "GET":
            reads.clear()
        answer = self._timed(method, url, *args, **more)
        if method == "GET" and answer.status_code == requests.codes.ok:
            reads[key] = answer
        return answer

    def _timed(self, method: str, url: str, *args: Any, **more: Any) -> requests.Response:
        call = self.call
        left_s = call.left_s()
        if left_s <= 0:
            raise requests.ReadTimeout("no time is left")
        more["timeout"] = (
            min(self._conf.connect_timeout, left_s), min(self._conf.read_timeout, left_s),
        )  # fmt: skip
        self._freshen(method, call.clock)
        if method not in _HARMLESS and not self._mine.bare:
            call.assert_lease()
        began_at = call.clock()
        try:
            answer = super().request(method, url, *args, **self._shown(more) | {"stream": True})
            with answer:
                answer._content = _read(answer, call)  # noqa: SLF001
        except requests.RequestException:
            self.hang_up()  # the next request must not meet what this one died of
            raise
        self._used_at = call.clock()
        took_s = self._used_at - began_at
        call.took(took_s)
        LOG.debug("%s %s: %s in %.3f s", method, url, answer.status_code, took_s)
        _require_no_page(answer)
        self._learn(answer)
        return answer

    def _shown(self, more: dict[str, Any]) -> dict[str, Any]:
        match self.shows:
            case str() as token:
                return more | {"headers": (more.get("headers") or {}) | {"X-Auth-Token": token}}
            case tuple() as basic:
                return more | {"auth": basic}
            case _:
                return more

    def _freshen(self, method: str, clock: Callable[[], float]) -> None:
        """Begin anew where the kept connection was idle for so long that it may be dead."""
        if self._used_at is None:
            return
        idle_s = clock() - self._used_at
        if idle_s > (self._keep_s if method == "GET" else min(self._keep_s, _WRITE_IDLE_S)):
            self.hang_up()

    def _learn(self, answer: requests.Response) -> None:
        """Note how long the BMC keeps connections; an answer that leads away is none."""
        said = _KEEP_ALIVE.search(answer.headers.get("Keep-Alive", ""))
        if said is not None:
            self._keep_s = min(self._keep_s, max(float(said[1]) - _MARGIN_S, 0.0))
        if answer.is_redirect:
            raise requests.exceptions.InvalidURL(f"redirected to {answer.headers['Location']}")
        if answer.ok and self.shows is not None:
            self.is_proven = True

    def hang_up(self) -> None:
        """Close the connections that nobody uses now."""
        self._used_at = self._adapter = None

    def get_adapter(self, url: str | bytes) -> HTTPAdapter:
        """Keep as many connections as the BMC gets calls at a time."""
        adapter = self._adapter
        if adapter is None:
            context = _context(self._account) if self._origin[0] == "https" else None
            adapter = self._adapter = _Adapter(context, self._kept)
        return adapter

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Follow within the BMC only: what is sent carries a password or a token."""
        target = super().get_redirect_target(resp)
        if target is None:
            return None
        absolute = urllib.parse.urljoin(str(resp.url), target)
        return target if _origin(absolute) == self._origin else None

    def _stay(self, url: str) -> None:
        if _origin(url) != self._origin:
            raise requests.exceptions.InvalidURL(
                f"it points to {urllib.parse.urlsplit(url).netloc}"
            )


class _Adapter(HTTPAdapter):
    """Connections in one TLS context, which holds what they trust."""

    def __init__(self, context: ssl.SSLContext | None, kept: int) -> None:
        self._context = context
        super().__init__(pool_connections=1, pool_maxsize=kept)

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        super().init_poolmanager(*args, **more | {"ssl_context": self._context})

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Leave the authorities to the context: loading them takes longer than a handshake."""
        conn.ca_certs = conn.ca_cert_dir = None
        conn.cert_reqs = "CERT_REQUIRED" if verify else "CERT_NONE"


def _context(account: Account) -> ssl.SSLContext:
    """Return the TLS context of all accounts that trust the same.  Raises SSLError."""
    verify, path = account.verify, None
    if verify:
        path = verify if isinstance(verify, str) else certifi.where()
    try:
        changed_at = Path(path).stat().st_mtime_ns if path else 0
        return _made(path, changed_at, account.tls_minimum_version, account.tls_ciphers)
    except OSError as exc:  # those of TLS are such, too
        what = exc.strerror or str(exc)
        raise requests.exceptions.SSLError(f"{what} ({path or account.tls_ciphers})") from exc


@functools.lru_cache(maxsize=32)
def _made(
    path: str | None, changed_at: int, oldest: str | None, ciphers: str | None
) -> ssl.SSLContext:
    """``changed_at``: when the authorities at ``path`` were last changed; they are read again."""
    context = urllib3_ssl.create_urllib3_context()
    if oldest:
        context.minimum_version = _OLDEST[oldest]
    if ciphers:
        context.set_ciphers(ciphers)
    context.check_hostname = path is not None
    context.verify_mode = ssl.CERT_NONE if path is None else ssl.CERT_REQUIRED
    if path is not None:
        is_folder = Path(path).is_dir()
        context.load_verify_locations(**{"capath" if is_folder else "cafile": path})
    return context


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _require_no_page(answer: requests.Response) -> None:
    """A page that says "please wait" is no answer, whatever its status: nothing was done."""
    if answer.ok and answer.content and "html" in answer.headers.get("Content-Type", ""):
        raise requests.exceptions.ContentDecodingError("its answer is not JSON")


def _read(answer: requests.Response, call: BmcCall) -> bytes:
    """Read the body; one that drips, or never ends, is given up."""
    body = bytearray()
    for chunk in answer.iter_content(_CHUNK):
        body += chunk
        if call.left_s() <= 0:
            raise requests.ReadTimeout("no time is left")
        if len(body) > _MOST_BYTES:
            raise requests.ConnectionError(f"an answer of more than {_MOST_BYTES >> 20} MiB")
    return bytes(body)
