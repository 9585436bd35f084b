"""What every role stands on: database and schema, key, relay, and who serves what.

with foundation.build(conf, home, config_files) as base:     # what fails closes it again
    ...
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bloomery import errors
from bloomery.cmd import threads
from bloomery.conductor import lifecycle
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conf import Conf, rpc
from bloomery.db import conductors, kept_rows, schema
from bloomery.db.engine import Database
from bloomery.events import relay
from bloomery.operations.context import Services
from bloomery.operations.heavy_jobs import HeavyJobs
from bloomery.operations.policy_engine import Policies
from bloomery.rpc import ring_options, transports
from bloomery.rpc.client import Client
from bloomery.rpc.contract import Conductor
from bloomery.rpc.ring import Ring
from bloomery.secrets import Sealer
from bloomery.state_dir import StateDir

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """``config_files``: those that ``conf`` was read from, for options of other packages."""

    home: StateDir
    conf: Conf
    config_files: Sequence[str]
    db: Database
    sealer: Sealer
    relay: relay.Relay
    ring: Ring

    def services(
        self,
        local: Mapping[str, Conductor] | None = None,
        threads: int | None = None,
    ) -> Services:
        """Return what operations need.

        ``local``: the conductors of this process.  ``threads``: how many call others, by default
        those of an API.
        """
        transport = transports.build_client(
            self.conf, local=local, config_files=self.config_files, threads=threads,
            is_silent=self.ring.is_silent,
        )  # fmt: skip
        folders = [*(Path(name).parent for name in self.config_files), self.home.path]
        return Services(
            db=self.db,
            rpc=Client(self.ring, transport),
            conf=self.conf,
            policies=Policies(self.conf, folders),
            sealer=self.sealer,
            heavy_jobs=HeavyJobs(patient=self.conf.orchestration.threads // 2),
            live=self.relay.live,
            on_webhooks_changed=self.relay.poll_webhooks,
        )

    def conductor_runtime(self) -> ConductorRuntime:
        """Return the parts of this process' conductor."""
        runtime = lifecycle.build(
            self.conf, self.db, self.sealer,
            on_events_written=self.relay.wake, wants_snapshots=self.relay.wants_snapshots,
        )  # fmt: skip
        return dataclasses.replace(runtime, ring=self.ring)

    def warn_of_another_ring(self) -> None:
        """Say which options differ from those of the conductors, whose nodes we look for."""
        with self.db.read() as conn:
            different = [
                *ring_options.differences(conn, self.conf),
                *ring_options.other_times(conn, self.conf),
            ]
        if different:
            LOG.warning("set these options alike everywhere: %s", "; ".join(different))

    def wait_for_callers(self, most_s: float) -> None:
        """Let a conductor that went off line serve those who know the ring of before.

        Until they have read it again, if there is anybody.
        """
        if self.conf.default.rpc_transport == rpc.NONE:
            return
        with self.db.read() as conn:
            has_peers = any(each.online for each in conductors.list_all(conn))
        if has_peers:
            threading.Event().wait(min(self.conf.default.hash_ring_reset_interval, most_s))

    def rpc_server(self, host: str, manager: Conductor) -> transports.Server:
        """Return what lets other processes call this one's conductor."""
        return transports.build_server(self.conf, host, manager, config_files=self.config_files)


@contextlib.contextmanager
def build(
    conf: Conf, home: StateDir, config_files: Sequence[str] = (), *, is_conductor: bool = False
) -> Iterator[Foundation]:
    """Open everything for the block, which builds on it; nothing runs yet.

    ``is_conductor``: others call this process by its name.  Whatever the block raises closes it
    again.  Raises CannotStart.
    """
    with contextlib.ExitStack() as built, start_errors():
        db = home.open_database(conf.database)
        built.callback(db.close)
        prepare_schema(db, home, config_files)
        host = home.name_conductor(db, conf.default.host)
        if is_conductor:
            host = transports.conductor_name(conf, host)
        conf = with_folders(with_host(conf, host), home.path)
        if relay.needs_oslo(conf) or transports.needs_oslo(conf):
            threads.use_threads()
        sealer = home.sealer(db, conf.default.sealing_key_file)
        yield Foundation(
            home=home,
            conf=conf,
            config_files=config_files,
            db=db,
            sealer=sealer,
            relay=relay.make_relay(conf, db, config_files, sealer),
            ring=Ring(db, conf),
        )
        built.pop_all()


def require_several(home: StateDir, conf: Conf, role: str) -> None:
    """Refuse to be one of several processes on SQLite, or out of reach.  Raises CannotStart."""
    path = home.sqlite_file(conf.database)
    if path is None:
        if conf.default.rpc_transport == rpc.NONE:
            raise errors.CannotStart(
                reason=f"cannot run {role} with [DEFAULT]rpc_transport = none: nothing would carry "
                "calls from APIs to conductors; set it to json-rpc or oslo for all processes"
            )
        return
    raise errors.CannotStart(
        reason=f"cannot run {role} on SQLite, which is for one process: run bloomery serve, or "
        f"move to a database of a server with bloomery db copy --from sqlite:///{path} "
        "--to postgresql://USER:PASSWORD@HOST/NAME, and name that one in [database]connection",
    )


def with_host(conf: Conf, host: str) -> Conf:
    return dataclasses.replace(conf, default=dataclasses.replace(conf.default, host=host))


def with_folders(conf: Conf, state_dir: Path) -> Conf:
    """Return the configuration with folders in the state dir where it names none."""
    agent, deploy = conf.agent, conf.deploy
    agent = dataclasses.replace(
        agent, certificates_path=agent.certificates_path or str(state_dir / "certificates")
    )
    deploy = dataclasses.replace(
        deploy,
        http_root=deploy.http_root or str(state_dir / "http"),
        ramdisk_cache_path=deploy.ramdisk_cache_path or str(state_dir / "cache"),
    )
    return dataclasses.replace(conf, agent=agent, deploy=deploy)


def prepare_schema(db: Database, home: StateDir, config_files: Sequence[str] = ()) -> None:
    """Bring SQLite's schema up; require that of a server to be.  Raises CannotStart."""
    if not db.is_sqlite:
        schema.require_head(db, state_dir=home.path, config_files=config_files)
        return
    backup = schema.prepare(db)
    if backup is not None:
        LOG.warning("the schema was brought up; the database as it was is kept in %s", backup)


@contextlib.contextmanager
def start_errors() -> Iterator[None]:
    """Say of a database that refuses us now that it keeps us from starting.

    Who keeps a row that the start needs is waited for.
    """
    try:
        with kept_rows.outlasted():
            yield
    except errors.DatabaseBusy as exc:
        raise errors.CannotStart(
            reason=f"cannot start: {exc.facts['reason']}; see to that, and start again",
        ) from exc
