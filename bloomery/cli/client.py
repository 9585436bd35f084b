"""A minimal client of both APIs for the commands.

api = Client("http://127.0.0.1:6385")
node = api.post("/v1/nodes", {"driver": "fake-hardware", "name": "web-1"})
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from bloomery import errors, parsing

VERSION = "1.115"
_VERSION = "X-OpenStack-Ironic-API-Version"
_TIMEOUT_S = 30.0
_MOST_SILENT_S = 60.0  # an event stream sends a comment every 15 s
MOST_BYTES = 64 << 20  # of an answer
MOST_RECORDS = 1_000_000  # of a list
_MOST_FAULT = 1 << 20  # bytes of a refusal
_RETRY_S = 1.0  # of an event stream
_SERVER_FAULT = 500


class ApiError(errors.Failure):
    """A refusal or a failed request; ``facts["answer"]``: the status, None without an answer."""

    code = "client.api"
    text = "{reason}"


class Outage:
    """Tolerate a service that does not answer for a while, and report each outage once."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._is_reported = False

    def tolerate(self, exc: ApiError) -> None:
        """Raise refusals of the service itself."""
        answer = exc.facts["answer"]
        if answer is not None and answer < _SERVER_FAULT:
            raise exc
        if not self._is_reported:
            self._say(f"the service does not answer, and is asked again: {exc.facts['reason']}")
        self._is_reported = True

    def end(self) -> None:
        if self._is_reported:
            self._say("the service answers again")
        self._is_reported = False


