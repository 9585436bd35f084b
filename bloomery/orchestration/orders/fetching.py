"""Guarded requests for templates at URLs that tenants name.

    Fetcher.of(timeout_s=60.0, networks=("10.1.0.0/16",)).text("https://example.org/web.yaml")

Each caller who may create a stack chooses where the request goes (see ``bloomery.fetching``).
Addresses that are not public are refused unless the operator lists their network.  A redirect from
https to http is refused, and so is a compressed answer.  Total time and size are limited.
"""

from __future__ import annotations

import functools
import http.client
import ipaddress
import threading
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from bloomery import errors, fetching
from bloomery.fetching import Address, Connection, FetchRefused, Resolve
from bloomery.orchestration.limits import LIMITS, Limits

MOST_REDIRECTS: Final = 5
PATIENCE_S: Final = 1.0
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
OK: Final = 200
GONE: Final = frozenset({404, 410})

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class NotThere(FetchRefused):
    """The server says that there is nothing behind the URL."""


@functools.cache
def _slots(count: int) -> threading.BoundedSemaphore:
    """Return the semaphore of this process: a slow server keeps a thread for each fetch."""
    return threading.BoundedSemaphore(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """``timeout_s``: for one text with its redirects.  ``networks``: allowed, though not public.

    ``at_once``: most fetches of this process at a time, so that API threads are left.
    """

    timeout_s: float = 60.0
    at_once: int = 2
    networks: tuple[Network, ...] = ()
    limits: Limits = LIMITS
    resolve: Resolve = fetching.resolved

    @classmethod
    def of(
        cls,
        *,
        timeout_s: float,
        networks: Sequence[str] = (),
        limits: Limits = LIMITS,
        at_once: int = 2,
    ) -> Fetcher:
        try:
            parsed = tuple(ipaddress.ip_network(text) for text in networks)
        except ValueError as exc:
            raise errors.CannotStart(
                reason=f"cannot use [orchestration]template_fetch_networks: {exc}"
            ) from exc
        return cls(timeout_s=timeout_s, networks=parsed, limits=limits, at_once=at_once)

    def text(self, url: str) -> str:
        """Return the text behind ``url``."""
        try:
            return self.fetch(url, time.monotonic() + self.timeout_s)
        except FetchRefused as exc:
            raise errors.TemplateUnreadable(
                reason=f"Could not retrieve template {fetching.shown(url)}: {exc}"
            ) from exc

    def fetch(self, url: str, until_s: float) -> str:
        """Return the text behind ``url``, before ``until_s`` of the monotonic clock.

        Raises FetchRefused, and FetchesBusy if other fetches take all slots for ``PATIENCE_S``.
        """
        return self._decoded(self._follow("GET", url, until_s))

    def check(self, url: str, until_s: float) -> None:
        """Ask for the headers behind ``url`` alone.  Raises as ``fetch`` does, and NotThere."""
        self._follow("HEAD", url, until_s)

    def _follow(self, method: str, url: str, until_s: float) -> bytes:
        here = fetching.checked(url)
        slots = _slots(self.at_once)
        if not slots.acquire(timeout=PATIENCE_S):
            raise errors.FetchesBusy(count=self.at_once)
        try:
            for _redirect in range(MOST_REDIRECTS + 1):
                onward, content = self._answer(method, here, until_s)
                if onward is None:
                    return content
                there = fetching.checked(urllib.parse.urljoin(here.geturl(), onward))
                if here.scheme == "https" and there.scheme != "https":
                    raise FetchRefused("it redirects from https to http")
                here = there
            raise FetchRefused(f"it redirects more than {MOST_REDIRECTS} times")
        finally:
            slots.release()

    def _answer(
        self, method: str, url: urllib.parse.SplitResult, until_s: float
    ) -> tuple[str | None, bytes]:
        connection = Connection(url, self.addresses, until_s)
        answer: http.client.HTTPResponse | None = None
        try:
            connection.request(method, fetching.target(url), headers=fetching.HEADERS)
            answer = connection.getresponse()
            if answer.status in REDIRECTS and (onward := answer.getheader("Location")):
                return onward, b""
            if answer.status in GONE:
                raise NotThere(f"the server answers {answer.status}")
            if answer.status != OK:
                raise FetchRefused(f"the server answers {answer.status}")
            if method == "HEAD":
                return None, b""
            if answer.getheader("Content-Encoding", "identity").lower() != "identity":
                raise FetchRefused("the server packs its answer, though it was asked not to")
            return None, connection.content(answer, self.limits.template_bytes)
        except (OSError, http.client.HTTPException, ValueError) as exc:
            too_slow = f"it takes longer than {self.timeout_s:g} s (template_fetch_timeout)"
            raise FetchRefused(connection.why(exc, too_slow)) from exc
        finally:
            if answer is not None:
                answer.close()
            connection.end()

    def _decoded(self, content: bytes) -> str:
        if len(content) > self.limits.template_bytes:
            most = self.limits.template_bytes
            raise FetchRefused(f"it has more than {most} bytes (template_bytes)")
        try:
            return content.decode()
        except UnicodeDecodeError as exc:
            raise FetchRefused("it is not UTF-8; save it as UTF-8") from exc

    def addresses(self, host: str, port: int) -> Iterator[tuple[Any, ...]]:
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
        inner = fetching.embedded(address)
        if any(inner in network for network in self.networks):
            return True
        special = inner.is_multicast or inner.is_reserved or inner.is_unspecified
        return inner.is_global and not special
