"""A whole service in one process: built, started and stopped in one place.

    with StateDir(path) as home, Service(conf, home) as service:
        service.url                       # http://127.0.0.1:6385
        service.orchestration_url         # http://127.0.0.1:8004

What is stopped last was started first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Self

from bloomery import errors
from bloomery.api import app, auth_strategy, scrape, server
from bloomery.api.orchestration import faults
from bloomery.cmd import stacks, threads
from bloomery.conductor import lease, lifecycle
from bloomery.conf import Conf
from bloomery.db import nodes, schema, stack_counts
from bloomery.db.engine import Database
from bloomery.events import relay
from bloomery.metrics import Readings, Watched
from bloomery.operations.context import Services
from bloomery.operations.policy_engine import Policies
from bloomery.rpc.client import Client
from bloomery.rpc.transports import InProcess
from bloomery.state_dir import StateDir

LOG = logging.getLogger(__name__)


class Service:
    """APIs, conductor and engine on the database of a state dir that this process has taken."""

    def __init__(self, conf: Conf, home: StateDir, config_files: Sequence[str] = ()) -> None:
        """Build everything and bind the address; nothing runs yet.  Raises CannotStart.

        ``config_files``: those that ``conf`` was read from, for oslo.messaging's own options.
        """
        self._home = home
        lease.check(conf.conductor)
        with contextlib.ExitStack() as built, told_as_a_start():
            self.db = home.open_database(conf.database)
            built.callback(self.db.close)
            prepare_schema(self.db, home, config_files)
            conf = named(conf, home.name_conductor(self.db, conf.default.host))
            self.conf = placed(conf, home.path)
            self._build(config_files)
            built.pop_all()

    def _build(self, config_files: Sequence[str]) -> None:
        conf = self.conf
        if relay.needs_oslo(conf):
            threads.use_threads()
        self.relay = relay.make_relay(conf, self.db, config_files)
        sealer = self._home.sealer(self.db)
        self.stacks = stacks.Stacks(
            lambda: self.services, conf, self.db, sealer,
            endpoint=self._signals_at, on_events_written=self.relay.wake,
        )  # fmt: skip
        self.relay.add_reader(self.stacks.engine.wakes.wake)
        runtime = lifecycle.build(
            conf, self.db, sealer,
            on_events_written=self.relay.wake, wants_snapshots=self.relay.wants_snapshots,
        )  # fmt: skip
        self.conductor = lifecycle.ConductorService(runtime)
        rpc = Client(runtime.ring, InProcess({runtime.host: self.conductor.manager}))
        folders = [*(Path(name).parent for name in config_files), self._home.path]
        policies = Policies(conf, folders)
        self.services = Services(
            db=self.db, rpc=rpc, conf=conf, policies=policies, sealer=sealer,
            engine=self.stacks.contract, live=self.relay.live,
        )  # fmt: skip
        self._build_fronts(config_files)

    def _build_fronts(self, config_files: Sequence[str]) -> None:
        """Bind the addresses of both APIs."""
        logins = auth_strategy.chosen(self.conf, config_files)
        self._identity_url = auth_strategy.identity_url(logins)
        of_stacks = auth_strategy.for_stacks(self.conf, logins, config_files)
        server.raise_descriptor_limit()
        metrics = scrape.make(self._watched())
        self.api = server.Server(app.make_app(self.services, metrics, logins), self.conf)
        try:
            self.orchestration_api = server.Server(
                stacks.late_app(self.services, of_stacks),
                stacks.front_conf(self.conf),
                port_option="--orchestration-port",
                fault=faults.unparsed,
            )
        except errors.CannotStart:
            self.api.stop()
            raise

    def _watched(self) -> tuple[Watched, ...]:
        """What /metrics asks when somebody looks."""
        runtime, jobs = self.conductor.runtime, self.conductor.periodics
        trees = self.stacks.engine.groups
        return (
            Watched("nodes", "Nodes by provision state.", ("state",), self._nodes_by_state),
            Watched("stacks", "Stacks by state.", ("state",), self._stacks_by_state),
            Watched("stack_resources", "Resources of stacks.", ("state",), self._resources),
            Watched("stack_trees", "Stacks worked on here.", (), lambda: {(): len(trees)}),
            Watched("stack_workers_busy", "Workers at stacks.", (), lambda: {(): trees.busy}),
            Watched("workers_busy", "Workers in use.", (), lambda: {(): runtime.workers.busy}),
            Watched("nodes_held", "Nodes locked here.", (), lambda: {(): runtime.node_locks.held}),
            Watched(
                "lock_waiters", "Callers waiting now.", (), lambda: {(): runtime.node_locks.waiting}
            ),
            Watched("periodic_age_seconds", "Since its last run.", ("job",), jobs.ages_s),
            Watched("periodic_failing", "1: its last run failed.", ("job",), jobs.failing),
            Watched("periodic_lag_seconds", "How late the latest look is.", ("job",), jobs.lags_s),
            Watched("periodic_suspects", "Nodes that did not answer.", ("job",), jobs.suspects),
        )

    def _nodes_by_state(self) -> Readings:
        with self.db.read() as conn:
            return {(state,): count for state, count in nodes.count_by_state(conn).items()}

    def _stacks_by_state(self) -> Readings:
        with self.db.read() as conn:
            return {(state,): n for state, n in stack_counts.stacks_by_state(conn).items()}

    def _resources(self) -> Readings:
        with self.db.read() as conn:
            return {(state,): n for state, n in stack_counts.resources_by_state(conn).items()}

    @property
    def url(self) -> str:
        return self.api.url

    @property
    def orchestration_url(self) -> str:
        return self.orchestration_api.url

    def _signals_at(self) -> str:
        """Return the URL below which resources of stacks are signalled."""
        return f"{self.conf.orchestration.public_endpoint or self.orchestration_url}/v1"

    def start(self) -> None:
        """Take up what a former life left, then answer.

        What fails stops what was started, the last first, without grace.  Raises CannotStart.
        """
        with contextlib.ExitStack() as started, told_as_a_start():
            started.callback(self.db.close)
            started.callback(self.api.stop)  # it listens already, and lets nobody in yet
            started.callback(self.orchestration_api.stop)
            self.relay.start()
            started.callback(self.relay.stop)
            started.callback(self.conductor.stop, grace_s=0)
            self.conductor.start(alone=self.db.is_sqlite)
            started.callback(self.stacks.stop)
            self.stacks.start()
            self.api.start()
            self.orchestration_api.start()
            started.pop_all()
        self._write_clouds()

    def reload(self) -> None:
        """Read certificates again: new connections get what is in their files now."""
        self.api.reload()
        self.orchestration_api.reload()

    def _write_clouds(self) -> None:
        """Tell clients where the API is; they may be told by hand, so a failure is a warning."""
        try:
            self._home.write_clouds(
                self.url, self.orchestration_url,
                username=auth_strategy.first_name(self.conf), auth_url=self._identity_url,
            )  # fmt: skip
        except errors.CannotStart as exc:
            LOG.warning("serving without a fresh %s: %s", self._home.clouds, exc)

    def stop(self) -> None:
        """Refuse new requests, wait for the work that goes on, and close the database.

        Requests and flows have one grace between them, ``graceful_shutdown_timeout`` from now
        on; what is left then is cut off, and flows are taken up at the next start.
        """
        give_up_at = monotonic() + self.conf.conductor.graceful_shutdown_timeout

        def left_s() -> float:
            return max(give_up_at - monotonic(), 0.0)

        with contextlib.ExitStack() as started:  # each is stopped, whatever the others say
            started.callback(self.db.close)
            started.callback(self.relay.stop)
            started.callback(lambda: self.conductor.stop(left_s()))
            started.callback(lambda: self.stacks.stop(left_s()))
            started.callback(lambda: self.orchestration_api.stop(left_s()))
            started.callback(lambda: self.api.stop(left_s()))
            started.callback(self.conductor.periodics.stop)
            started.callback(self.stacks.begin_stop)
            started.callback(self.orchestration_api.begin_stop)
            started.callback(self.api.begin_stop)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()


def named(conf: Conf, host: str) -> Conf:
    return dataclasses.replace(conf, default=dataclasses.replace(conf.default, host=host))


def placed(conf: Conf, state_dir: Path) -> Conf:
    """Return the configuration with folders in the state dir where it names none."""
    if conf.agent.certificates_path is not None:
        return conf
    agent = dataclasses.replace(conf.agent, certificates_path=str(state_dir / "certificates"))
    return dataclasses.replace(conf, agent=agent)


def prepare_schema(db: Database, home: StateDir, config_files: Sequence[str] = ()) -> None:
    """Bring SQLite's schema up; require that of a server to be.  Raises CannotStart."""
    if not db.is_sqlite:
        schema.require_head(db, state_dir=home.path, config_files=config_files)
        return
    backup = schema.prepare(db)
    if backup is not None:
        LOG.warning("the schema was brought up; the database as it was is kept in %s", backup)


@contextlib.contextmanager
def told_as_a_start() -> Iterator[None]:
    """Say of a database that refuses us now that it keeps us from starting."""
    try:
        yield
    except errors.DatabaseBusy as exc:
        raise errors.CannotStart(
            reason=f"cannot start: {exc.facts['reason']}; see to that, and start again",
        ) from exc
