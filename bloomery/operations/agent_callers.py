"""From where agents may call ([api]agent_networks), and where they may be called back.

Agents have no login, so that their addresses count.  A ``caller`` is the address of a request's
client, which a proxy names where [oslo_middleware]enable_proxy_headers_parsing is on.
"""

from __future__ import annotations

import functools
import ipaddress
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

from bloomery import errors, fetching
from bloomery.conf.api import Api
from bloomery.fetching import Address

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def require_inside(conf: Api, caller: str) -> None:
    """Raise NotAuthorized (403) for a caller beyond the networks of agents."""
    if not is_inside(conf, caller):
        raise errors.NotAuthorized(
            reason=f"cannot answer agents at {caller or 'an unknown address'}: it is in no network "
            "of [api]agent_networks",
        )


def is_inside(conf: Api, caller: str) -> bool:
    """Tell whether an agent may be there; with no networks it may be anywhere."""
    networks = networks_of_agents(conf)
    return not networks or _is_among(_address(caller), networks)


def networks_of_agents(conf: Api) -> tuple[Network, ...]:
    """Read the option.  Raises CannotStart for a network that is none."""
    try:
        return _parsed(conf.agent_networks)
    except ValueError as exc:
        raise errors.CannotStart(
            reason=f"cannot use [api]agent_networks: networks are allowed, such as 10.0.0.0/8 "
            f"({exc})",
        ) from exc


@functools.lru_cache
def _parsed(texts: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


def checked_callback_url(conf: Api, text: str, caller: str) -> str:
    """Return the URL as it is stored; "" is an agent that cannot be called.

    ``caller``: "" behind a proxy, which may have the machine's own address, or name any.
    Raises InvalidParameterValue for more than scheme, host and port, and for a host where this
    agent cannot be.
    """
    if not text:
        return text
    parts = _split(text)
    if "@" in parts.netloc or parts.query or parts.fragment or parts.path not in ("", "/"):
        raise _unfit("it takes a scheme, a host and a port, and nothing else")
    host, own = _address(str(parts.hostname)), _address(caller)
    networks = networks_of_agents(conf)
    if host is None and networks:
        raise _unfit("it must have an IP address, as [api]agent_networks has no names")
    if host is not None and not _may_be_agent(host, own, networks):
        raise _unfit("it leads neither to the address that it came from nor to where agents may be "
                     "([api]agent_networks)")  # fmt: skip
    return parts.geturl()


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in fetching.SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise _unfit("it must be an http or https URL, or empty")
    return parts


def _may_be_agent(host: Address, own: Address | None, networks: tuple[Network, ...]) -> bool:
    """Tell whether an agent that calls from ``own`` may be called at ``host``."""
    if host == own:
        return True
    try:
        [entry, *_] = fetching.resolved(str(host), 0)
    except OSError:  # the zone of an address names no interface of this machine
        return False
    if fetching.is_local(entry):
        return host.is_loopback and own is not None and own.is_loopback
    return not networks or _is_among(host, networks)


def _is_among(address: Address | None, networks: tuple[Network, ...]) -> bool:
    return address is not None and any(address in network for network in networks)


def _address(text: str) -> Address | None:
    """Return an address, an IPv4 one that came by a socket of IPv6 as itself; None: a name."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _unfit(why: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(reason=f"cannot take this callback_url: {why}")
