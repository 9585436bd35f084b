"""Keep pages of other sites from using a service that asks for no login.

    browsers.Guard(conf).refusal(environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN"))

A browser on an operator's machine sends to loopback what any page asks it to.  Two headers, which
no page can choose, tell such requests: ``Origin`` names the page's site, and ``Host`` the name by
which the browser came here.  A page whose name was made to lead here (DNS rebinding) has its own
name in both; IP addresses cannot be made to lead elsewhere.
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
_MOST_SHOWN: Final = 200


class Refusal(NamedTuple):
    status: int
    message: str


class Site(NamedTuple):
    """What a URL, an Origin or a Host names; without a scheme it is a Host."""

    scheme: str
    host: str
    port: int | None


class Guard:
    """Looks at requests where [DEFAULT]auth_strategy is noauth; elsewhere at none."""

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
        self.refusal = functools.lru_cache(maxsize=64)(self._refusal)  # clients ask alike

    def _refusal(self, host: str | None, origin: str | None) -> Refusal | None:
        """Return what answers a page that may not use the service, and a name not its own."""
        if not self._is_on:
            return None
        if host and not self._may_be_called(_site(f"//{host}").host):
            return Refusal(421, self._not_here(host))
        if origin and not self._may_ask(_site(origin), _site(f"//{host or ''}")):
            return Refusal(
                403,
                f"cannot serve pages of {origin[:_MOST_SHOWN]}: name it in [cors]allowed_origin, "
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
        """Is it a page of this service, by whichever name, or of a site that is allowed?"""
        if self._may_all or origin in self._sites:
            return True
        port = own.port or _PORTS.get(origin.scheme)
        return bool(own.host) and origin == Site(origin.scheme, own.host, port)

    def _not_here(self, host: str) -> str:
        here = "its IP addresses" if self._is_exposed else "loopback"
        return (
            f"cannot serve {host[:_MOST_SHOWN]}: without a login this service answers to {here} "
            "and to the name in [api]public_endpoint; ask there, or set that option"
        )


def _sites(urls: Iterable[str]) -> set[Site]:
    """Return what URLs name; one that names no host would stand for the origin ``null``."""
    return {site for site in map(_site, urls) if site.host}


def _site(url: str) -> Site:
    """Return what a URL names; what is no URL names no host, as the origin ``null`` does."""
    try:
        parts = urlsplit(url.lower())
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return Site("", "", None)
    return Site(parts.scheme, (parts.hostname or "").rstrip("."), port)
