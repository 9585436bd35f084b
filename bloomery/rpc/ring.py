"""Which conductor serves a node: a hash ring over those that are alive.

API and conductors compute the same ring from the same rows.  What a process read is good for
15 seconds; a look-up that finds nobody reads again before it says so.

    ring.host_of_node(driver="redfish", group="", uuid=node_uuid)      # "rack-a"
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Final

from bloomery import errors
from bloomery.db import conductors
from bloomery.db.engine import Database
from bloomery.model.conductor import Conductor, EnabledInterface

if TYPE_CHECKING:
    from tooz import hashring

GOOD_FOR_S: Final = 15.0
PARTITIONS: Final = 2**5  # per host
_MOST_SHOWN: Final = 100  # characters of a name in an error


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFacts:
    """A hardware type as its conductors offer it: interfaces by kind, defaults by kind."""

    name: str
    hosts: tuple[str, ...]
    enabled: dict[str, tuple[str, ...]]
    defaults: dict[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """The conductors and drivers as one read of the database has shown them."""

    read_at: float
    hosts: dict[tuple[str, str], tuple[str, ...]]
    drivers: dict[str, DriverFacts]
    rings: dict[tuple[str, str], hashring.HashRing] = field(default_factory=dict)


def alive(conductors: Iterable[Conductor]) -> list[Conductor]:
    """Return the conductors that may be given work."""
    return [conductor for conductor in conductors if conductor.alive]


class Ring:
    """Finds hosts of nodes and drivers; safe to use from any thread."""

    def __init__(self, db: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._clock = clock
        self._mutex = threading.Lock()
        self._view: _View | None = None

    def forget(self) -> None:
        """Read the database again at the next question."""
        self._view = None

    def host_of_node(self, *, driver: str, group: str, uuid: str) -> str:
        """Return the host that serves a node.

        Raises NoValidHost, or TemporaryFailure when no conductor is alive at all.
        """
        host = self.find_host(driver=driver, group=group, uuid=uuid)
        if host is None:
            self.forget()
            host = self.find_host(driver=driver, group=group, uuid=uuid)
        if host is None:
            raise self._nobody(driver, group)
        return host

    def find_host(self, *, driver: str, group: str, uuid: str) -> str | None:
        """Return the host that serves a node, or None; costs nothing where there is one host."""
        view = self._current()
        hosts = view.hosts.get((group, driver))
        if not hosts:
            return None
        if len(hosts) == 1:
            return hosts[0]
        return self._on_ring(view, (group, driver), uuid)

    def hosts_of_driver(self, name: str) -> tuple[str, ...]:
        """Return every host that serves a hardware type.  Raises DriverNotFound."""
        return self.driver(name).hosts

    def any_host(self) -> str:
        """Return a host that is alive.  Raises TemporaryFailure when none is."""
        if not self._current().hosts:
            self.forget()
        hosts = next(iter(self._current().hosts.values()), None)
        if not hosts:
            raise self._nobody("", "")
        return hosts[0]

    def driver(self, name: str) -> DriverFacts:
        """Return what is known of one hardware type.  Raises DriverNotFound."""
        if name not in self._current().drivers:
            self.forget()
        try:
            return self._current().drivers[name]
        except KeyError:
            advice = f" Reason: {self._absence(name)}."
            raise errors.DriverNotFound(driver=shortened(name), advice=advice) from None

    def drivers(self) -> list[DriverFacts]:
        """Return every hardware type that some living conductor serves, by name."""
        return list(self._current().drivers.values())

    def _nobody(self, driver: str, group: str) -> errors.Failure:
        if not self._current().hosts:
            return errors.TemporaryFailure(reason="No conductor is on line.")
        facts = self._current().drivers.get(driver)
        if facts is None:
            return errors.NoValidHost(reason=self._absence(driver))
        groups = sorted({own for own, name in self._current().hosts if name == driver})
        return errors.NoValidHost(
            reason=f"no conductor serves driver {driver!r} in conductor group "
            f"{shortened(group)!r}; it is served in {', '.join(map(repr, groups))}",
        )

    def _absence(self, driver: str) -> str:
        """Say why nobody serves a driver: it is unknown, or known and not enabled."""
        served, installed = self._current().drivers, installed_types()
        if driver in installed:
            return (
                f"driver {driver!r} is known, but no conductor has it enabled; name it in "
                "[DEFAULT]enabled_hardware_types and restart the conductor; drivers that are "
                f"served: {', '.join(served)}"
            )
        others = [name for name in installed if name not in served]
        not_enabled = f"; known, but not enabled: {', '.join(others)}" if others else ""
        return (
            f"driver {shortened(driver)!r} is unknown; drivers that are served: "
            f"{', '.join(served)}{not_enabled}"
        )

    def _current(self) -> _View:
        view = self._view
        if view is None or self._clock() - view.read_at > GOOD_FOR_S:
            view = self._view = self._read()
        return view

    def _read(self) -> _View:
        with self._db.read() as conn:
            living = alive(conductors.list_all(conn))
            served = conductors.list_interfaces(conn)
        return _View(
            read_at=self._clock(),
            hosts=_hosts(living),
            drivers=_drivers(living, served),
        )

    def _on_ring(self, view: _View, key: tuple[str, str], uuid: str) -> str:
        with self._mutex:
            ring = view.rings.get(key)
            if ring is None:
                ring = view.rings[key] = _ring(view.hosts[key])
        return str(next(iter(ring.get_nodes(uuid.encode()))))


@functools.cache
def installed_types() -> tuple[str, ...]:
    """Return the names of all hardware types that are installed, enabled or not."""
    return tuple(sorted(metadata.entry_points(group="bloomery.hardware.types").names))


def shortened(name: str) -> str:
    """Return a name that a client wrote as an error may show it."""
    return name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}..."


def _ring(hosts: tuple[str, ...]) -> hashring.HashRing:
    """Make a ring.  One host needs none: so tooz is imported by those who have two."""
    from tooz import hashring as rings

    return rings.HashRing(hosts, partitions=PARTITIONS)


def _hosts(living: list[Conductor]) -> dict[tuple[str, str], tuple[str, ...]]:
    hosts: dict[tuple[str, str], tuple[str, ...]] = {}
    for conductor in living:
        for driver in conductor.drivers:
            key = (conductor.conductor_group, driver)
            hosts[key] = (*hosts.get(key, ()), conductor.hostname)
    return hosts


def _drivers(
    living: list[Conductor],
    served: dict[str, list[EnabledInterface]],
) -> dict[str, DriverFacts]:
    names = sorted({driver for conductor in living for driver in conductor.drivers})
    return {name: _facts(name, living, served) for name in names}


def _facts(
    name: str,
    living: list[Conductor],
    served: dict[str, list[EnabledInterface]],
) -> DriverFacts:
    hosts = tuple(conductor.hostname for conductor in living if name in conductor.drivers)
    interfaces = [i for host in hosts for i in served.get(host, ()) if i.hardware_type == name]
    kinds = sorted({interface.kind for interface in interfaces})
    return DriverFacts(
        name=name,
        hosts=hosts,
        enabled={
            kind: tuple(sorted({i.name for i in interfaces if i.kind == kind})) for kind in kinds
        },
        defaults={
            kind: next((i.name for i in interfaces if i.kind == kind and i.default), None)
            for kind in kinds
        },
    )
