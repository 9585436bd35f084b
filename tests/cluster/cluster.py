"""A cluster in one process: conductors, relays, ring and calls, on a clock that a seed turns.

The real code runs: conductors with their hearts, timers, periodics, recovery and flows; a relay in
each, with a sink that outlives them; callers that find conductors on the ring.  What is not real:
threads and time (``virtual``), the wire (``network``) and the machines (``hardware``).  Each
transaction is atomic, and a process dies or stands still before or after one, before or after a
call, an order to a BMC, or wherever else a thread hands over.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import sqlalchemy as sa

from bloomery.conductor import lifecycle
from bloomery.conductor.lifecycle import ConductorService
from bloomery.conductor.periodics import table
from bloomery.conductor.workers import Workers
from bloomery.conf.default import Database as Settings
from bloomery.db.engine import Database
from bloomery.db.events import EventRow
from bloomery.events.sink_worker import Pace, SinkWorker
from bloomery.rpc.client import Client
from bloomery.rpc.ring import Ring
from bloomery.secrets import Sealer
from tests.cluster import hardware
from tests.cluster.audit import Audit
from tests.cluster.network import Network
from tests.cluster.virtual import Process, Scheduler, Strand
from tests.kit.servers import databases, site

T = TypeVar("T")

HOSTS: Final = ("host-a", "host-b", "host-c")
CALLERS: Final = ("user", "agents")
PERIOD_S: Final = 10
TIMEOUT_S: Final = 40
CHECK_S: Final = 15
OPTIONS: Final = {
    "heartbeat_interval": PERIOD_S, "heartbeat_timeout": TIMEOUT_S,
    "check_provision_state_interval": CHECK_S, "check_allocations_interval": 0,
    "sync_power_state_interval": 0, "power_failure_recovery_interval": 0,
    "node_history_cleanup_interval": 0, "step_flows_cleanup_interval": 0,
    "deploy_callback_timeout": 90, "clean_callback_timeout": 90, "workers_pool_size": 30,
}  # fmt: skip

_PERIODICS: Final = tuple(  # agents call by themselves here
    periodic for periodic in table.TABLE if periodic.name != "ask_agents"
)


class ClusterDatabase(Database):
    """The database as one process sees it: another may run before and after each transaction."""

    _scheduler: Scheduler
    _on_committed: Callable[[], None]

    def __init__(self, path: Path) -> None:
        super().__init__(f"sqlite:///{path}", Settings(synchronous="NORMAL"))

    def watched(self, scheduler: Scheduler, on_committed: Callable[[], None]) -> Self:
        """Serve one run; what SQLAlchemy has compiled for the last one is kept."""
        self._scheduler, self._on_committed = scheduler, on_committed
        return self

    def transact(self, work: Callable[[sa.Connection], T]) -> T:
        self._wait_while_mute()
        self._scheduler.switch("transaction")
        result = super().transact(work)
        self._on_committed()
        self._scheduler.switch("committed")
        return result

    def _wait_while_mute(self) -> None:
        """Hold up signs of life, which have a connection of their own, where that is broken."""
        strand = self._scheduler.current
        if strand.name == "heart" and strand.process.mute_until > self._scheduler.now:
            self._scheduler.wait(strand.process.mute_until - self._scheduler.now, "mute")

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        self._scheduler.switch("read")
        with super().read() as conn:
            yield conn


_database: Final = functools.cache(lambda path, _name: ClusterDatabase(path))


def close_databases(path: Path) -> None:
    """Give back every connection, so that a process can fork."""
    for name in (*HOSTS, *CALLERS):
        _database(path, name).close()


class StrandPool:
    """An executor that starts a thread for each piece of work."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def submit(self, work: Callable[..., T], *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        name = getattr(work, "__name__", "work")

        def run() -> None:
            try:
                result = work(*args, **more)
            except BaseException as exc:  # noqa: BLE001  the future carries it, as any executor's
                future.set_exception(exc)
            else:
                future.set_result(result)

        self._scheduler.spawn(self._scheduler.current.process, run, name)
        return future

    def shutdown(self, wait: bool = True) -> None:
        return


class StrandWorkers(Workers):
    def __init__(self, size: int, scheduler: Scheduler) -> None:
        super().__init__(size)
        self._pool = StrandPool(scheduler)


class AuditSink:
    """A sink outside of all processes: what was told stays told."""

    name = "audit"
    wants_snapshots = False

    def __init__(self, audit: Audit, scheduler: Scheduler) -> None:
        self._audit, self._scheduler = audit, scheduler

    def open(self) -> None:
        return

    def send(self, event: EventRow) -> None:
        self._scheduler.switch(f"tell {event.id}")
        self._audit.tell(event)

    def close(self) -> None:
        return


@dataclass(slots=True, eq=False)
class Life:
    """A conductor's process from its start to its death."""

    host: str
    process: Process
    service: ConductorService | None = None
    is_serving: bool = False


