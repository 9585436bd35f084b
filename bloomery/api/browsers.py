"""Keep web pages of other sites from using a service that asks for no login.

    browsers.Guard(conf).refusal(environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN"))

A browser on an operator's machine sends requests of any page to loopback.  Two headers identify
such requests, and no page can choose them: ``Origin`` names the page's site, and ``Host`` the name
that the browser resolved.  A page that uses DNS rebinding has its own name in both headers; IP
addresses cannot be rebound.

Web sockets are checked with a login, too: no browser asks before it opens one of another site, and
it adds the password that it remembers.
"""

from __future__ import annotations

import functools
import ipaddress
import socket
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from bloomery.conf import Conf

ANY: Final = "*"
_PORTS: Final = {"http": 80, "https": 443}
_MOST_CHARS: Final = 200


class Refusal(NamedTuple):
    status: int
    message: str


class Site(NamedTuple):
    """The scheme, host and port of a URL, an Origin or a Host; a Host has no scheme."""

    scheme: str
    host: str
    port: int | None


class Guard:
    """Check requests where [DEFAULT]auth_strategy is noauth, and web sockets everywhere."""

    def __init__(self, conf: Conf) -> None:
        self._is_on = conf.default.auth_strategy == "noauth"
        self._is_exposed = conf.api.insecure_listen
        endpoints = (conf.api.public_endpoint, conf.orchestration.public_endpoint)
        self._may_all = ANY in conf.cors.allowed_origin
        own = _sites(url for url in endpoints if url)
        self._sites = own | _sites(conf.cors.allowed_origin)
        self._names = {site.host for site in own}
        if self._is_exposed:
            listening = (conf.api.host_ip, conf.orchestration.host_ip, socket.gethostname())
            self._names |= {name.lower() for name in listening if name}
        # clients repeat the same headers
        self.refusal = functools.lru_cache(maxsize=64)(self._refusal)

    def _refusal(
        self, host: str | None, origin: str | None, is_web_socket: bool = False
    ) -> Refusal | None:
        """Return the refusal for a foreign page or a foreign Host; None if the request may pass."""
        if not self._is_on and not is_web_socket:
            return None
        if self._is_on and host and not self._may_be_called(_site(f"//{host}").host):
            here = "its IP addresses" if self._is_exposed else "loopback"
            return Refusal(
                421,
                f"cannot serve {host[:_MOST_CHARS]}: without a login this service answers to "
                f"{here} and to the name in [api]public_endpoint; ask there, or set that option",
            )
        if origin and not self._may_ask(_site(origin), _site(f"//{host or ''}")):
            return Refusal(
                403,
                f"cannot serve pages of {origin[:_MOST_CHARS]}: name it in [cors]allowed_origin, "
                "if its pages may do all that an operator may",
            )
        return None

    def _may_be_called(self, host: str) -> bool:
        if host in self._names or host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return self._is_exposed or address.is_loopback

    def _may_ask(self, origin: Site, own: Site) -> bool:
        """Is the origin a page of this service, by any of its names, or an allowed site?"""
        if self._may_all or origin in self._sites:
            return True
        port = own.port or _PORTS.get(origin.scheme)
        return bool(own.host) and origin == Site(origin.scheme, own.host, port)


def _sites(urls: Iterable[str]) -> set[Site]:
    """Return the sites of URLs; a URL without a host would equal the origin ``null``."""
    return {site for site in map(_site, urls) if site.host}


def _site(url: str) -> Site:
    """Return the site of a URL; text that is no URL has no host, as the origin ``null``."""
    try:
        parts = urlsplit(url.lower())
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return Site("", "", None)
    return Site(parts.scheme, (parts.hostname or "").rstrip("."), port)
