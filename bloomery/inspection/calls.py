"""The action api-call: a GET request of a rule, limited in time and size.

Rules may reach the network of the service, but not loopback and link-local addresses (metadata
services, neighbours), unless the operator allows them.  Redirects are not followed, and the answer
is discarded.
"""

from __future__ import annotations

import http.client
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors, fetching
from bloomery.conf.inspection import InspectionRules
from bloomery.fetching import Connection, FetchRefused, Resolve

_MOST_TIMEOUT_S: Final = 60.0  # of one try
_MOST_RETRIES: Final = 10
_MOST_PAUSE_S: Final = 30.0
_MOST_HEADERS: Final = 50
_TOTAL_S: Final = 300.0  # of all calls of one inspection, which block a worker
Json = dict[str, Any]
_TRANSIENT: Final = frozenset({429, 500, 502, 503, 504})


def check(
    *, url: str | None = None, headers: Json | None = None, proxies: Any = None, **_others: Any
) -> None:
    """Raise Invalid for arguments that are wrong in any case; None: not known yet."""
    if proxies:
        raise errors.Invalid(reason="api-call takes no proxies here: leave them out")
    _checked_headers(headers or {})
    if url is not None:
        try:
            fetching.checked(url)
        except FetchRefused as exc:
            raise errors.Invalid(reason=f"cannot call {fetching.shown(url)}: {exc}") from exc


class _TryAgain(Exception):
    """A failure that may be temporary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Makes the api-calls of one inspection until ``until_s`` on the monotonic clock."""

    conf: InspectionRules
    until_s: float
    sleep: Callable[[float], None] = time.sleep
    resolve: Resolve = fetching.resolved

    @classmethod
    def of(cls, conf: InspectionRules) -> Caller:
        return cls(conf=conf, until_s=time.monotonic() + _TOTAL_S)

    def __call__(
        self,
        *,
        url: str,
        headers: Mapping[str, Any] | None = None,
        proxies: Mapping[str, Any] | None = None,
        timeout: float = 5,
        retries: int = 3,
        backoff_factor: float = 0.3,
    ) -> None:
        """GET ``url`` with retries after doubling pauses; raise Invalid unless it answers 2xx."""
        check(url=url, proxies=proxies)
        lines = _checked_headers(headers or {})
        timeout_s = min(float(timeout) or 1.0, _MOST_TIMEOUT_S)
        pauses = [backoff_factor * 2**n for n in range(min(retries, _MOST_RETRIES))]
        for pause_s in [*pauses, None]:
            try:
                return self._ask(fetching.checked(url), lines, timeout_s)
            except (FetchRefused, _TryAgain) as exc:
                if pause_s is None or isinstance(exc, FetchRefused):
                    reason = f"cannot call {fetching.shown(url)}: {exc}"
                    raise errors.Invalid(reason=reason) from exc
                self.sleep(min(pause_s, _MOST_PAUSE_S))
        return None

    def _ask(
        self, url: urllib.parse.SplitResult, headers: Mapping[str, str], timeout_s: float
    ) -> None:
        """Make one request.

        Raises FetchRefused, or _TryAgain, unless the answer is 2xx and short.
        """
        now_s = time.monotonic()
        if now_s >= self.until_s:
            raise FetchRefused("the calls of the rules together take longer than they may")
        connection = Connection(url, self._addresses, min(now_s + timeout_s, self.until_s))
        most = self.conf.api_call_most_bytes
        answer: http.client.HTTPResponse | None = None
        try:
            connection.request("GET", fetching.target(url), headers={**fetching.HEADERS, **headers})
            answer = connection.getresponse()
            size = len(connection.content(answer, most))
        except (OSError, http.client.HTTPException, ValueError) as exc:
            raise _TryAgain(connection.why(exc, "it takes longer than its timeout")) from exc
        finally:
            if answer is not None:
                answer.close()
            connection.end()
        if size > most:
            raise FetchRefused("its answer is longer than api_call_most_bytes")
        if answer.status in _TRANSIENT:
            raise _TryAgain(f"the server answers {answer.status}")
        if not 200 <= answer.status < 300:
            raise FetchRefused(f"the server answers {answer.status}")

    def _addresses(self, host: str, port: int) -> Iterator[tuple[Any, ...]]:
        return fetching.reachable(
            self.resolve(host, port), "[inspection_rules]api_call_allow_local",
            allow_local=self.conf.api_call_allow_local,
        )  # fmt: skip


def _checked_headers(headers: Mapping[str, Any]) -> dict[str, str]:
    lines = {str(name): str(value) for name, value in headers.items()}
    text = "".join([*lines, *lines.values()])
    if len(lines) > _MOST_HEADERS or any(c in text for c in "\r\n\0") or not text.isascii():
        raise errors.Invalid(
            reason=f"headers takes up to {_MOST_HEADERS} of one line of ASCII characters each",
        )
    return lines
