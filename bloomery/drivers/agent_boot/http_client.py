"""Downloads by HTTP from servers that operators and users name, with the options of [DEFAULT]."""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

import urllib3
from oslo_utils import strutils

from bloomery import errors, secrets
from bloomery.conf.default import Default

Headers = Mapping[str, str]

_RETRIES: Final = 3
_WHY: Final = (
    (urllib3.exceptions.NameResolutionError, "the name of the server is not known"),
    (urllib3.exceptions.NewConnectionError, "the server takes no connection"),
    (urllib3.exceptions.TimeoutError, "the server does not answer in time"),
    (
        urllib3.exceptions.SSLError,
        "the server's certificate is not trusted ([DEFAULT]webserver_verify_ca)",
    ),
    (urllib3.exceptions.ProtocolError, "the connection broke off"),
    (urllib3.exceptions.LocationParseError, "this is no URL"),
    (
        urllib3.exceptions.ResponseError,
        f"its server redirects in a circle, or more than {_RETRIES} times",
    ),
)


class HttpClient:
    def __init__(
        self, conf: Default, *, keeps_scheme: bool = False, timeout_s: float | None = None
    ) -> None:
        """``keeps_scheme``: refuse redirects to another scheme.

        ``timeout_s``: ask once, for so long; by default again and again, as [DEFAULT] says.  Raises
        CannotStart for a missing certificate file.
        """
        self._timeout = urllib3.Timeout(timeout_s or conf.webserver_connection_timeout)
        self.trust = _trust(conf.webserver_verify_ca)
        repeats, kind = (
            None if timeout_s is None else 0,
            SameScheme if keeps_scheme else urllib3.Retry,
        )
        self._retries = kind(_RETRIES, connect=repeats, read=repeats)

    @contextlib.contextmanager
    def get(self, url: str, headers: Headers, method: str = "GET") -> Iterator[Any]:
        """Yield the answer, its body unread.  Raises urllib3's HTTPError, StepFailure."""
        with urllib3.PoolManager(**self.trust) as pool:
            answer = pool.request(
                method, url, headers=dict(login(url)) | dict(headers), timeout=self._timeout,
                preload_content=False, retries=self._retries,
            )  # fmt: skip
            try:
                yield answer
            finally:
                answer.close()

    def begin(
        self, method: str, url: str, headers: Headers, most: int
    ) -> tuple[int, Headers, bytes]:
        """Return status, headers and the beginning of a body.  Raises urllib3's HTTPError."""
        with self.get(url, headers, method) as answer:
            return answer.status, answer.headers, answer.read(most) if most else b""

    def read(self, url: str, headers: Headers, most: int) -> tuple[int, Headers, bytes]:
        """Return status, headers and body of a small document.  Raises StepFailure."""
        address = secrets.mask_address(url)
        try:
            with self.get(url, headers) as answer:
                body = answer.read(most + 1, decode_content=True)
                if len(body) > most:
                    raise errors.StepFailure(
                        reason=f"cannot fetch {address}: it has more than {most} bytes"
                    )
                return answer.status, answer.headers, body
        except urllib3.exceptions.HTTPError as exc:
            raise errors.StepFailure(reason=f"cannot fetch {address}: {why(exc)}") from exc


class SameScheme(urllib3.Retry):
    def increment(self, *args: Any, **more: Any) -> Self:
        """Raise StepFailure for a redirect to another scheme."""
        response, url = more.get("response"), more.get("url", args[1] if len(args) > 1 else None)
        location = response.get_redirect_location() if response is not None else None
        scheme = urllib.parse.urlsplit(location).scheme if location else ""
        if response is not None and scheme and scheme != urllib.parse.urlsplit(str(url)).scheme:
            response.close()
            raise errors.StepFailure(
                reason=f"cannot fetch {secrets.mask_address(str(url))}: its server redirects to "
                f"another scheme, {secrets.mask_address(str(location))}; name the final URL",
            )
        return super().increment(*args, **more)


def login(url: str) -> Headers:
    """Return the header with the login of a URL; redirects drop it."""
    user = urllib.parse.urlsplit(url).netloc.rpartition("@")[0]
    return urllib3.make_headers(basic_auth=urllib.parse.unquote(user)) if user else {}


def why(exc: urllib3.exceptions.HTTPError) -> str:
    fault = getattr(exc, "reason", None) or exc
    return next((reason for kind, reason in _WHY if isinstance(fault, kind)), type(fault).__name__)


def _trust(verify_ca: str) -> dict[str, Any]:
    """Return urllib3's arguments for the verification of servers."""
    try:
        verify = strutils.bool_from_string(verify_ca, strict=True)
    except ValueError:
        path = Path(verify_ca)
        if not path.exists():
            raise errors.CannotStart(
                reason=f"cannot use [DEFAULT]webserver_verify_ca {verify_ca}: there is no such "
                "file or folder; name one, or say True or False",
            ) from None
        return {"ca_cert_dir" if path.is_dir() else "ca_certs": verify_ca}
    return {} if verify else {"cert_reqs": "CERT_NONE"}
