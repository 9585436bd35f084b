"""The life of a conductor: start, registration, signs of life, graceful stop."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable
from typing import Final

from bloomery.conductor import recovery
from bloomery.conductor.gates import NodeGates
from bloomery.conductor.house import House
from bloomery.conductor.lease import Lease
from bloomery.conductor.manager import ConductorManager
from bloomery.conductor.periodics import table
from bloomery.conductor.timers import Timers
from bloomery.conductor.workers import Workers
from bloomery.conf import Conf
from bloomery.db import conductors
from bloomery.db.engine import Database
from bloomery.drivers import registry
from bloomery.events import relay
from bloomery.secrets import Sealer

LOG = logging.getLogger(__name__)

_STOP_POLL_S: Final = 0.05
_ADOPT_AFTER_S: Final = 1.0
_ADOPT_TRIES: Final = 30


def build(
    conf: Conf,
    db: Database,
    sealer: Sealer,
    *,
    told: Callable[[], None] = lambda: None,
) -> House:
    """Return the parts of a conductor.  Raises DriverNotFoundInEntrypoint and its like."""
    ours = conf.conductor
    return House(
        host=conf.default.host,
        db=db,
        conf=conf,
        registry=registry.load(conf),
        sealer=sealer,
        gates=NodeGates(ours.node_locked_max_waiters, max(conf.api.threads // 2, 1)),
        workers=Workers(ours.workers_pool_size, ours.reserved_workers_pool_percentage),
        timers=Timers(),
        lease=Lease(ours.heartbeat_timeout),
        told=told,
        snapshots=relay.needs_snapshots(conf),
    )


class ConductorService:
    """A conductor that runs in this process."""

    def __init__(self, house: House) -> None:
        self.house = house = dataclasses.replace(house, orphaned=self._adopt_soon)
        self.manager = ConductorManager(house)
        self.periodics = table.Periodics(house)
        self._heart = Timers(name="heart")  # nobody else's work may delay a sign of life
        self._stopping = False

    def start(self) -> None:
        """Free what a former life held, register, take up what was left, and return.

        The caller holds the lock of the state dir.
        """
        house = self.house
        freed = recovery.void_reservations(house)
        house.timers.start()
        house.db.transact(
            lambda conn: conductors.register(
                conn,
                hostname=house.host,
                group=house.conf.conductor.conductor_group.lower(),
                drivers=sorted(house.registry.types),
                interfaces=house.registry.enabled(),
            ),
        )
        adopted = recovery.adopt_all(house)
        if freed or adopted:
            LOG.warning("freed %d nodes and took up %d flows of a former life", freed, adopted)
        self._heart.start()
        self._beat()
        self.periodics.start()

    def _adopt_soon(self, uuid: str) -> None:
        """Take up a flow that the database gave up on, without waiting for the next check."""
        self.house.timers.after(_ADOPT_AFTER_S, recovery.adopt, self.house, uuid, _ADOPT_TRIES)

    def _beat(self) -> None:
        house, online = self.house, not self._stopping
        try:
            house.db.transact(lambda conn: conductors.beat(conn, house.host, online=online))
            house.lease.renew()
        finally:
            self._heart.after(house.conf.conductor.heartbeat_interval, self._beat)

    def stop(self) -> None:
        """Take the conductor off line, wait for the work that goes on, and end.

        What does not end in graceful_shutdown_timeout is taken up at the next start.
        """
        house = self.house
        self._stopping = True
        self.periodics.stop()
        house.db.transact(lambda conn: conductors.unregister(conn, house.host))
        give_up_at = time.monotonic() + house.conf.conductor.graceful_shutdown_timeout
        while house.gates.held and time.monotonic() < give_up_at:
            time.sleep(_STOP_POLL_S)
        house.timers.stop()
        self._heart.stop()
        if not house.gates.held:
            house.workers.stop()
