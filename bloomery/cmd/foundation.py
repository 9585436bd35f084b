"""The parts that every role shares: database and schema, key, relay, ring.

with foundation.build(conf, home, config_files) as base:     # an error closes all of them
...
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bloomery import errors
from bloomery.cmd import threads
from bloomery.conf import Conf, default
from bloomery.db import conductors, schema, server_edge
from bloomery.db.engine import Database
from bloomery.events import relay
from bloomery.operations.context import Services
from bloomery.operations.heavy_jobs import HeavyJobs
from bloomery.operations.policy_engine import Policies
from bloomery.rpc import ring, transports
from bloomery.rpc.client import Client
from bloomery.rpc.contract import Conductor
from bloomery.rpc.ring import Ring
from bloomery.secrets import Sealer
from bloomery.state_dir import StateDir

LOG = logging.getLogger(__name__)

_NO_THREAD: Final = "can't start new thread"  # CPython's words for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """``config_files``: the sources of ``conf``, for options of other packages."""

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
        pulse_missing: Callable[[], list[str]] = list,
    ) -> Services:
        """Return the dependencies of operations.

        ``local``: the conductors of this process; ``pulse_missing``: of their pulse.  ``threads``:
        the number of calling threads, by default that of an API.
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
            pulse_missing=pulse_missing,
        )

    def warn_of_another_ring(self) -> None:
        """Log the options of the ring that differ from those of the conductors."""
        with self.db.read() as conn:
            different = [
                *ring.option_differences(conn, self.conf),
                *ring.time_differences(conn, self.conf),
            ]
        if different:
            LOG.warning("set these options alike everywhere: %s", "; ".join(different))

    def wait_for_callers(self, most_s: float) -> None:
        """Let an off-line conductor serve callers until they have read the ring again.

        The conductor waits only where peers exist.
        """
        if self.conf.default.rpc_transport == default.NONE:
            return
        with self.db.read() as conn:
            has_peers = any(each.online for each in conductors.list_all(conn))
        if has_peers:
            threading.Event().wait(min(self.conf.default.hash_ring_reset_interval, most_s))

    def rpc_server(self, host: str, manager: Conductor) -> transports.Server:
        """Return the server for other processes' calls to this conductor."""
        return transports.build_server(self.conf, host, manager, config_files=self.config_files)


@contextlib.contextmanager
def build(
    conf: Conf, home: StateDir, config_files: Sequence[str] = (), *, is_conductor: bool = False
) -> Iterator[Foundation]:
    """Open everything for the block; nothing runs yet.

    ``is_conductor``: other processes call this one by its name.  An error in the block closes
    everything.  Raises CannotStart.
    """
    with contextlib.ExitStack() as built, start_errors(home):
        db = home.open_database(conf.database)
        built.callback(db.close)
        prepare_schema(db, home, config_files)
        home.recognise(db)
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
    """Refuse SQLite, or a missing transport, for a role in its own process.  Raises CannotStart."""
    path = home.sqlite_file(conf.database)
    if path is None:
        if conf.default.rpc_transport == default.NONE:
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
    """Return the configuration with folders and files in the state dir."""
    agent, deploy = conf.agent, conf.deploy
    agent = dataclasses.replace(
        agent,
        certificates_path=agent.certificates_path or str(state_dir / "certificates"),
        deploy_logs_local_path=agent.deploy_logs_local_path or str(state_dir / "ramdisk-logs"),
    )
    deploy = dataclasses.replace(
        deploy,
        http_root=deploy.http_root or str(state_dir / "http"),
        ramdisk_cache_path=deploy.ramdisk_cache_path or str(state_dir / "cache"),
    )
    pxe = dataclasses.replace(
        conf.pxe, instance_master_path=conf.pxe.instance_master_path or str(state_dir / "images")
    )
    audit = dataclasses.replace(
        conf.audit, file=conf.audit.file and str(state_dir / conf.audit.file)
    )
    return dataclasses.replace(conf, agent=agent, audit=audit, deploy=deploy, pxe=pxe)


def prepare_schema(db: Database, home: StateDir, config_files: Sequence[str] = ()) -> None:
    """Upgrade SQLite's schema; require that of a server to be current.  Raises CannotStart."""
    if not db.is_sqlite:
        schema.require_head(db, state_dir=home.path, config_files=config_files)
        return
    backup = schema.prepare(db)
    if backup is not None:
        LOG.warning("upgraded the schema; the old database is kept in %s", backup)


@contextlib.contextmanager
def start_errors(home: StateDir | None = None) -> Iterator[None]:
    """Turn database errors during the start into CannotStart.

    Rows locked by other processes are waited for.  ``home``: where SQLite's file may be.
    """
    try:
        with server_edge.outlasting_rows():
            yield
    except RuntimeError as exc:
        if _NO_THREAD not in str(exc):
            raise
        raise errors.CannotStart(
            reason="cannot start: the system gives no more threads; raise the limits of memory and "
            "of processes (ulimit -v and -u; MemoryMax= and TasksMax= of a unit), and start again",
        ) from exc
    except errors.DatabaseBusy as exc:
        is_of_home = home is not None and exc.facts.get("disk_file") == str(home.database)
        elsewhere = ", or choose another --state-dir" if is_of_home else ""
        raise errors.CannotStart(
            reason=f"cannot start: {exc.facts['reason']}; see to that{elsewhere}, and start again",
        ) from exc
