"""``bloomery engine``: the engine of stacks alone, beside other processes on one database."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from bloomery import conf, errors
from bloomery.cmd import options, process, stacks, threads
from bloomery.cmd.serve import log_to_stderr, warn_of
from bloomery.cmd.service import named, prepare_schema, told_as_a_start
from bloomery.conf import Conf
from bloomery.events import relay
from bloomery.operations.context import Services
from bloomery.operations.policy_engine import Policies
from bloomery.rpc.client import Client
from bloomery.rpc.ring import Ring
from bloomery.rpc.transports import InProcess
from bloomery.state_dir import StateDir

_AFTER_GRACE_S: Final = 20.0  # for the relay and the database


@click.command()
@options.state_dir
@options.config_file
@click.option("--verbose", is_flag=True, help="Log what happens, not only what goes wrong.")
def engine(state_dir: Path, config_files: tuple[str, ...], verbose: bool) -> None:
    """Run an engine of stacks, beside other processes on the database of a server.

    On SQLite one process serves at a time: ``bloomery serve`` has an engine inside.
    """
    log_to_stderr(logging.INFO if verbose else logging.WARNING)
    settings = conf.load(config_files)
    warn_of(conf.unknown(config_files))
    process.give_large_blocks_back()
    shutdown = process.Shutdown().listen()
    with process.ends_here():
        home = StateDir(state_dir)
        home.take()
        alone = EngineProcess(settings, home, config_files)
        alone.start()
        grace_s = settings.conductor.graceful_shutdown_timeout
        shutdown.allow_grace(grace_s + _AFTER_GRACE_S)
        click.echo(f"engine {alone.engine_id} works on stacks (state in {home.path})")
        shutdown.requested.wait()
        click.echo("stopping: waiting for the turns that run")
        alone.stop(grace_s)


class EngineProcess:
    """The engine, the relay of what it tells, and the database."""

    def __init__(self, settings: Conf, home: StateDir, config_files: Sequence[str] = ()) -> None:
        """Build everything; nothing runs yet.  Raises CannotStart."""
        if not settings.engine.num_engine_workers:
            raise errors.CannotStart(
                reason="cannot run an engine without workers: set [engine]num_engine_workers"
            )
        with contextlib.ExitStack() as built, told_as_a_start():
            self._db = home.open_database(settings.database)
            built.callback(self._db.close)
            prepare_schema(self._db, home, config_files)
            self._conf = named(settings, home.name_conductor(self._db, settings.default.host))
            if relay.needs_oslo(self._conf):
                threads.use_threads()
            self._relay = relay.make_relay(self._conf, self._db, config_files)
            folders = [*(Path(name).parent for name in config_files), home.path]
            sealer = home.sealer(self._db)
            services = Services(
                db=self._db, rpc=Client(Ring(self._db, self._conf), InProcess({})), conf=self._conf,
                policies=Policies(self._conf, folders), sealer=sealer,
            )  # fmt: skip
            self._stacks = stacks.Stacks(
                lambda: services, self._conf, self._db, sealer,
                endpoint=self._signals_at, on_events_written=self._relay.wake,
            )  # fmt: skip
            built.pop_all()

    @property
    def engine_id(self) -> str:
        return self._stacks.engine.liveness.engine_id

    def _signals_at(self) -> str:
        """Return the URL below which resources are signalled; the API is in another process."""
        ours = self._conf.orchestration
        host = ours.host_ip or self._conf.api.host_ip
        scheme = "https" if self._conf.api.enable_ssl_api else "http"
        return f"{ours.public_endpoint or f'{scheme}://{host}:{ours.port}'}/v1"

    def start(self) -> None:
        """Take up what nobody works on, and return.  Raises CannotStart."""
        with contextlib.ExitStack() as started, told_as_a_start():
            started.callback(self._db.close)
            self._relay.start()
            started.callback(self._relay.stop)
            started.callback(self._stacks.stop)
            self._stacks.start()
            started.pop_all()

    def stop(self, grace_s: float = 0.0) -> None:
        """Let turns that run end, for ``grace_s`` at most; another engine goes on."""
        with contextlib.ExitStack() as started:
            started.callback(self._db.close)
            started.callback(self._relay.stop)
            started.callback(lambda: self._stacks.stop(grace_s))
