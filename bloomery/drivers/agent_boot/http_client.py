"""Downloads by HTTP from servers that operators and users name, with the options of [DEFAULT].

Before a flow boots a machine for such files, ``check`` asks their servers for them:

    http_client.check(conf, [RemoteFile(name="instance_info/image_source", url=url)])
"""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

import urllib3

from bloomery import errors, parsing, secrets
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.drivers.base import RemoteFile

Headers = Mapping[str, str]

_SCHEMES: Final = ("http://", "https://", "oci://")  # of files that can be checked
_BEGINNING: Final = 256  # bytes that tell a web page from a file
_PAGES: Final = (b"<!doctype html", b"<html")
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
        self.trust: dict[str, Any] = {}  # urllib3's arguments for the verification of servers
        try:
            if not parsing.boolean(conf.webserver_verify_ca, strict=True):
                self.trust["cert_reqs"] = "CERT_NONE"
        except ValueError:
            path = conf.webserver_verify_ca
            if not Path(path).exists():
                raise errors.CannotStart(
                    reason=f"cannot use [DEFAULT]webserver_verify_ca {path}: there is no such "
                    "file or folder; name one, or say True or False",
                ) from None
            self.trust["ca_cert_dir" if Path(path).is_dir() else "ca_certs"] = path
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


# --------------------------------------------------------------------- checks before a flow


def list_checkable(conf: Conf, files: Iterable[RemoteFile]) -> list[RemoteFile]:
    """Return the files that ``check`` can ask for; none where the option says so."""
    is_on = conf.conductor.preflight_timeout > 0
    return [file for file in files if is_on and file.url.startswith(_SCHEMES)]


def check(conf: Conf, files: Iterable[RemoteFile]) -> None:
    """Raise InvalidParameterValue unless the server of each file hands it out."""
    look(conf, files)


def look(conf: Conf, files: Iterable[RemoteFile]) -> dict[str, Any]:
    """Return what the ``read`` of each file returns, by URL.  Raises as ``check``.

    Sends HEAD.  Where a server refuses HEAD, or sends a web page, the beginning of the file is
    read: signed URLs allow GET alone, and a portal's login page is no image.  A silent server takes
    [conductor]preflight_timeout.
    """
    client = HttpClient(conf.default, timeout_s=conf.conductor.preflight_timeout)
    results: dict[str, Any] = {}
    for file in files:
        try:
            if file.read is not None:
                results[file.url] = file.read(client)
            else:
                _check(client, file.url, file.headers)
        except errors.Failure as exc:
            raise errors.InvalidParameterValue(reason=f"{file.name}: {exc}") from exc
    return results


def _check(client: HttpClient, url: str, headers: Headers) -> None:
    try:
        status, answer, _ = client.begin("HEAD", url, headers, 0)
        beginning = b""
        if status != 200 or answer.get("Content-Type", "").startswith("text/html"):
            some = {"Range": f"bytes=0-{_BEGINNING - 1}"}
            status, answer, beginning = client.begin("GET", url, {**headers, **some}, _BEGINNING)
    except urllib3.exceptions.HTTPError as exc:
        fault = why(exc)
    else:
        if status == 416 or (status == 200 and answer.get("Content-Length") == "0"):
            fault = "the file is empty"
        elif status not in (200, 206):
            fault = f"HTTP {status}"
        elif beginning.lstrip().lower().startswith(_PAGES):
            fault = "its server sends a web page, and no file"
        else:
            return
    raise errors.StepFailure(reason=f"cannot fetch {secrets.mask_address(url)}: {fault}")
