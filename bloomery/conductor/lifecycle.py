"""The lifecycle of a conductor: start, registration, heartbeats, graceful stop."""

from __future__ import annotations

import dataclasses
import logging
import socket
import time
from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import allocator, failure_logs, inspection, lease, recovery, runner
from bloomery.conductor.heartbeats import Heartbeats
from bloomery.conductor.manager import ConductorManager
from bloomery.conductor.node_lock import NodeLocks, Places
from bloomery.conductor.periodics import table
from bloomery.conductor.pulse import Pulse
from bloomery.conductor.registration import Registration
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.timers import Timers
from bloomery.conductor.workers import Workers
from bloomery.conf import Conf
from bloomery.db import steps
from bloomery.db.engine import Database
from bloomery.drivers import registry
from bloomery.drivers.registry import Registry
from bloomery.rpc import ring
from bloomery.secrets import Sealer

LOG = logging.getLogger(__name__)

_STOP_POLL_S: Final = 0.05
_DRAIN_POLL_S: Final = 0.5
_LAST_S: Final = 3.0  # for workers to notice the end of the lease, or to get a BMC's answer
_ADOPT_AFTER_S: Final = 1.0
_ADOPT_TRIES: Final = 30
_REFUSED_BEAT_S: Final = 1.0  # while the database refuses writes


