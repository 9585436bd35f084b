"""Find a node's conductor, and call it; in one process a call is a function call."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

from bloomery import errors
from bloomery.rpc.contract import Conductor
from bloomery.rpc.ring import Ring


class Transport(Protocol):
    def proxy(self, host: str) -> Conductor:
        """Return a proxy of the conductor on ``host``.  Raises ConductorUnreached."""

    @property
    def is_connected(self) -> bool | None:
        """Does the message broker answer?  None: there is none."""

    def missing(self) -> list[str]:
        """Return the transport's faults, after a few seconds at most."""

    def close(self) -> None:
        """Close the connections."""


class InProcess:
    """All conductors are in this process: a call is a function call."""

    is_connected = None

    def __init__(self, conductors: Mapping[str, Conductor]) -> None:
        self._conductors = conductors

    def proxy(self, host: str) -> Conductor:
        try:
            return self._conductors[host]
        except KeyError:
            raise errors.ConductorUnreached(
                host=host, reason="it is not in this process, and [DEFAULT]rpc_transport is none"
            ) from None

    def missing(self) -> list[str]:
        return []

    def close(self) -> None: ...


class Client:
    """Find the conductor of a node or a driver on the ring.

    A call that was surely not executed refreshes the ring, once: the node may have moved to another
    host.
    """

    def __init__(self, ring: Ring, transport: Transport) -> None:
        self.ring = ring
        self._transport = transport

    def conductor_for_node(self, *, driver: str, group: str, uuid: str) -> Conductor:
        """Return the conductor of one node.  Raises NoValidHost, TemporaryFailure."""
        return self._conductor(
            lambda _failed: self.ring.host_of_node(driver=driver, group=group, uuid=uuid)
        )

    def conductor_for_driver(self, driver: str) -> Conductor:
        """Return a random conductor of ``driver``.  Raises DriverNotFound."""
        return self._conductor(lambda failed: _random(self.ring.hosts_of_driver(driver), failed))

    def conductor_on(self, host: str) -> Conductor:
        """Return the conductor of one host."""
        return self._conductor(lambda _failed: host)

    def any_conductor(self) -> Conductor:
        """Return a random conductor, for records without a node.  Raises TemporaryFailure."""
        return self._conductor(lambda failed: _random(self.ring.living_hosts(), failed))

    def unreachable(self, hosts: Iterable[str]) -> list[str]:
        """Return those of ``hosts`` that calls from here would not reach."""
        unreachable = []
        for host in hosts:
            try:
                self._transport.proxy(host)
            except errors.TemporaryFailure:
                unreachable.append(host)
        return unreachable

    @property
    def is_connected(self) -> bool | None:
        return self._transport.is_connected

    def missing(self) -> list[str]:
        return self._transport.missing()

    def close(self) -> None:
        self._transport.close()

    def _conductor(self, find_host: Callable[[str | None], str]) -> Conductor:
        return cast(Conductor, _Conductor(find_host, self.ring.forget, self._transport))


class _Conductor:
    """The conductor that ``find_host`` returns, or a second one when the first failed."""

    __slots__ = ("_find_host", "_forget", "_host", "_transport")

    def __init__(
        self,
        find_host: Callable[[str | None], str],
        forget: Callable[[], None],
        transport: Transport,
    ) -> None:
        """Raises what ``find_host`` does."""
        self._find_host, self._forget, self._transport = find_host, forget, transport
        self._host = find_host(None)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return functools.partial(self._call, name)

    def _call(self, name: str, *args: Any, **named: Any) -> Any:
        try:
            return getattr(self._transport.proxy(self._host), name)(*args, **named)
        except errors.ConductorUnreached:
            self._forget()
            host = self._find_host(self._host)
            if host == self._host:
                raise
            self._host = host
        return getattr(self._transport.proxy(self._host), name)(*args, **named)


def _random(hosts: Sequence[str], failed: str | None) -> str:
    """Return a random host, not the failed one if there are others."""
    others = [host for host in hosts if host != failed]
    return random.choice(others or hosts)  # noqa: S311  not used for security
