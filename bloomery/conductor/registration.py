"""The row of a conductor: taken at the start, kept by signs of life, given up at the end.

    registration.begin(alone=False)      # waits until a former life of the name is certainly over
    registration.beat(online=True)       # False: peers declared us dead, or somebody has our name
    registration.end()

Two processes of one name would free each other's nodes.  So a name that somebody lives under is
taken over only when that process has ended, or when its counter stood still for a while.
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
from bloomery.rpc import ring_options

LOG = logging.getLogger(__name__)

STILL_FOR_BEATS: Final = 3  # pauses between signs of life after which a former life is over
_LOOKS_PER_BEAT: Final = 10


class Registration:
    """``pause`` waits between two looks at the counter of a former life.

    Signs of life have a connection of their own: whoever uses up the pool delays none.
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
        """Give the connection back that signs of life have for themselves."""
        if self._db is not self._runtime.db:
            self._db.close()

    @property
    def is_on(self) -> bool:
        return self._incarnation is not None

    def begin(self, *, alone: bool) -> None:
        """Take the row; the lease begins.  Raises ConductorLives while another process has it.

        ``alone``: no other process can live on this database, and nobody is waited for.  Raises
        CannotStart where conductors live whose ring is another one than ours.
        """
        former = None if alone else self._former()
        if not alone:
            self._compare_options()
        began = self._runtime.lease.now()
        incarnation = self._take(former, alone=alone)
        if incarnation is None:
            with self._db.read() as conn:
                other = conductors.get(conn, self._runtime.host)
            raise self._lives(other, "it has just started")
        self._incarnation = incarnation
        self._runtime.lease.begin(incarnation, since=began)

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
        """Keep to the options that all share; ours are the site's where nobody else lives."""
        conf = self._runtime.conf
        with self._db.read() as conn:
            differences = ring_options.differences(conn, conf)
            times = ring_options.other_times(conn, conf)
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
            self._db.transact(lambda conn: ring_options.note(conn, conf))

    def _counters(self, conn: sa.Connection) -> dict[str, int]:
        """Return the counters of all others that have not signed off, by name."""
        return {
            each.hostname: each.heartbeat
            for each in conductors.list_all(conn)
            if each.incarnation is not None and each.hostname != self._runtime.host
        }

    def _living(self, before: dict[str, int]) -> list[str]:
        """Watch the counters; return whose moves, or nobody when all stood still for long."""
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
        """Return the life to take over from, once it is over; None: nobody lives there."""
        former = self._read()
        if former is None or former.incarnation is None:
            return None
        process = process_identity.decoded(former.process)
        if process is not None and process.has_ended():
            return former
        return self._when_still(former)

    def _read(self) -> Conductor | None:
        with self._db.read() as conn:
            return conductors.find(conn, self._runtime.host)

    def _when_still(self, former: Conductor) -> Conductor | None:
        """Watch the counter until it stood still for long enough.  Raises ConductorLives."""
        interval_s = self._runtime.conf.conductor.heartbeat_interval
        still_s = STILL_FOR_BEATS * interval_s
        LOG.warning(
            "conductor %s: %s did not sign off; waiting %d s for a sign of life of it",
            former.hostname, _serialized(former), still_s,
        )  # fmt: skip
        give_up_at = self._clock() + still_s
        while self._clock() < give_up_at:
            self._pause(interval_s / _LOOKS_PER_BEAT)
            present = self._read()
            if present is None or present.incarnation is None:
                return None
            if present.incarnation != former.incarnation:
                raise self._lives(present, "it has just started")
            if present.heartbeat != former.heartbeat:
                raise self._lives(present, "it gave a sign of life while this one waited")
        return former

    def _lives(self, other: Conductor, evidence: str) -> errors.ConductorLives:
        since = other.started_at or other.created_at
        return errors.ConductorLives(
            host=other.hostname, process=_serialized(other), evidence=evidence,
            since=f"{since:%Y-%m-%d %H:%M:%S} UTC",
        )  # fmt: skip

    # ------------------------------------------------------------------------ signs of life

    def beat(self, *, online: bool) -> bool:
        """Give a sign of life, which renews the lease.  False: this life is over."""
        runtime, incarnation = self._runtime, self._incarnation
        began = runtime.lease.now()
        is_ours = self._db.transact(
            lambda conn: conductors.beat(conn, runtime.host, incarnation, online=online)
        )
        if is_ours:
            runtime.lease.renew(since=began)
        return is_ours

    def is_taken(self) -> bool:
        """Whether another process has taken the name meanwhile."""
        row = self._read()
        return row is not None and row.incarnation not in (None, self._incarnation)

    def is_drain_ordered(self) -> bool:
        """Whether an operator wants this life to drain."""
        row = self._read()
        return row is not None and row.drain_ordered_at is not None

    def end(self, *, online: bool = False) -> int:
        """Free what is held, say that nobody runs its flows, and sign off: one transaction.

        Return how many nodes were freed.  Other conductors may take them over at once.  A life that
        is over already has nothing to free.  ``online``: see ``conductors.sign_off``.
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
