"""From a node to the conductor that serves it."""

from __future__ import annotations

from collections.abc import Iterable

from bloomery import errors
from bloomery.rpc.contract import Conductor
from bloomery.rpc.ring import Ring
from bloomery.rpc.transports import Transport


class Client:
    """Finds the conductor of a node or a driver on the ring."""

    def __init__(self, ring: Ring, transport: Transport) -> None:
        self.ring = ring
        self._transport = transport

    def conductor_for_node(self, *, driver: str, group: str, uuid: str) -> Conductor:
        """The conductor of one node.  Raises NoValidHost, TemporaryFailure."""
        return self._transport.proxy(self.ring.host_of_node(driver=driver, group=group, uuid=uuid))

    def conductor_for_driver(self, driver: str) -> Conductor:
        """Any conductor that serves ``driver``.  Raises DriverNotFound."""
        return self._transport.proxy(self.ring.hosts_of_driver(driver)[0])

    def any_conductor(self) -> Conductor:
        """Any conductor: for what belongs to no node.  Raises TemporaryFailure."""
        return self._transport.proxy(self.ring.any_host())

    def unreachable(self, hosts: Iterable[str]) -> list[str]:
        """Return those of ``hosts`` that calls from here would not reach."""
        return [host for host in hosts if not self._reaches(host)]

    def _reaches(self, host: str) -> bool:
        try:
            self._transport.proxy(host)
        except errors.TemporaryFailure:
            return False
        return True
