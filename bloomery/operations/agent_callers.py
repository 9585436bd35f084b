"""Addresses that agents may call from ([api]agent_networks), and be called at.

Agents have no login, so their addresses are checked.  ``caller`` is the address of a request's
client; a proxy reports it where [oslo_middleware]enable_proxy_headers_parsing is on.
"""

from __future__ import annotations

import functools
import ipaddress
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from bloomery import errors, fetching
from bloomery.conf.api import Api
from bloomery.fetching import Address

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_MOST_URL: Final = 512  # characters: a scheme, a host of up to 255, and a port


def require_inside(conf: Api, caller: str) -> None:
    """Raise NotAuthorized (403) for a caller outside of the agents' networks."""
    if not is_inside(conf, caller):
        raise errors.NotAuthorized(
            reason=f"cannot answer agents at {caller or 'an unknown address'}: it is in no network "
            "of [api]agent_networks",
        )


def is_inside(conf: Api, caller: str) -> bool:
    """May an agent have this address?  Without networks any address is allowed."""
    networks = networks_of_agents(conf)
    return not networks or _is_among(_address(caller), networks)


def is_among(caller: str, option: str, networks: tuple[str, ...]) -> bool:
    """Is the address in one of the option's networks?  Raises CannotStart for a malformed one."""
    return _is_among(_address(caller), parsed(option, networks))


def networks_of_agents(conf: Api) -> tuple[Network, ...]:
    """Read the option.  Raises CannotStart for a malformed network."""
    return parsed("[api]agent_networks", conf.agent_networks)


def parsed(option: str, networks: tuple[str, ...]) -> tuple[Network, ...]:
    """Return the networks.  Raises CannotStart for a malformed one."""
    try:
        return _parsed(networks)
    except ValueError as exc:
        raise errors.CannotStart(
            reason=f"cannot use {option}: networks are allowed, such as 10.0.0.0/8 ({exc})",
        ) from exc


@functools.lru_cache
def _parsed(texts: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


def checked_callback_url(conf: Api, text: str, caller: str) -> str:
    """Return the URL as it is stored; "" for an agent that cannot be called.

    ``caller``: "" behind a proxy, which may replace or forge the machine's address. Raises
    InvalidParameterValue for more than scheme, host and port, and for a host that cannot be this
    agent's.
    """
    if not text:
        return text
    if len(text) > _MOST_URL:
        raise _unfit(f"it has more than {_MOST_URL} characters")
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in fetching.SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise _unfit("it must be an http or https URL, or empty")
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


def _may_be_agent(host: Address, own: Address | None, networks: tuple[Network, ...]) -> bool:
    """May an agent that calls from ``own`` be called at ``host``?"""
    if host == own:
        return True
    try:
        [entry, *_] = fetching.resolved(str(host), 0)
    except OSError:  # no interface of this machine has the address's zone
        return False
    if fetching.is_local(entry):
        return host.is_loopback and own is not None and own.is_loopback
    return not networks or _is_among(host, networks)


def _is_among(address: Address | None, networks: tuple[Network, ...]) -> bool:
    return address is not None and any(address in network for network in networks)


def _address(text: str) -> Address | None:
    """Return an address, IPv4-mapped ones as IPv4; None: a name."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _unfit(why: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(reason=f"cannot take this callback_url: {why}")
