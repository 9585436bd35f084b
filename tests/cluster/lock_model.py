"""A model of who may write to a node: locks, leases, incarnations and burials, with pauses.

Several conductors share one database and a virtual clock.  Hypothesis says which of them beats,
reserves, writes, releases, is cut off from the database, stands still, dies or comes back, when.
The queries, the lease and the watch over peers are the real ones; the model only remembers what was
granted to whom, and checks after each step

- that never two may write to one machine, the writes on their way to its BMC included;
- that no write goes through that was fenced off: by a newer lock, or by a burial;
- that no reservation outlives its dead holder by more than time-out and period.
"""

from __future__ import annotations

import dataclasses
import functools
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from hypothesis import stateful
from hypothesis import strategies as st

from bloomery import errors
from bloomery.conductor import lifecycle, recovery
from bloomery.conductor.lease import Lease
from bloomery.conductor.periodics.leases import Leases
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import conductors, locks
from bloomery.db.engine import Database
from bloomery.db.tables import CONDUCTORS, NODES
from bloomery.drivers.base import WRITE_BUDGET_S
from bloomery.rpc.ring import Ring
from bloomery.secrets import Sealer
from tests.kit.servers import databases, site

HOSTS: Final = ("host-a", "host-b", "host-c")
NODE_COUNT: Final = 1
PERIOD_S: Final = 10
TIMEOUT_S: Final = 60
# The counter is first looked at up to a period after the last beat, and judged each period.
OUTLIVES_S: Final = TIMEOUT_S + 2 * PERIOD_S


@functools.cache
def _database() -> Database:
    path = Path(tempfile.mkdtemp(prefix="bloomery-model-")) / "model.sqlite"
    shutil.copy(databases.empty_file(), path)
    return Database(f"sqlite:///{path}")


@functools.cache
def _nodes() -> tuple[str, ...]:
    """Nodes that every run begins with, at rest and free."""
    nodes = tuple(str(uuid.UUID(int=number)) for number in range(1, NODE_COUNT + 1))
    for node in nodes:
        values = {"uuid": node, "driver": "fake-hardware", "provision_state": "available"}
        lifecycle.ConductorService(_runtime(HOSTS[0])).manager.create_node(
            site.Request.new(), values,
        )  # fmt: skip
    return nodes


@functools.cache
def _runtime(host: str) -> ConductorRuntime:
    settings = site.conf(host, heartbeat_interval=PERIOD_S, heartbeat_timeout=TIMEOUT_S)
    return lifecycle.build(settings, _database(), Sealer(site.KEY))


@dataclass(slots=True, eq=False)
class Life:
    """A conductor from its registration to its end, and the locks that it believes to hold."""

    runtime: ConductorRuntime
    watch: Leases
    born_at: float
    incarnation: str | None = None
    guards: dict[locks.Guard, str | None] = field(default_factory=dict)  # and in which life
    is_paused: bool = False
    is_cut_off: bool = False
    active_since: float = 0.0
    next_beat_at: float = 0.0
    next_watch_at: float = 0.0

    @property
    def host(self) -> str:
        return self.runtime.host

    @property
    def is_active(self) -> bool:
        return not (self.is_paused or self.is_cut_off)

    def may_write(self, guard: locks.Guard) -> bool:
        """What a worker asks before it writes to a BMC."""
        try:
            self.runtime.lease.require(guard.node_uuid, guard.holder, self.guards[guard])
        except errors.LockLost:
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcWrite:
    """An order on its way to a BMC: it may take effect until ``lands_by``."""

    guard: locks.Guard
    lands_by: float