class Cluster:
    """The processes of a site, their machines, and their database, made anew in ``folder``."""

    def __init__(self, scheduler: Scheduler, folder: Path) -> None:
        self.scheduler = scheduler
        self.path = folder / "cluster.sqlite"
        for file in folder.glob("cluster.sqlite*"):
            file.unlink()
        shutil.copy(databases.empty_file(), self.path)
        self.audit = Audit(scheduler, str(self.path), TIMEOUT_S)
        self.network = Network(scheduler, self._endpoint)
        self.bmcs = hardware.Bmcs(scheduler, self.audit.fault)
        self.lives: dict[str, Life] = {}
        self.sealer = Sealer(site.KEY)

    def database(self, name: str) -> ClusterDatabase:
        """The database as a conductor, or a caller, of this name sees it."""
        db = _database(self.path, name)
        return db.watched(self.scheduler, lambda: self.audit.committed(name))

    def client(self, name: str) -> Client:
        """What a process of the API has."""
        return Client(Ring(self.database(name), site.conf(name, **OPTIONS)), self.network)

    # --------------------------------------------------------------------------- conductors

    def start(self, host: str) -> None:
        """Start a process of this name; it serves a little later."""
        life = self.lives[host] = Life(host, Process(host))
        self.scheduler.note(f"START {host}")
        self.scheduler.spawn(life.process, lambda: self._serve(life), "start")

    def _serve(self, life: Life) -> None:
        conf = site.conf(life.host, **OPTIONS)
        db = self.database(life.host)
        pace = Pace(lease_s=20.0)
        relay = SinkWorker(
            db, AuditSink(self.audit, self.scheduler), holder=f"{life.host}:{id(life)}",
            pace=pace, leased=True,
        )  # fmt: skip
        runtime = lifecycle.build(
            conf, db, self.sealer, on_events_written=relay.wake,
            workers=StrandWorkers(OPTIONS["workers_pool_size"], self.scheduler),
            hardware=hardware.make_registry(conf, self.bmcs, self.scheduler),
        )  # fmt: skip
        relay.start()
        service = life.service = ConductorService(runtime)
        service.periodics = table.Periodics(service.runtime, _PERIODICS)
        service.start()
        life.is_serving = True

    def _endpoint(self, host: str) -> tuple[Process, Any] | None:
        life = self.lives.get(host)
        if life is None or life.service is None or not life.is_serving:
            return None
        return (life.process, life.service.manager) if life.process.is_alive else None

    def kill(self, host: str) -> None:
        """kill -9: none of its threads runs again."""
        self.scheduler.note(f"KILL {host}")
        self.lives[host].process.is_alive = False

    def pause(self, host: str, seconds: float) -> None:
        """SIGSTOP, and SIGCONT ``seconds`` later."""
        process = self.lives[host].process
        self.scheduler.note(f"PAUSE {host} for {seconds:.0f} s")
        process.is_paused = True
        self.scheduler.spawn(OPERATOR, lambda: self._go_on(process), "go on", seconds)

    def mute(self, host: str, seconds: float) -> None:
        """Let its signs of life not get through for a while; all else of it goes on."""
        self.scheduler.note(f"MUTE {host} for {seconds:.0f} s")
        self.lives[host].process.mute_until = self.scheduler.now + seconds

    def _go_on(self, process: Process) -> None:
        if process.is_alive and process.is_paused:
            self.scheduler.note(f"GO ON {process.name}")
            process.is_paused = False

    def alive(self) -> list[Life]:
        return [life for life in self.lives.values() if life.process.is_alive]


OPERATOR: Final = Process("operator")


@dataclass(slots=True)
class Fate:
    """What happens to processes: so many deaths and pauses, each at a point that is drawn.

    ``mutes``: how often somebody works on whose signs of life do not get through.
    """

    cluster: Cluster
    deaths: int = 2
    pauses: int = 2
    mutes: int = 2
    longest_pause_s: float = 90.0
    every: int = 150  # points, on average
    is_over: bool = False

    def at_switch(self, strand: Strand) -> None:
        lots = self.cluster.scheduler.lots
        host = strand.process.name
        if self.is_over or host not in HOSTS or lots.random() * self.every >= 1:
            return
        if len(self.cluster.alive()) < len(HOSTS) and lots.random() < 0.5:
            return
        if self.deaths and lots.random() < 0.5:
            self.deaths -= 1
            self.cluster.kill(host)
            if lots.random() < 0.6:
                self._start_later(host, lots.uniform(0.5, 2 * TIMEOUT_S))
        elif self.mutes and lots.random() < 0.5:
            self.mutes -= 1
            self.cluster.mute(host, lots.uniform(TIMEOUT_S / 2, 2 * TIMEOUT_S))
        elif self.pauses:
            self.pauses -= 1
            self.cluster.pause(host, lots.uniform(1, self.longest_pause_s))

    def _start_later(self, host: str, seconds: float) -> None:
        self.cluster.scheduler.spawn(
            OPERATOR, lambda: self.cluster.start(host), f"start {host}", seconds
        )
