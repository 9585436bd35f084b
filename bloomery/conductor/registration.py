"""The row of a conductor: registered at the start, renewed by heartbeats, signed off at the end.

    registration.begin(alone=False)      # waits until the previous incarnation is certainly over
    registration.beat(online=True)       # False: declared dead, or another process has the name
    registration.end()

Two processes of one name would free each other's nodes.  So a name is taken over only when its
process has ended, or when its counter stood still for a while.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import process_identity
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import conductors, locks, steps
from bloomery.model.conductor import Conductor
from bloomery.rpc import ring

LOG = logging.getLogger(__name__)

STILL_FOR_BEATS: Final = 3  # heartbeat intervals without a change after which it is dead
_LOOKS_PER_BEAT: Final = 10


class Registration:
    """``pause`` waits between two reads of the counter.

    Heartbeats have their own connection, so that an exhausted pool does not delay them.
    """

    def __init__(
        self,
        runtime: ConductorRuntime,
        *,
        process: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self._runtime = runtime
        self._db = runtime.db.reserved()
        self._process = process_identity.ours().encoded() if process is None else process
        self._clock, self._pause = clock, pause or threading.Event().wait
        self._incarnation: str | None = None

    def close(self) -> None:
        """Close the connection of the heartbeats."""
        if self._db is not self._runtime.db:
            self._db.close()

    @property
    def is_on(self) -> bool:
        return self._incarnation is not None

    def begin(self, *, alone: bool) -> None:
        """Register; the lease begins.  Raises ConductorLives while another process has the name.

        ``alone``: no other process can use this database, so nothing is waited for.  Raises
        CannotStart where live conductors have other options of the ring.
        """
        former = None if alone else self._former()
        if not alone:
            self._compare_options()
        runtime = self._runtime
        began = runtime.lease.now()
        incarnation = self._take(former, alone=alone)
        if incarnation is None:
            with self._db.read() as conn:
                other = conductors.get(conn, runtime.host)
            raise self._lives(other, "it has just started")
        self._incarnation = incarnation
        runtime.lease.begin(incarnation, since=began)

    def _take(self, former: Conductor | None, *, alone: bool) -> str | None:
        runtime = self._runtime
        return self._db.transact(
            lambda conn: conductors.register(
                conn,
                hostname=runtime.host,
                group=runtime.conf.conductor.conductor_group.lower(),
                drivers=sorted(runtime.registry.types),
                interfaces=runtime.registry.enabled(),
                alone=alone,
                process=self._process,
                former=former,
            ),
        )

    def _compare_options(self) -> None:
        """Compare the options of the ring with the stored ones.

        Store ours where no other conductor lives.
        """
        conf = self._runtime.conf
        with self._db.read() as conn:
            differences = ring.option_differences(conn, conf)
            times = ring.time_differences(conn, conf)
            others = self._counters(conn)
        if differences and (living := self._living(others)):
            raise errors.CannotStart(
                reason=f"cannot start conductor {self._runtime.host} beside {', '.join(living)}: "
                f"{'; '.join(differences)}; set the same values, or stop all conductors, and start "
                "them with the new ones"
            )
        if times and others:
            LOG.warning("conductor %s: %s", self._runtime.host, "; ".join(times))
        if differences or not others:
            self._db.transact(lambda conn: ring.store_options(conn, conf))

    def _counters(self, conn: sa.Connection) -> dict[str, int]:
        """Return the counters of all other conductors that have not signed off, by name."""
        return {
            each.hostname: each.heartbeat
            for each in conductors.list_all(conn)
            if each.incarnation is not None and each.hostname != self._runtime.host
        }

    def _living(self, before: dict[str, int]) -> list[str]:
        """Watch the counters; return the names whose counters move."""
        interval_s = self._runtime.conf.conductor.heartbeat_interval
        give_up_at = self._clock() + STILL_FOR_BEATS * interval_s
        while before and self._clock() < give_up_at:
            self._pause(interval_s / _LOOKS_PER_BEAT)
            with self._db.read() as conn:
                counters = self._counters(conn)
            if moved := [name for name, n in counters.items() if before.get(name) != n]:
                return sorted(moved)
        return []

    # ----------------------------------------------------------------- who was there before

    def _former(self) -> Conductor | None:
        """Return the previous incarnation once it is over, or None if there is none.

        It is over when its process has ended, or when its counter stood still for long enough.
        Raises ConductorLives.
        """
        former = self._read()
        if former is None or former.incarnation is None:
            return None
        process = process_identity.decoded(former.process)
        if process is not None and process.has_ended():
            return former
        interval_s = self._runtime.conf.conductor.heartbeat_interval
        still_s = STILL_FOR_BEATS * interval_s
        LOG.warning(
            "conductor %s: %s did not sign off; watching its heartbeat for %d s",
            former.hostname, _serialized(former), still_s,
        )  # fmt: skip
        give_up_at = self._clock() + still_s
        while self._clock() < give_up_at:
            self._pause(interval_s / _LOOKS_PER_BEAT)
            current = self._read()
            if current is None or current.incarnation is None:
                return None
            if current.incarnation != former.incarnation:
                raise self._lives(current, "it has just started")
            if current.heartbeat != former.heartbeat:
                raise self._lives(current, "its heartbeat changed while this conductor waited")
        return former

    def _read(self) -> Conductor | None:
        with self._db.read() as conn:
            return conductors.find(conn, self._runtime.host)

    def _lives(self, other: Conductor, evidence: str) -> errors.ConductorLives:
        since = other.started_at or other.created_at
        return errors.ConductorLives(
            host=other.hostname, process=_serialized(other), evidence=evidence,
            since=f"{since:%Y-%m-%d %H:%M:%S} UTC",
        )  # fmt: skip

    # ------------------------------------------------------------------------ signs of life

    def beat(self, *, online: bool) -> bool:
        """Write a heartbeat, which renews the lease; return whether this incarnation goes on."""
        runtime, incarnation = self._runtime, self._incarnation
        began = runtime.lease.now()
        is_ours = self._db.transact(
            lambda conn: conductors.beat(conn, runtime.host, incarnation, online=online)
        )
        if is_ours:
            runtime.lease.renew(since=began)
        return is_ours

    def is_taken(self) -> bool:
        """Return whether another process has taken the name."""
        row = self._read()
        return row is not None and row.incarnation not in (None, self._incarnation)

    def is_drain_ordered(self) -> bool:
        """Return whether an operator has ordered a drain."""
        row = self._read()
        return row is not None and row.drain_ordered_at is not None

    def end(self, *, online: bool = False) -> int:
        """Free the reserved nodes, release the flows, and sign off, in one transaction.

        Return the number of freed nodes, 0 where this incarnation is over already.  Peers may take
        them over at once.  ``online``: see ``conductors.sign_off``.
        """
        host, incarnation = self._runtime.host, self._incarnation

        def work(conn: sa.Connection) -> int:
            if not conductors.sign_off(conn, host, incarnation, online=online):
                return 0
            steps.release(conn, host)
            return len(locks.void_all(conn, host))

        return self._db.transact(work)


def _serialized(conductor: Conductor) -> str:
    process = process_identity.decoded(conductor.process)
    return "a process" if process is None else str(process)