class Client:
    """JSON over HTTP, one request at a time.  Raises ApiError with the API's own message.

    ``headers`` is called for each request, since a token may be renewed.  ``user``: whose they are.
    """

    def __init__(
        self,
        url: str,
        headers: Callable[[], Mapping[str, str]] = dict,
        tls: ssl.SSLContext | None = None,
        user: str | None = None,
    ) -> None:
        self._url = url.rstrip("/")
        self._user = user
        self._headers = headers
        self._tls = tls

    @property
    def url(self) -> str:
        return self._url

    @property
    def tls(self) -> ssl.SSLContext | None:
        return self._tls

    def headers(self) -> Mapping[str, str]:
        """Return the headers of the login, for one request."""
        return self._headers()

    def latest(self) -> Client:
        """Return a client that asks for the newest version which the service knows."""
        headers = lambda: {**self._headers(), _VERSION: "latest"}  # noqa: E731
        return Client(self._url, headers, self._tls, self._user)

    def get(self, path: str) -> Any:
        return self._ask("GET", path)

    def pages(self, path: str, noun: str) -> Iterator[dict[str, Any]]:
        """Yield the records of all pages of a list; ``path`` has a query.

        Raises ApiError, also for a list that does not end.
        """
        marker, markers, count = "", set[str](), 0
        while True:
            document = self.get(path + (f"&marker={quote(marker)}" if marker else ""))
            records = document.get(noun) if isinstance(document, dict) else None
            if not isinstance(records, list) or not all(isinstance(each, dict) for each in records):
                raise self.unusable(path, f"it has no list {noun}")
            yield from records
            if not document.get("next"):
                return
            marker = str(records[-1].get("uuid", "")) if records else ""
            count += len(records)
            if not marker or marker in markers or count > MOST_RECORDS:
                raise self.unusable(path, f"its next pages do not end, after {count:,} {noun}")
            markers.add(marker)

    def post(self, path: str, body: Any) -> Any:
        return self._ask("POST", path, body)

    def put(self, path: str, body: Any) -> Any:
        return self._ask("PUT", path, body)

    def patch(self, path: str, body: Any) -> Any:
        return self._ask("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self._ask("DELETE", path)

    def stream(self, path: str, headers: Mapping[str, str]) -> Iterator[bytes]:
        """Yield the lines of a streamed answer until the server ends it."""
        request = self._request("GET", path, None, headers)
        with self._answer(request, _MOST_SILENT_S) as answer:
            try:
                yield from answer
            except (OSError, http.client.HTTPException) as exc:
                raise self._unanswered(exc) from exc

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = self._request(method, path, body, {})
        with self._answer(request, _TIMEOUT_S) as answer:
            try:
                content = answer.read(MOST_BYTES + 1)
            except (OSError, http.client.HTTPException) as exc:
                raise self._unanswered(exc) from exc
        is_json = "json" in (answer.headers.get("Content-Type") or "")
        if not content or not is_json:
            return None
        try:
            if len(content) > MOST_BYTES:
                raise ValueError(f"it has more than {MOST_BYTES >> 20} MiB")  # noqa: TRY301
            return parsing.load_json(content)
        except ValueError as exc:
            raise self.unusable(path, str(exc)) from exc

    def _request(
        self, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> urllib.request.Request:
        common = {"Content-Type": "application/json", _VERSION: VERSION}
        return urllib.request.Request(  # noqa: S310  the operator's own URL
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={**common, **self._headers(), **headers},
        )

    def _answer(
        self, request: urllib.request.Request, timeout_s: float
    ) -> http.client.HTTPResponse:
        try:
            answer: http.client.HTTPResponse = urllib.request.urlopen(  # noqa: S310
                request, timeout=timeout_s, context=self._tls
            )
        except urllib.error.HTTPError as exc:
            with exc:
                raise self.refused(exc.code, exc.read(_MOST_FAULT)) from exc
        except (OSError, http.client.HTTPException) as exc:
            raise self._unanswered(exc) from exc
        return answer

    def refused(self, status: int, body: bytes) -> ApiError:
        """Return the error of a refusal, with the API's own message."""
        reason = _message(body)
        if status == http.client.UNAUTHORIZED and self._user is None:
            reason = (
                f"{self._url} needs a login: set OS_USERNAME and OS_PASSWORD, or name a cloud "
                "of clouds.yaml"
            )
        elif status == http.client.UNAUTHORIZED:
            reason = (
                f"{self._url} refuses the name or the password of {self._user}: correct "
                "OS_USERNAME and OS_PASSWORD, or clouds.yaml"
            )
        return ApiError(reason=f"{reason} (HTTP {status})", answer=status)

    def unusable(self, path: str, fault: str) -> ApiError:
        """Return the error of an answer that is not what the API promises."""
        return ApiError(reason=f"cannot use the answer at {self._url}{path}: {fault}", answer=None)

    def _unanswered(self, exc: Exception) -> ApiError:
        reason = getattr(exc, "reason", None) or exc
        return ApiError(
            reason=f"cannot reach {self._url}: {reason}; is the service running?", answer=None
        )


def follow_events(
    client: Client,
    query: Mapping[str, str],
    since: int | None = None,
    pause: Callable[[float], object] = time.sleep,
) -> Iterator[dict[str, Any]]:
    """Yield events of ``/ext/v1/events`` without an end; ``since``: start after this number.

    A lost connection is reopened after the last event.  Raises ApiError where the first connection
    is refused, or a later one for good.
    """
    path = f"/ext/v1/events?{urlencode(query)}"
    last_id, was_answered = since, False
    while True:
        headers = {"Accept": "text/event-stream"}
        if last_id is not None:
            headers["Last-Event-ID"] = str(last_id)
        try:
            for line in client.stream(path, headers):
                was_answered = True
                field, _, value = line.partition(b":")  # comments are keep-alives
                if field == b"data":
                    event = parsing.load_json(value)
                    last_id = event["id"]
                    yield event
        except ApiError as exc:
            answer = exc.facts["answer"]
            if not was_answered or (answer is not None and answer < _SERVER_FAULT):
                raise
        pause(_RETRY_S)


def _message(body: bytes) -> str:
    """Return the error message of either API, or the body as it is."""
    text = body.decode(errors="replace")
    try:
        document = parsing.load_json(text)
        if "error_message" not in document:
            return str(document["error"]["message"])
        fault = document["error_message"]
        if isinstance(fault, str):
            if not fault.startswith("{"):
                return fault
            fault = parsing.load_json(fault)
        return str(fault.get("faultstring") or fault.get("description"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return text
