"""The life of a conductor: start, registration, signs of life, graceful stop."""

from __future__ import annotations

import dataclasses
import logging
import socket
import time
from collections.abc import Callable
from typing import Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import allocator, inspection, recovery
from bloomery.conductor.lease import Lease
from bloomery.conductor.manager import ConductorManager
from bloomery.conductor.node_lock import NodeLocks
from bloomery.conductor.periodics import table
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.timers import Timers
from bloomery.conductor.workers import Workers
from bloomery.conf import Conf
from bloomery.db import conductors, steps
from bloomery.db.engine import Database
from bloomery.drivers import registry
from bloomery.rpc.ring import Ring
from bloomery.secrets import Sealer

LOG = logging.getLogger(__name__)

_STOP_POLL_S: Final = 0.05
_LAST_S: Final = 3.0  # for workers to see that the lease is over, or to hear what a BMC made of it
_ADOPT_AFTER_S: Final = 1.0
_ADOPT_TRIES: Final = 30


def build(
    conf: Conf,
    db: Database,
    sealer: Sealer,
    *,
    on_events_written: Callable[[], None] = lambda: None,
    wants_snapshots: Callable[[], bool] = lambda: False,
) -> ConductorRuntime:
    """Return the parts of a conductor.  Raises CannotStart, DriverNotFoundInEntrypoint ..."""
    ours = conf.conductor
    inspection.check_options(conf)
    return ConductorRuntime(
        host=conf.default.host or socket.gethostname(),
        db=db,
        conf=conf,
        registry=registry.load(conf),
        sealer=sealer,
        node_locks=NodeLocks(ours.node_locked_max_waiters, max(conf.calling_threads[1] // 2, 1)),
        workers=Workers(ours.workers_pool_size, ours.reserved_workers_pool_percentage),
        timers=Timers(),
        lease=Lease(ours.heartbeat_timeout),
        ring=Ring(db, conf),
        on_events_written=on_events_written,
        wants_snapshots=wants_snapshots,
    )


class ConductorService:
    """A conductor that runs in this process."""

    def __init__(self, runtime: ConductorRuntime) -> None:
        self.runtime = runtime = dataclasses.replace(runtime, on_flow_orphaned=self._adopt_soon)
        self.manager = ConductorManager(runtime)
        self.periodics = table.Periodics(runtime)
        self._heart = Timers(name="heart")  # nobody else's work may delay a sign of life
        self._stopping = self._registered = False

    def start(self, *, alone: bool = False) -> None:
        """Free what a former life held, register, take up what was left, and return.

        The caller holds the lock of the state dir.  ``alone``: no other conductor can live on this
        database, so that whoever else is registered there, or holds a node, is a former name of
        ours.
        """
        runtime = self.runtime
        freed = recovery.void_reservations(runtime, alone=alone)
        runtime.timers.start()
        runtime.db.transact(
            lambda conn: conductors.register(
                conn,
                hostname=runtime.host,
                group=runtime.conf.conductor.conductor_group.lower(),
                drivers=sorted(runtime.registry.types),
                interfaces=runtime.registry.enabled(),
                alone=alone,
            ),
        )
        self._registered = True
        runtime.ring.forget()  # we are on it now
        adopted = recovery.adopt_all(runtime, recovery.CRASH)
        if freed or adopted:
            LOG.warning("freed %d nodes and took up %d flows of a former life", freed, adopted)
        if waiting := allocator.adopt(runtime):
            LOG.warning("look for nodes for %d allocations of a former life", waiting)
        self._heart.start()
        self._beat()
        self.periodics.start()

    def _adopt_soon(self, uuid: str) -> None:
        """Take up a flow that the database gave up on, without waiting for the next check."""
        self.runtime.timers.after(
            _ADOPT_AFTER_S, recovery.adopt, self.runtime, uuid, _ADOPT_TRIES, recovery.CRASH,
        )  # fmt: skip

    def _beat(self) -> None:
        runtime, online = self.runtime, not self._stopping
        try:
            runtime.db.transact(lambda conn: conductors.beat(conn, runtime.host, online=online))
            runtime.lease.renew()
        finally:
            self._heart.after(runtime.conf.conductor.heartbeat_interval, self._beat)

    def stop(self, grace_s: float | None = None) -> None:
        """Take the conductor off line, wait for the work that goes on, and end.

        ``grace_s``: how long, by default graceful_shutdown_timeout.  Once it is over nothing is
        sent to a BMC any more; what did not end is taken up at the next start.  A worker that
        still waits for a BMC is left behind: only the end of the process ends it.
        """
        runtime = self.runtime
        if grace_s is None:
            grace_s = runtime.conf.conductor.graceful_shutdown_timeout
        self._stopping = True
        self.periodics.stop()
        runtime.allocations.close()
        self._try("sign off", lambda conn: conductors.unregister(conn, runtime.host))
        _wait_while(lambda: runtime.node_locks.held, grace_s)
        runtime.lease.revoke()
        runtime.timers.stop()
        self._heart.stop()
        _wait_while(lambda: runtime.workers.busy, _LAST_S)
        self._try("say which flows are left", lambda conn: steps.release(conn, runtime.host))
        if not runtime.workers.busy:
            runtime.workers.stop()
        runtime.registry.close()

    def _try(self, what: str, work: Callable[[sa.Connection], None]) -> None:
        """Write a last word; a database that refuses it keeps nobody from stopping."""
        if not self._registered:  # the start has failed, and there is nothing to take back
            return
        try:
            self.runtime.db.transact(work)
        except (errors.Failure, sa.exc.SQLAlchemyError) as exc:
            LOG.warning("cannot %s while stopping: %s", what, exc)


def _wait_while(condition: Callable[[], object], most_s: float) -> None:
    give_up_at = time.monotonic() + most_s
    while condition() and time.monotonic() < give_up_at:
        time.sleep(_STOP_POLL_S)
