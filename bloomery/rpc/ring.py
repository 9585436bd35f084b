"""The hash ring of living conductors: which conductor serves a node, or a driver?

API and conductors compute the same ring from the same rows.  Rows are cached for
``hash_ring_reset_interval``; a lookup without a result reads them again first.

    ring.host_of_node(driver="redfish", group="", uuid=node_uuid)      # "rack-a"

Groups are strict: conductors of other groups do not stand in.  Each read also updates liveness
(``liveness``); a process without a conductor polls in a thread.

All processes of a site must have the same options of the ring.  A conductor stores its own when it
starts and no other one lives; later processes compare.

    ring.option_differences(conn, conf)
    # ["[DEFAULT]hash_partition_exponent is 6 here and 5 for the conductors of this site"]
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import itertools
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.db import conductors, settings
from bloomery.db.engine import Database
from bloomery.model.conductor import Conductor
from bloomery.model.node import RING_BITS, RingKey, RingShare
from bloomery.rpc.liveness import Liveness

LOG = logging.getLogger(__name__)

_MOST_ARCS: Final = 500  # of a conductor in one statement; with more, the rows are not narrowed
_MOST_SHOWN: Final = 100  # characters of a name in an error
_SETTING: Final = "ring_options"
_OPTIONS: Final = (  # group, option: assignment of nodes, and time-outs of liveness
    ("DEFAULT", "hash_partition_exponent"),
    ("DEFAULT", "hash_ring_algorithm"),
    ("conductor", "heartbeat_timeout"),
)
_TIMES: Final = (("DEFAULT", "hash_ring_reset_interval"), ("conductor", "heartbeat_interval"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFacts:
    """A hardware type in the union of its conductors: interfaces by kind, defaults by kind."""

    name: str
    hosts: tuple[str, ...]
    enabled: dict[str, tuple[str, ...]]
    defaults: dict[str, str | None]


class Population(NamedTuple):
    """How many nodes of a driver a group has, and how many ever came; None: nobody counts that.

    Both are equal only where the nodes are the same.
    """

    nodes: int
    arrivals: int | None


class _Hosts:
    """The hosts of some drivers in one group, and their points on the ring.

    The points are those of tooz's HashRing, as Ironic has them.  A node belongs to the first point
    after the hash of its UUID.
    """

    def __init__(self, hosts: tuple[str, ...], options: Default) -> None:
        self.hosts = hosts
        self._options = options
        self._hash = getattr(hashlib, options.hash_ring_algorithm)
        self._arcs: dict[str, tuple[tuple[int, int], ...] | None] = {}
        self._counts: dict[tuple[str, str], tuple[Population, Counter[str | None]]] = {}

    @functools.cached_property
    def _ring(self) -> tuple[list[int], list[str]]:
        """Return the points in order, and the host of each."""
        owners: dict[int, str] = {}
        for host in self.hosts:
            digest = self._hash(host.encode(), usedforsecurity=False)
            for _ in range(2**self._options.hash_partition_exponent):
                digest.update(host.encode())
                owners[int.from_bytes(digest.digest(), "big")] = host
        points = sorted(owners)
        return points, [owners[point] for point in points]

    def host_of(self, uuid: str) -> str:
        if len(self.hosts) == 1:
            return self.hosts[0]
        points, owners = self._ring
        digest = self._hash(uuid.encode(), usedforsecurity=False).digest()
        return owners[bisect.bisect(points, int.from_bytes(digest, "big")) % len(owners)]

    def arcs(self, host: str) -> tuple[tuple[int, int], ...] | None:
        """Return first and last ``nodes.ring_position`` of each arc of the host, in order.

        Positions are rounded, so that a node beside a point may be in the arcs of two hosts.  None:
        any position, for one host, another hash than that of the rows, and too many arcs.
        """
        if len(self.hosts) == 1 or self._options.hash_ring_algorithm != "md5":
            return None
        if host not in self._arcs:
            points, owners = self._ring
            ends = [point >> 128 - RING_BITS for point in points] + [(1 << RING_BITS) - 1]
            own: list[tuple[int, int]] = []
            arcs = zip(itertools.pairwise([0, *ends]), [*owners, owners[0]], strict=True)
            for (first, last), owner in arcs:
                if owner == host and own and own[-1][1] == first:
                    own[-1] = own[-1][0], last
                elif owner == host:
                    own.append((first, last))
            self._arcs[host] = tuple(own) if len(own) <= _MOST_ARCS else None
        return self._arcs[host]

    def count(
        self,
        kind: tuple[str, str],
        population: Population,
        list_uuids: Callable[[], Iterable[str]],
    ) -> Counter[str | None]:
        """Count the nodes of a group and driver by host, as ``Ring.count_by_host`` does."""
        if len(self.hosts) == 1:
            return Counter({self.hosts[0]: population.nodes})
        last, counts = self._counts.get(kind, (None, Counter[str | None]()))
        if population.arrivals is None or population != last:
            counts = Counter(map(self.host_of, list_uuids()))
            self._counts[kind] = population, counts
        return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """The conductors and drivers of one read of the database.

    ``conductors`` are all that are registered, each judged; ``hosts`` and ``drivers`` are of the
    living.
    """

    read_at: float
    conductors: tuple[Conductor, ...]
    hosts: dict[tuple[str, str], _Hosts]
    drivers: dict[str, DriverFacts]


class Ring:
    """Find hosts of nodes and drivers; safe to use from any thread."""

    def __init__(
        self,
        db: Database,
        conf: Conf | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        conf = conf or Conf()
        self._db, self._clock, self._options = db, clock, conf.default
        self.liveness = Liveness.of(conf, clock)
        self._look_every_s = conf.conductor.heartbeat_interval / 2
        self._reading = threading.Lock()
        self._view: _View | None = None
        self._hosts: dict[tuple[str, str], _Hosts] = {}  # of the last view
        self.epoch = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="ring", daemon=True)

    # ------------------------------------------------------------------------------- reading

    def start(self) -> None:
        """Poll the counters of all conductors in a thread.

        A process with a conductor inside needs none: its periodic ``watch_leases`` polls.
        """
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _look_on(self) -> None:
        while not self._stopping.wait(self._look_every_s):
            try:
                self.refresh()
            except (errors.Failure, sa.exc.SQLAlchemyError) as exc:
                LOG.warning("cannot look who is alive: %s", errors.brief(exc))

    def forget(self) -> None:
        """Read the database again at the next lookup."""
        self._view = None

    def refresh(self) -> bool:
        """Read the database now; return whether nodes may have moved to other conductors.

        Two statements.  Without a change, cached hashes are kept; a change raises ``epoch``, in
        whichever thread it was read.
        """
        with self._reading:
            before, self._view = self.epoch, self._read()
            return before != self.epoch

    def _current(self) -> _View:
        view = self._view
        if view is None:
            with self._reading:
                view = self._view = self._view or self._read()
        is_old = self._clock() - view.read_at > self._options.hash_ring_reset_interval
        if is_old and self._reading.acquire(blocking=False):  # concurrent readers use the old view
            try:
                view = self._view = self._read()
            finally:
                self._reading.release()
        return view

    def _read(self) -> _View:
        asked_at = self._clock()
        with self._db.read() as conn:
            registered = conductors.list_all(conn)
            served = conductors.list_interfaces(conn)
        judged = tuple(self.liveness.judge(registered, asked_at))
        living = [conductor for conductor in judged if conductor.alive]
        names = _hosts(living)
        if {key: of_kind.hosts for key, of_kind in self._hosts.items()} != names:
            of_hosts = {hosts: _Hosts(hosts, self._options) for hosts in names.values()}
            self._hosts = {key: of_hosts[hosts] for key, hosts in names.items()}
            self.epoch += 1
        facts = {}
        for name in sorted({driver for conductor in living for driver in conductor.drivers}):
            of_name = tuple(each.hostname for each in living if name in each.drivers)
            interfaces = [
                each for host in of_name for each in served.get(host, ())
                if each.hardware_type == name
            ]  # fmt: skip
            enabled: dict[str, tuple[str, ...]] = {}
            defaults: dict[str, str | None] = {}
            for kind in sorted({interface.kind for interface in interfaces}):
                of_kind = [interface for interface in interfaces if interface.kind == kind]
                enabled[kind] = tuple(sorted({interface.name for interface in of_kind}))
                defaults[kind] = next((i.name for i in of_kind if i.default), None)
            facts[name] = DriverFacts(name=name, hosts=of_name, enabled=enabled, defaults=defaults)
        return _View(
            read_at=self._clock(), conductors=judged, hosts=self._hosts, drivers=facts,
        )  # fmt: skip

    # ---------------------------------------------------------------------------- conductors

    def list_conductors(self) -> tuple[Conductor, ...]:
        """Return all registered conductors, as this process last judged them."""
        return self._current().conductors

    def is_silent(self, host: str) -> bool:
        """Was the host's counter still for ``heartbeat_timeout`` at the last poll?

        Reads nothing: callers that wait for the host check each second.
        """
        view = self._view
        return view is not None and any(
            each.hostname == host and self.liveness.is_dead(each) for each in view.conductors
        )

    def judge(self, read: Callable[[sa.Connection], Iterable[Conductor]]) -> list[Conductor]:
        """Return the conductors from ``read``, each judged; raises its errors."""
        asked_at = self._clock()
        with self._db.read() as conn:
            registered = read(conn)
        return self.liveness.judge(registered, asked_at)

    def leads(self, host: str) -> bool:
        """Is ``host`` the one that does the work of the whole site?

        The first name among the living.  No lock: two hosts may be so for a while.
        """
        living = [each.hostname for each in self.list_conductors() if each.alive]
        return host == min(living, default=None)

    # --------------------------------------------------------------------------------- nodes

    def host_of_node(self, *, driver: str, group: str, uuid: str) -> str:
        """Return the host that serves a node.

        Raises NoValidHost, or TemporaryFailure when no conductor of such nodes is alive.
        """
        host = self.find_host(driver=driver, group=group, uuid=uuid)
        if host is None:
            self.refresh()
            host = self.find_host(driver=driver, group=group, uuid=uuid)
        if host is None:
            raise self._nobody(driver, group)
        return host

    def find_host(self, *, driver: str, group: str, uuid: str) -> str | None:
        """Return the host that serves a node, or None; free where there is one host."""
        hosts = self._current().hosts.get((group, driver))
        return None if hosts is None else hosts.host_of(uuid)

    def count_by_host(
        self,
        *,
        driver: str,
        group: str,
        population: Population,
        list_uuids: Callable[[], Iterable[str]],
    ) -> Counter[str | None]:
        """Count a driver's nodes in a group by the hosts that serve them; None: no host does.

        The UUIDs are listed only where several hosts share the nodes, and the population is not
        that of the last call.
        """
        hosts = self._current().hosts.get((group, driver))
        if hosts is None:
            return Counter({None: population.nodes})
        return hosts.count((group, driver), population, list_uuids)

    def serves(self, host: str, *, driver: str, group: str) -> bool:
        """Is ``host`` alive, and does it serve nodes of a driver in a group?"""
        hosts = self._current().hosts.get((group, driver))
        return hosts is not None and host in hosts.hosts

    def list_shares(self, host: str) -> list[RingShare]:
        """Return which nodes ``host`` serves, for queries that read no other rows."""
        drivers: dict[tuple[str, _Hosts], list[str]] = {}
        for (group, driver), hosts in self._current().hosts.items():
            if host in hosts.hosts:
                drivers.setdefault((group, hosts), []).append(driver)
        return [
            RingShare(group, tuple(names), hosts.arcs(host))
            for (group, hosts), names in drivers.items()
        ]

    def list_served(self, host: str, keys: Iterable[RingKey]) -> list[str]:
        """Return the UUIDs of those nodes that ``host`` serves, in order."""
        hosts = self._current().hosts
        return [
            key.uuid
            for key in keys
            if (of_kind := hosts.get((key.conductor_group, key.driver))) is not None
            and of_kind.host_of(key.uuid) == host
        ]

    # ------------------------------------------------------------------------------- drivers

    def hosts_of_driver(self, name: str) -> tuple[str, ...]:
        """Return every host of a hardware type.  Raises DriverNotFound."""
        return self.get_driver(name).hosts

    def living_hosts(self) -> list[str]:
        """Return every living host.  Raises TemporaryFailure when there is none."""
        if not self._current().hosts:
            self.refresh()
        hosts = [each.hostname for each in self.list_conductors() if each.alive]
        if not hosts:
            raise self._nobody("", "")
        return hosts

    def get_driver(self, name: str) -> DriverFacts:
        """Return one hardware type.  Raises DriverNotFound."""
        if name not in self._current().drivers:
            self.refresh()
        try:
            return self._current().drivers[name]
        except KeyError:
            advice = f" Reason: {self._absence(name)}."
            raise errors.DriverNotFound(driver=_shortened(name), advice=advice) from None

    def list_drivers(self) -> list[DriverFacts]:
        """Return the hardware types of living conductors, by name."""
        return list(self._current().drivers.values())

    # -------------------------------------------------------------------- missing conductors

    def _nobody(self, driver: str, group: str) -> errors.Failure:
        view = self._current()
        if not view.hosts and (refusal := self._db.refusal) is not None:
            return errors.DatabaseBusy(reason=refusal.reason)  # heartbeats are refused, too
        if not view.hosts:
            return errors.TemporaryFailure(reason=why_nobody(view.conductors))
        away = [
            each for each in view.conductors
            if not each.alive and each.conductor_group == group and driver in each.drivers
        ]  # fmt: skip
        if away:
            return errors.TemporaryFailure(
                reason=f"no conductor of driver {driver!r} in conductor group {group!r} is alive: "
                f"{', '.join(map(absence, away))}; start one of them"
            )
        facts = view.drivers.get(driver)
        if facts is None:
            return errors.NoValidHost(reason=self._absence(driver))
        groups = sorted({own for own, name in view.hosts if name == driver})
        return errors.NoValidHost(
            reason=f"no conductor serves driver {driver!r} in conductor group "
            f"{_shortened(group)!r}; it is served in {', '.join(map(repr, groups))}",
        )

    def _absence(self, driver: str) -> str:
        """Return why no conductor serves a driver."""
        registered = [each for each in self.list_conductors() if driver in each.drivers]
        away = [each for each in registered if not each.alive]
        if away:
            return f"no conductor of it is alive: {', '.join(map(absence, away))}"
        installed, served = _installed_types(), self._current().drivers
        listed = ", ".join(served)
        if driver in installed:
            return (
                f"driver {driver!r} is installed, but no conductor has it enabled; name it in "
                "[DEFAULT]enabled_hardware_types and restart the conductor; drivers that are "
                f"served: {listed}"
            )
        others = ", ".join(name for name in installed if name not in served)
        not_enabled = f"; installed, but not enabled: {others}" if others else ""
        return (
            f"driver {_shortened(driver)!r} is unknown; drivers that are served: {listed}"
            f"{not_enabled}"
        )


def why_nobody(conductors: Iterable[Conductor]) -> str:
    """Return why no conductor is alive, in a sentence with the remedy."""
    away = ", ".join(map(absence, conductors))
    reasons = f"; {away}" if away else ""
    return f"no conductor is alive: start one, or wait until it has registered{reasons}"


def absence(conductor: Conductor) -> str:
    """Return why a conductor gets no work, in a few words."""
    if not conductor.online:
        return f"{conductor.hostname} is off line"
    return f"{conductor.hostname} sent no heartbeat for {conductor.silent_s:.0f} s"


@functools.cache
def _installed_types() -> tuple[str, ...]:
    """Return the names of all installed hardware types, enabled or not."""
    return tuple(sorted(metadata.entry_points(group="bloomery.hardware.types").names))


def _shortened(name: str) -> str:
    """Shorten a client's name for an error."""
    return name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}..."


