"""The HTTP requests to one BMC: time limits, kept connections, and no other hosts.

Each request has the time left of its call, is sent once (the gateway and the steps repeat), goes
only to its BMC, and is timed.  Documents read within an attempt are cached until a write.
"""

from __future__ import annotations

import base64
import contextlib
import email.utils
import functools
import http.client
import json as json_codec
import logging
import re
import ssl
import sys
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import certifi
import urllib3
from urllib3 import exceptions as urllib3_errors
from urllib3.util import ssl_ as urllib3_ssl

from bloomery import parsing
from bloomery.conf import Conf
from bloomery.drivers.bmc.gateway import BmcCall
from bloomery.drivers.redfish import no_answer, shapes
from bloomery.drivers.redfish.driver_info import Account
from bloomery.drivers.redfish.no_answer import Limits, NoAnswer

LOG = logging.getLogger(__name__)
# urllib3 warns of connections beyond those that are kept.
logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)

_MOST_BYTES: Final = 32 << 20
_CHUNK: Final = 1 << 16
_MOST_HOPS: Final = 5
_HARMLESS: Final = ("GET", "HEAD")
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_PORTS: Final = {"http": 80, "https": 443}
_HEADERS: Final = {"Accept": "*/*", "User-Agent": "bloomery"}
_MOST_TOKENS: Final = 4  # of a login, hidden in errors
_WRITE_IDLE_S: Final = 5.0  # a longer idle connection may be dead, and a write on it lost
KEEP_ALIVE: Final = re.compile(r"timeout=(\d{1,6})")
_OLDEST: Final = {
    "1.1": ssl.TLSVersion.TLSv1_1, "1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3,
}  # fmt: skip
_LONGEST_RETRY_S: Final = 3600.0  # of a BMC's Retry-After
_INFO: Final = "@Message.ExtendedInfo"
_ASTRAY: Final = "its answer leads away from this BMC"
_MARGIN_S: Final = 1.0  # subtracted from the keep-alive time of the BMC