class LockModel(stateful.RuleBasedStateMachine):
    """Three conductors and their nodes; who was buried begins anew when it beats."""

    def __init__(self) -> None:
        super().__init__()
        self.db, self.nodes, self.now = _database(), _nodes(), 1000.0
        self.lives: dict[str, Life] = {}
        self.died_at: dict[str, float] = {}
        self.granted = dict.fromkeys(self.nodes, 0)
        self.fenced: set[locks.Guard] = set()
        self.in_flight: list[BmcWrite] = []
        self.db.transact(self._clear)
        for host in HOSTS:
            self._begin(host)

    @staticmethod
    def _clear(conn: sa.Connection) -> None:
        conn.execute(sa.delete(CONDUCTORS))
        conn.execute(sa.update(NODES).values(lock_generation=0, **locks.FREE))

    def clock(self) -> float:
        return self.now

    # --------------------------------------------------------------------------- conductors

    def _begin(self, host: str) -> None:
        """What a conductor does when it starts: void its own locks, register, beat."""
        lease = Lease(TIMEOUT_S, clock=self.clock)
        ours = _runtime(host)
        ring = Ring(self.db, ours.conf, clock=self.clock)
        runtime = dataclasses.replace(ours, lease=lease, ring=ring)
        life = Life(runtime=runtime, watch=Leases(runtime), born_at=self.now)
        self._register(life)
        life.active_since = self.now
        life.next_beat_at = life.next_watch_at = self.now + PERIOD_S
        self.lives[host] = life
        self.died_at.pop(host, None)
        # A request of the former process ends with its connection.
        self.in_flight = [write for write in self.in_flight if write.guard.holder != host]

    def _register(self, life: Life) -> None:
        """Take the row, whoever had it before, and void what that life held."""
        with self.db.read() as conn:
            former = conductors.find(conn, life.host)
        began = self.now
        life.incarnation = self.db.transact(
            lambda conn: conductors.register(
                conn, hostname=life.host, group="", drivers=["fake-hardware"], interfaces=[],
                former=former,
            )
        )  # fmt: skip
        assert life.incarnation is not None
        life.runtime.lease.begin(life.incarnation, since=began)
        before = self._holders()
        recovery.void_reservations(life.runtime, alone=False)
        self.fenced |= {guard for guard in before.values() if guard.holder == life.host}

    def _end(self, life: Life) -> None:
        del self.lives[life.host]
        self.died_at[life.host] = self.now

    def _holders(self) -> dict[str, locks.Guard]:
        """The reservations as the rows have them, by node."""
        query = sa.select(NODES.c.uuid, NODES.c.reservation, NODES.c.lock_generation)
        with self.db.read() as conn:
            return {
                node: locks.Guard(node_uuid=node, holder=holder, generation=generation)
                for node, holder, generation in conn.execute(query)
                if holder is not None
            }

    def _beat(self, life: Life) -> None:
        life.next_beat_at = self.now + PERIOD_S
        began = self.now
        if self.db.transact(lambda conn: conductors.beat(conn, life.host, life.incarnation)):
            life.runtime.lease.renew(since=began)
        else:
            life.runtime.lease.suspend()
            self._register(life)

    def _watch(self, life: Life) -> None:
        """Look at the peers; whoever loses a lock by it is fenced off."""
        life.next_watch_at = self.now + PERIOD_S
        before = self._holders()
        life.watch.run()
        after = self._holders()
        self.fenced |= {guard for node, guard in before.items() if after.get(node) != guard}

    # ------------------------------------------------------------------------------ drawing

    def _draw_life(self, data: st.DataObject) -> Life | None:
        lives = [life for life in self.lives.values() if life.is_active]
        return data.draw(st.sampled_from(lives)) if lives else None

    def _draw_guard(self, data: st.DataObject, life: Life | None) -> locks.Guard | None:
        if life is None or not life.guards:
            return None
        return data.draw(st.sampled_from(list(life.guards)))

    # -------------------------------------------------------------------------------- rules

    @stateful.rule(seconds=st.sampled_from([4, 15, 75]))
    def wait(self, seconds: int) -> None:
        self.pass_time(seconds)

    def pass_time(self, seconds: int) -> None:
        """Time passes; hearts and watches of those who can act go on meanwhile."""
        until = self.now + seconds
        while (due := self._next_due(until)) is not None:
            self.now, life, act = due
            act(life)
        self.now = until
        self.in_flight = [write for write in self.in_flight if write.lands_by > self.now]

    def _next_due(self, until: float) -> tuple[float, Life, Any] | None:
        due = [
            (max(at, self.now), order, life, act)
            for order, life in enumerate(self.lives.values())
            if life.is_active
            for at, act in ((life.next_beat_at, self._beat), (life.next_watch_at, self._watch))
            if at <= until
        ]
        if not due:
            return None
        at, _, life, act = min(due, key=lambda entry: entry[:2])
        return at, life, act

    @stateful.rule(data=st.data(), node=st.integers(0, NODE_COUNT - 1))
    def reserve(self, data: st.DataObject, node: int) -> None:
        life, uuid_ = self._draw_life(data), self.nodes[node]
        self.pass_time(1)
        if life is None:
            return
        try:
            row = self.db.transact(
                lambda conn: locks.reserve(
                    conn, uuid_, holder=life.host, purpose="model", incarnation=life.incarnation
                )
            )
        except errors.NodeLocked:
            assert uuid_ in self._holders(), "a free node was refused"
            return
        except errors.LockLost:
            return  # it was buried, and has not beaten since
        generation = row.lock_generation
        assert generation > self.granted[uuid_], "a generation was given out twice"
        self.granted[uuid_] = generation
        guard = locks.Guard(node_uuid=uuid_, holder=life.host, generation=generation)
        life.guards[guard] = life.incarnation

    @stateful.rule(data=st.data())
    def write_row(self, data: st.DataObject) -> None:
        life = self._draw_life(data)
        guard = self._draw_guard(data, life)
        if life is None or guard is None:
            return
        is_owner = guard.generation == self.granted[guard.node_uuid] and guard not in self.fenced
        try:
            self.db.transact(lambda conn: locks.update_guarded(conn, guard, {"extra": '{"a": 1}'}))
        except errors.LockLost:
            assert not is_owner, f"{guard} was refused its own write"
            del life.guards[guard]
        else:
            assert is_owner, f"{guard} was fenced off, and its write went through"

    @stateful.rule(data=st.data())
    def write_to_bmc(self, data: st.DataObject) -> None:
        """Needs no database: who is cut off goes on until the lease ends."""
        lives = [life for life in self.lives.values() if not life.is_paused and life.guards]
        if not lives:
            return
        life = data.draw(st.sampled_from(lives))
        guard = data.draw(st.sampled_from(list(life.guards)))
        if life.may_write(guard):
            self.in_flight.append(BmcWrite(guard=guard, lands_by=self.now + WRITE_BUDGET_S))

    @stateful.rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        life = self._draw_life(data)
        guard = self._draw_guard(data, life)
        if life is None or guard is None or self._is_awaited(guard):
            return
        del life.guards[guard]
        self.db.transact(lambda conn: locks.release(conn, guard))

    def _is_awaited(self, guard: locks.Guard) -> bool:
        """A worker that waits for its BMC releases nothing meanwhile."""
        return any(write.guard == guard for write in self.in_flight)

    @stateful.rule(data=st.data())
    def beat_late(self, data: st.DataObject) -> None:
        """The database was busy: this heart beats later."""
        if (life := self._draw_life(data)) is not None:
            life.next_beat_at += PERIOD_S

    @stateful.rule(
        data=st.data(), how=st.sampled_from(["pause", "cut off", "die"]),
        seconds=st.sampled_from([0, 15, 75]),
    )  # fmt: skip
    def fall_silent(self, data: st.DataObject, how: str, seconds: int) -> None:
        """Stand still, lose the database, or die; one conductor always goes on."""
        active = [life for life in self.lives.values() if life.is_active]
        if len(active) < 2:
            return
        life = data.draw(st.sampled_from(active))
        if how == "die":
            self._end(life)
        else:
            life.is_paused, life.is_cut_off = how == "pause", how == "cut off"
        self.pass_time(seconds)

    @stateful.rule(data=st.data(), beats_first=st.booleans())
    def come_back(self, data: st.DataObject, beats_first: bool) -> None:
        """Go on, reach the database again, or start again; the heart may be the first, or not."""
        silent = [host for host in HOSTS if host not in self.lives]
        silent += [life.host for life in self.lives.values() if not life.is_active]
        if not silent:
            return
        host = data.draw(st.sampled_from(silent))
        if host not in self.lives:
            self._begin(host)
            return
        life = self.lives[host]
        life.is_paused = life.is_cut_off = False
        life.active_since = self.now
        life.next_beat_at = self.now if beats_first else self.now + PERIOD_S
        if beats_first:
            self._beat(life)

    # --------------------------------------------------------------------------- invariants

    def _writers(self, node: str) -> Iterator[locks.Guard]:
        """Whoever could write to the machine now, or as soon as it runs again."""
        for life in self.lives.values():
            yield from (g for g in life.guards if g.node_uuid == node and life.may_write(g))
        yield from (write.guard for write in self.in_flight if write.guard.node_uuid == node)

    @stateful.invariant()
    def never_two_may_write(self) -> None:
        for node in self.nodes:
            writers = set(self._writers(node))
            assert len(writers) <= 1, f"{len(writers)} may write: {writers}"

    @stateful.invariant()
    def no_reservation_outlives_its_dead_holder(self) -> None:
        for guard in self._holders().values():
            died_at = self.died_at.get(guard.holder)
            if died_at is None or guard.holder in self.lives:
                continue
            watched_since = min(
                (life.active_since for life in self.lives.values() if life.is_active),
                default=self.now,
            )
            late_s = self.now - max(died_at, watched_since) - OUTLIVES_S
            assert late_s <= 0, f"{guard} outlives its holder by {OUTLIVES_S + late_s:g} s"