def build(
    conf: Conf,
    db: Database,
    sealer: Sealer,
    *,
    on_events_written: Callable[[], None] = lambda: None,
    wants_snapshots: Callable[[], bool] = lambda: False,
    checkpoint: Callable[[], None] = lambda: None,
    send_sensors: Callable[[str, dict[str, Any]], None] = lambda _driver, _message: None,
    workers: Workers | None = None,
    timers: Timers | None = None,
    hardware: Registry | None = None,
) -> ConductorRuntime:
    """Return the parts of a conductor.  Raises CannotStart, NoValidDefaultForInterface.

    ``workers``, ``timers``, ``hardware``: others than those of a process of its own.
    """
    ours = conf.conductor
    if hardware is None:
        inspection.check_options(conf, registry.unknown_names(conf))
        hardware = registry.load(conf)
    timers = timers or Timers()
    workers = workers or Workers(ours.workers_pool_size, ours.reserved_workers_pool_percentage)
    return ConductorRuntime(
        host=conf.default.host or socket.gethostname(),
        db=db,
        conf=conf,
        registry=hardware,
        sealer=sealer,
        node_locks=NodeLocks(ours.node_locked_max_waiters, max(conf.calling_threads[1] // 2, 1)),
        workers=workers,
        timers=timers,
        heartbeats=Heartbeats(db, timers, workers),
        lease=lease.Lease(ours.heartbeat_timeout, budget_s=lease.write_budget_s(conf)),
        ring=ring.Ring(db, conf),
        parked=Places(max(ours.workers_pool_size // 2, 1)),
        log_readers=Places(failure_logs.MOST_AT_ONCE),
        pulse=Pulse(workers),
        on_events_written=on_events_written,
        wants_snapshots=wants_snapshots,
        checkpoint=checkpoint,
        send_sensors=send_sensors,
    )


class ConductorService:
    """A conductor that runs in this process.

    ``on_superseded`` is called when another process has taken its name, ``on_drain`` when an
    operator orders a drain.
    """

    def __init__(
        self,
        runtime: ConductorRuntime,
        *,
        process: str | None = None,
        on_superseded: Callable[[], object] = lambda: None,
        on_drain: Callable[[], object] = lambda: None,
    ) -> None:
        self.runtime = runtime = dataclasses.replace(
            runtime,
            on_flow_orphaned=lambda uuid: self.runtime.timers.after(
                _ADOPT_AFTER_S, recovery.adopt, self.runtime, uuid, _ADOPT_TRIES, recovery.CRASH
            ),
        )
        self.manager = ConductorManager(runtime)
        self.periodics = table.Periodics(runtime)
        self.registration = Registration(runtime, process=process)
        self._on_superseded, self._on_drain = on_superseded, on_drain
        self._heart = Timers(name="heart")  # other timers must not delay heartbeats
        self._stopping = self._stays_online = self._is_drain_handled = False

    def start(self, *, alone: bool = False) -> None:
        """Register, free the nodes of a previous incarnation, recover its flows, and return.

        ``alone``: the caller holds the lock of the state dir, so no other conductor uses this
        database. Registrations and reservations under other names are then stale.  Raises
        ConductorLives.
        """
        runtime = self.runtime
        self.registration.begin(alone=alone)
        self._heart.start()
        self._beat()  # before the recovery, which may wait for locked rows
        freed = recovery.void_reservations(runtime, alone=alone)
        runtime.timers.start()
        runtime.ring.forget()  # we are on it now
        adopted = recovery.adopt_all(runtime, recovery.CRASH)
        if freed or adopted:
            LOG.warning("from a previous run: flows recovered: %d, nodes freed: %d", adopted, freed)
        if waiting := allocator.adopt(runtime):
            LOG.warning("from a previous run: allocations that need nodes: %d", waiting)
        self.periodics.start()

    # ------------------------------------------------------------------------ signs of life

    def _beat(self) -> None:
        try:
            if not self.registration.beat(online=not self._stopping):
                self._begin_anew()
            elif not self._is_drain_handled and self.registration.is_drain_ordered():
                self._is_drain_handled = True
                self._on_drain()
        except errors.DatabaseBusy as exc:
            if self.runtime.db.refusal is None:  # the database logs its refusal once
                LOG.warning("conductor %s: cannot write its heartbeat: %s", self.runtime.host, exc)
        finally:
            is_refused = self.runtime.db.refusal is not None
            interval_s = self.runtime.conf.conductor.heartbeat_interval
            self._heart.after(_REFUSED_BEAT_S if is_refused else interval_s, self._beat)

    def _begin_anew(self) -> None:
        """Register again after peers declared this conductor dead.

        They keep what they took over.
        """
        runtime = self.runtime
        runtime.lease.suspend()
        if self.registration.is_taken():
            LOG.critical("conductor %s: another process has taken its name: stopping", runtime.host)
            runtime.lease.revoke()
            self._on_superseded()
            return
        if self._stopping:
            return
        LOG.warning("conductor %s was declared dead: registering again", runtime.host)
        self.registration.begin(alone=False)
        freed = recovery.void_reservations(runtime, alone=False)
        LOG.warning("conductor %s: freed %d nodes of its previous incarnation", runtime.host, freed)
        runtime.timers.after(0, runtime.workers.spawn, recovery.adopt_all, runtime, recovery.CRASH)

    def missing(self) -> list[str]:
        """Return the reasons, if any, why the conductor is not ready."""
        conductors = self.runtime.ring
        try:
            conductors.refresh()
        except (errors.Failure, sa.exc.SQLAlchemyError) as exc:
            return [f"the database cannot be read: {errors.brief(exc)}"]
        own = [each for each in conductors.list_conductors() if each.hostname == self.runtime.host]
        if not own:
            return [f"conductor {self.runtime.host} is not registered"]
        absent = [f"conductor {ring.absence(each)}" for each in own if not each.alive]
        return absent + self.runtime.pulse.missing()

    # ------------------------------------------------------------------------------ the end

    def finish_work(self, grace_s: float) -> None:
        """End the flows, and begin no other.

        With a peer of its group the conductor goes off line.  Without one it stays on line, because
        agents could call nobody else.
        """
        runtime = self.runtime
        group = runtime.conf.conductor.conductor_group
        has_peer = any(
            each.alive and each.hostname != runtime.host and (each.conductor_group or "") == group
            for each in runtime.ring.list_conductors()
        )
        if has_peer:
            self.begin_stop()
        else:
            runtime.draining.set()
        # rows before locks: a flow whose last step waited has no open row until its worker ends it
        _wait_while(lambda: self._has_flows() or runtime.node_locks.in_use, grace_s, _DRAIN_POLL_S)

    def _has_flows(self) -> bool:
        if self._stopping:  # peers take them over
            return False
        try:
            with self.runtime.db.read() as conn:
                return steps.count_working(conn, self.runtime.host) > 0
        except errors.DatabaseBusy:
            return True

    def begin_stop(self) -> None:
        """Go off line: peers get new work, and flows at their next pause.  Returns at once."""
        self._stopping = True
        self.periodics.stop()
        self._try("go off line", lambda: self.registration.beat(online=False))
        self._try("hand flows over", self._hand_over)

    def _hand_over(self) -> None:
        """Hand flows to peers at their next pause; flows that pause now, at once."""
        self.runtime.ring.refresh()
        self.runtime.leaving.set()
        self.runtime.timers.bring_forward(runner.start_attempt, runner.awaits_successor)

    def stop(self, grace_s: float | None = None, *, stays_online: bool = False) -> None:
        """Take the conductor off line, wait for running work, and end.

        ``grace_s``: by default graceful_shutdown_timeout.  Afterwards BMC writes are forbidden,
        reserved nodes are freed, and peers continue.  A worker that still waits for a BMC ends with
        the process. ``stays_online``: a successor is about to start, and peers leave its nodes to
        it.
        """
        runtime, self._stays_online = self.runtime, stays_online
        if grace_s is None:
            grace_s = runtime.conf.conductor.graceful_shutdown_timeout
        if not (stays_online or self._stopping):
            self.begin_stop()
        self.periodics.stop()
        runtime.pulse.stop()
        runtime.allocations.close()
        _wait_while(lambda: runtime.node_locks.in_use, grace_s)
        runtime.lease.revoke()
        runtime.timers.stop()
        self._heart.stop()
        _wait_while(lambda: runtime.workers.busy, _LAST_S)
        runtime.heartbeats.flush()
        self._try("sign off", self._sign_off)
        self.registration.close()
        if not runtime.workers.busy:
            runtime.workers.stop()
        runtime.registry.close()

    def _sign_off(self) -> None:
        freed = self.registration.end(online=self._stays_online)
        if freed:
            LOG.warning("stopping: freed %d nodes whose work did not end in time", freed)

    def _try(self, what: str, work: Callable[[], object]) -> None:
        """Run one part of the stop; a database error does not prevent the stop."""
        if not self.registration.is_on:  # the start failed before the registration
            return
        try:
            work()
        except (errors.Failure, sa.exc.SQLAlchemyError) as exc:
            LOG.warning("cannot %s while stopping: %s", what, exc)


def _wait_while(
    condition: Callable[[], object], most_s: float, poll_s: float = _STOP_POLL_S
) -> None:
    give_up_at = time.monotonic() + most_s
    while condition() and time.monotonic() < give_up_at:
        time.sleep(poll_s)