Reads = dict[str, Any]  # of an attempt: answers by URL, and what ``access`` keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete HTTP answer, with the part of requests' interface that sushy uses."""

    url: str
    status_code: int
    headers: Mapping[str, str]  # case-insensitive
    content: bytes

    @property
    def ok(self) -> bool:
        return self.status_code < http.client.BAD_REQUEST

    def json(self) -> Any:
        """Return the document; that of a refusal as DSP0266 has it.

        Raises ValueError: no JSON, or nested too deep.
        """
        try:
            document = parsing.load_json(self.content)
        except UnicodeDecodeError:
            document = parsing.load_json(self.content.decode("latin-1"))
        return document if self.ok else _error_document(document)

    @property
    def etag(self) -> str | None:
        """The document's ETag, which some BMCs show in the body alone."""
        tag = self.headers.get("ETag")
        if not tag and b"@odata.etag" in self.content:
            document = self.json()
            tag = document.get("@odata.etag") if isinstance(document, dict) else None
        return tag if isinstance(tag, str) and tag else None

    @property
    def retry_after_s(self) -> float | None:
        """The pause that the BMC asks for, at most an hour; None: it asks for none."""
        text = self.headers.get("Retry-After", "").strip()
        if text.isdecimal():
            return min(float(text[:9]), _LONGEST_RETRY_S)
        try:
            at = email.utils.parsedate_to_datetime(text)
        except ValueError:
            return None
        left_s = (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
        return min(max(left_s, 0.0), _LONGEST_RETRY_S)


def _error_document(document: Any) -> dict[str, Any]:
    """Return an error of any shape as an object with a list of messages, each with a severity."""
    document = document if isinstance(document, dict) else {"error": document}
    error = document.get("error")
    error = dict(error) if isinstance(error, dict) else {"message": error} if error else {}
    info = error.get(_INFO) or document.get(_INFO) or []
    info = info if isinstance(info, list) else [info]
    texts = [{"Message": each} if isinstance(each, str) else each for each in info]
    messages = [dict(each) for each in texts if isinstance(each, dict)]
    for each in messages:
        each["Severity"] = each.get("Severity") or each.get("MessageSeverity") or "Warning"
    named = {name: str(error[name]) for name in ("code", "message") if error.get(name)}
    return {"error": {"code": "", **named, _INFO: messages}}


@dataclass(slots=True, kw_only=True)
class _ThreadCall:
    """The call to which the requests of a thread belong.

    ``is_bare``: without a credential.  ``accepted``: the answers of 202.  ``last``: the last one.
    """

    call: BmcCall
    reads: Reads
    is_bare: bool = False
    accepted: list[Answer] = field(default_factory=list)
    last: Answer | None = None


class Wire:
    """The requests of one account; ``during`` sets the call of a thread's requests.

    Each request sends ``token`` or ``basic``, except those made ``bare``.  The class replaces
    sushy's requests.Session, whose cookies, proxies, .netrc and hooks cost twice as much as the
    request.
    """

    __slots__ = (
        "_calls", "_keep_s", "_kept", "_open", "_opened", "_origin", "_pool",
        "_token", "_used_at", "account", "basic", "conf", "is_proven", "secrets",
    )  # fmt: skip

    def __init__(self, account: Account, conf: Conf) -> None:
        self._token: str | None = None
        self.secrets: tuple[str, ...] = ()  # the last tokens, which must not appear in errors
        self.basic: tuple[str, str] | None = None
        self.is_proven = account.username is None  # whether the BMC has accepted the login
        self._origin, self.conf = _origin(account.address), conf.redfish
        self._keep_s = float(conf.redfish.connection_idle_time)
        self._used_at: float | None = None
        self._calls: dict[int, _ThreadCall] = {}  # by thread; a thread has none between its calls
        self.account, self._kept = account, conf.bmc.requests_at_once
        self._open = ("redfish", account.root.strip("/"))  # need no login, by DSP0266
        self._opened: str | None = None  # the last document that needed the credential
        self._pool: urllib3.HTTPConnectionPool | None = None

    # ------------------------------------------------------------------------- calls

    @contextmanager
    def during(self, call: BmcCall, reads: Reads | None = None) -> Iterator[None]:
        """Make this thread's requests part of ``call``; ``reads`` caches their answers."""
        thread_call = _ThreadCall(call=call, reads={} if reads is None else reads)
        thread = threading.get_ident()
        self._calls[thread] = thread_call
        try:
            yield
        except BaseException as exc:
            if isinstance(exc, shapes.ODD):
                answers = [each for each in thread_call.reads.values() if isinstance(each, Answer)]
                with contextlib.suppress(ValueError):  # no JSON, which is said without a note
                    exc.add_note(shapes.describe((each.url, each.json()) for each in answers))
            thread_call.reads.clear()  # a cached document may have caused the error
            raise
        finally:
            del self._calls[thread]

    @contextmanager
    def knowing(self, url: str, content: bytes | None) -> Iterator[None]:
        """Answer this thread's requests of ``url`` with a document, if there is one."""
        reads = self._thread_call.reads
        if content is not None:
            headers = urllib3.HTTPHeaderDict()
            reads[url] = Answer(url=url, status_code=200, headers=headers, content=content)
        try:
            yield
        finally:
            reads.pop(url, None)

    @contextmanager
    def bare(self) -> Iterator[None]:
        """Send no credential: this thread is logging in."""
        thread_call = self._thread_call
        thread_call.is_bare = True
        try:
            yield
        finally:
            thread_call.is_bare = False

    @property
    def _thread_call(self) -> _ThreadCall:
        return self._calls[threading.get_ident()]

    @property
    def reads(self) -> Reads:
        """What this thread's attempt has read; empty after a write."""
        return self._thread_call.reads

    @property
    def shows(self) -> str | tuple[str, str] | None:
        """The credential of this thread's requests."""
        return None if self._thread_call.is_bare else self.token or self.basic

    @property
    def accepted(self) -> list[Answer]:
        """The answers of 202 to this thread's writes, which may name tasks."""
        return self._thread_call.accepted

    @property
    def last(self) -> Answer | None:
        """The last answer to this thread."""
        return self._thread_call.last

    def still_opens(self, url: str) -> bool:
        """Return whether the credential opens another document than ``url``, as it did before.

        Asked after a refusal of ``url``: some BMCs answer 401 for one action or document alone.
        """
        opened = self._opened
        if opened is None or opened == url:
            return False
        self._thread_call.reads.pop(opened, None)
        return self.request("GET", opened).ok

    @property
    def call(self) -> BmcCall:
        """The call of this thread's requests."""
        return self._thread_call.call

    @property
    def credential(self) -> dict[str, str]:
        """The header that shows the login; none before the login."""
        if self._token:
            return {"X-Auth-Token": self._token}
        return {"Authorization": f"Basic {basic_credential(*self.basic)}"} if self.basic else {}

    @property
    def token(self) -> str | None:
        return self._token

    @token.setter
    def token(self, token: str | None) -> None:
        self._token = token
        if token is not None:
            self.secrets = (*self.secrets, token)[-_MOST_TOKENS:]

    # ---------------------------------------------------------------------- requests

    def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        **_ignored: Any,
    ) -> Answer:
        """Make one request within the call's time, with requests' signature.

        Redirects are followed within the BMC, writes only if they stay writes.  Raises NoAnswer.
        """
        reads = self._thread_call.reads
        key = url.partition("#")[0]
        if method == "GET" and key in reads:
            answer: Answer = reads[key]
            return answer
        if method != "GET":
            reads.clear()
        body = None if json is None else json_codec.dumps(json).encode()
        for _ in range(_MOST_HOPS):
            answer = self._timed(method, url, body, headers or {})
            location = answer.headers.get("Location")
            if answer.status_code not in _REDIRECTS or location is None:
                break
            url = urllib.parse.urljoin(url, location)
            is_same = method in _HARMLESS or answer.status_code in (307, 308)
            if _origin(url) != self._origin or not is_same:  # requests carry credentials
                raise NoAnswer(f"{_ASTRAY}: redirected to {location}")
        else:
            raise NoAnswer(f"its answers lead in a circle: {url}")
        if method == "GET" and answer.status_code == http.client.OK:
            reads[key] = answer
        if method != "GET" and answer.status_code == http.client.ACCEPTED:
            self._thread_call.accepted.append(answer)
        return answer

    def _timed(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        """Make a request, unless the lease is lost; learn from its answer what the login opens."""
        call, used_at = self.call, self._used_at
        if _origin(url) != self._origin:
            raise NoAnswer(f"{_ASTRAY}: it points to {urllib.parse.urlsplit(url).netloc}")
        idle_s = 0.0 if used_at is None else call.clock() - used_at
        if idle_s > (self._keep_s if method == "GET" else min(self._keep_s, _WRITE_IDLE_S)):
            self.hang_up()  # connections that were idle for so long may be dead
        if method not in _HARMLESS and not self._thread_call.is_bare:
            call.assert_lease()
        kept = "keep-alive" if self.conf.connection_idle_time else "close"
        all_headers = _HEADERS | {"Connection": kept} | dict(headers)
        if body is None and method not in _HARMLESS:
            all_headers["Content-Length"] = "0"
        all_headers |= {} if self._thread_call.is_bare else self.credential
        began_at = call.clock()
        try:
            answer = self._exchange(method, url, body, all_headers)
        except NoAnswer:
            self.hang_up()  # the connection may be broken
            raise
        self._used_at = call.clock()
        took_s = self._used_at - began_at
        call.took(took_s)
        LOG.debug("%s %s: %s in %.3f s", method, url, answer.status_code, took_s)
        _require_no_page(answer)
        keep_alive = KEEP_ALIVE.search(answer.headers.get("Keep-Alive", ""))
        if keep_alive is not None:
            self._keep_s = min(self._keep_s, max(float(keep_alive[1]) - _MARGIN_S, 0.0))
        self._thread_call.last = answer
        path = urllib.parse.urlsplit(url).path.strip("/")
        if answer.ok and self.shows is not None and path not in self._open:
            self.is_proven = True
            self._opened = url if method == "GET" else self._opened
        return answer

    def _exchange(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        """Send a request and read its answer, on as many connections as the BMC gets calls."""
        call, response, handled = self.call, None, sys.exception()
        began_at, left_s = call.clock(), call.left_s()
        if left_s <= 0:
            raise NoAnswer("no time was left for another request", was_cut_short=True)
        limits = Limits(conf=self.conf, all_s=left_s)
        timeout = urllib3.Timeout(connect=limits.connect.seconds, read=limits.silence.seconds)
        try:
            pool = self._pool
            if pool is None:
                scheme, host, port = self._origin
                pool = urllib3.HTTPConnectionPool(host, port, maxsize=self._kept)
                if scheme == "https":
                    pool = urllib3.HTTPSConnectionPool(
                        host, port, maxsize=self._kept, ssl_context=tls_context(self.account)
                    )
                self._pool = pool
            parts = urllib.parse.urlsplit(url)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            response = pool.urlopen(
                method, target, body, headers, timeout=timeout,
                retries=False, redirect=False, assert_same_host=False, preload_content=False,
            )  # fmt: skip
            content = _read(response, call)
        except (urllib3_errors.HTTPError, http.client.HTTPException, OSError) as exc:
            waited_s = call.clock() - began_at
            raise no_answer.explain(
                exc,
                limits,
                waited_s,
                is_reading=response is not None,
                may_be_tls=self._origin[0] == "http" and not self.is_proven,
                handled=handled,
            ) from None
        finally:
            if response is not None:
                response.release_conn()
        return Answer(
            url=url, status_code=response.status, headers=response.headers, content=content
        )

    def is_expired(self, now: float) -> bool:
        """Return whether the connections, if any, are idle for longer than they are kept."""
        return not self._calls and (self._used_at is None or now - self._used_at > self._keep_s)

    @property
    def place(self) -> tuple[str, int, ssl.SSLContext | None]:
        """The BMC's host, port and TLS context.  Raises NoAnswer."""
        scheme, host, port = self._origin
        return host, port or 0, tls_context(self.account) if scheme == "https" else None

    def path_of(self, link: str) -> str | None:
        """Return the path and query of a link of this BMC; None for one that leads away."""
        parts = urllib.parse.urlsplit(urllib.parse.urljoin(self.account.address, link))
        is_ours = _origin(parts.geturl()) == self._origin
        return parts._replace(scheme="", netloc="", fragment="").geturl() if is_ours else None

    def hang_up(self) -> None:
        """Close the idle connections."""
        self._used_at = self._pool = None

    def close(self) -> None:
        """Keep the connections: sushy calls this when a root object is collected."""


def tls_context(account: Account) -> ssl.SSLContext:
    """Return the TLS context of an account, shared by equal settings.  Raises NoAnswer."""
    verify, path = account.verify, None
    if verify:
        path = verify if isinstance(verify, str) else certifi.where()
    try:
        changed_at = Path(path).stat().st_mtime_ns if path else 0
        return _cached_context(path, changed_at, account.tls_minimum_version, account.tls_ciphers)
    except OSError as exc:  # ssl.SSLError included
        what = exc.strerror or str(exc)
        raise no_answer.no_tls(f"{what} ({path or account.tls_ciphers})") from exc


@functools.lru_cache(maxsize=32)
def _cached_context(
    path: str | None, changed_at: int, oldest: str | None, ciphers: str | None
) -> ssl.SSLContext:
    """Return a context; ``changed_at`` is part of the key, so that changed CAs are read again."""
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


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)


def basic_credential(user: str, password: str) -> str:
    """Return the basic credential, in Latin-1 where possible, else in UTF-8."""
    pair = f"{user}:{password}"
    try:
        return base64.b64encode(pair.encode("latin-1")).decode()
    except UnicodeEncodeError:
        return base64.b64encode(pair.encode()).decode()


def _require_no_page(answer: Answer) -> None:
    """Raise NoAnswer for an HTML page, which some BMCs send with status 200 while busy."""
    if answer.ok and answer.content and "html" in answer.headers.get("Content-Type", ""):
        raise NoAnswer("its answer is not JSON")


def _read(response: urllib3.BaseHTTPResponse, call: BmcCall) -> bytes:
    """Read the body within the limits of time and size."""
    body = bytearray()
    while chunk := response.read1(_CHUNK, decode_content=True):
        body += chunk
        if call.left_s() <= 0:
            response.close()
            raise TimeoutError
        if len(body) > _MOST_BYTES:
            response.close()
            raise urllib3_errors.HTTPError(f"an answer of more than {_MOST_BYTES >> 20} MiB")
    return bytes(body)