def _hosts(living: Iterable[Conductor]) -> dict[tuple[str, str], tuple[str, ...]]:
    hosts: dict[tuple[str, str], tuple[str, ...]] = {}
    for conductor in living:
        for driver in conductor.drivers:
            key = (conductor.conductor_group, driver)
            hosts[key] = (*hosts.get(key, ()), conductor.hostname)
    return hosts


# -------------------------------------------------------------------------- options of the ring


def store_options(conn: sa.Connection, conf: Conf) -> None:
    """Store our options as the site's."""
    options = {
        name: getattr(getattr(conf, group.lower()), name) for group, name in (*_OPTIONS, *_TIMES)
    }
    settings.put(conn, _SETTING, json.dumps(options, sort_keys=True))


def option_differences(conn: sa.Connection, conf: Conf) -> list[str]:
    """Return differences that assign a node twice, or declare conductors dead too early."""
    return _differences(conn, conf, _OPTIONS)


def time_differences(conn: sa.Connection, conf: Conf) -> list[str]:
    """Return differences that only delay some of the processes."""
    return _differences(conn, conf, _TIMES)


def _differences(
    conn: sa.Connection, conf: Conf, options: tuple[tuple[str, str], ...]
) -> list[str]:
    stored = settings.find(conn, _SETTING)
    of_site: dict[str, Any] = {} if stored is None else json.loads(stored)
    sentences = []
    for group, name in options:
        ours = getattr(getattr(conf, group.lower()), name)
        if name in of_site and of_site[name] != ours:
            sentences.append(
                f"[{group}]{name} is {ours} here and {of_site[name]} for the conductors of this "
                "site"
            )
    return sentences
