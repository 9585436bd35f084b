"""``bloomery api``: both APIs in their own process, beside conductors and engines."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

import click

from bloomery.cmd import api_servers, foundation, gauges, options, process, stacks
from bloomery.cmd.serve import begin, listening_on
from bloomery.conf import Conf
from bloomery.state_dir import StateDir


@click.command()
@options.state_dir
@options.config_file
@options.addresses
@click.option("--verbose", is_flag=True, help="Log what happens, not only what goes wrong.")
def api(
    state_dir: Path,
    config_files: tuple[str, ...],
    host_ip: str | None,
    port: int | None,
    orchestration_port: int | None,
    verbose: bool,
) -> None:
    """Run both APIs in a process of their own, on the database of a server.

    Nodes need bloomery conductor, stacks need bloomery engine.
    """
    loaded = begin(config_files, verbose=verbose)
    settings = listening_on(loaded, host_ip, port, orchestration_port)
    shutdown = process.Shutdown().listen()
    with process.ends_here():
        home = StateDir(state_dir, role="api")
        home.take()
        apis = ApiProcess(settings, home, config_files)
        apis.start()
        if settings.api.enable_ssl_api:
            shutdown.on_hangup(apis.reload)
        shutdown.allow_grace_of(settings)
        click.echo(
            f"Bloomery answers at {apis.url} (state in {home.path}); "
            f"stacks are at {apis.orchestration_url}"
        )
        shutdown.requested.wait()
        click.echo("stopping: waiting for the requests that go on")
        apis.stop(settings.conductor.graceful_shutdown_timeout)


class ApiProcess:
    """Both APIs, the event relay, and the database."""

    def __init__(self, settings: Conf, home: StateDir, config_files: Sequence[str] = ()) -> None:
        """Build everything and bind the addresses; nothing runs yet.  Raises CannotStart."""
        foundation.require_several(home, settings, "bloomery api")
        engine = dataclasses.replace(settings.engine, num_engine_workers=0)
        settings = dataclasses.replace(settings, engine=engine)
        with foundation.build(settings, home, config_files) as base:
            self._base = base
            self.services = base.services()
            self._stacks = stacks.Stacks(
                self.services, base.conf, base.db, base.sealer,
                endpoint=lambda: api_servers.signals_url(base, self.orchestration_url),
                on_events_written=base.relay.wake,
            )  # fmt: skip
            self._api_servers = api_servers.ApiServers(
                base, self.services, self._stacks.operations,
                (*gauges.of_site(base.db), *gauges.of_broker(self.services.rpc)),
            )  # fmt: skip

    @property
    def url(self) -> str:
        return self._api_servers.api.url

    @property
    def orchestration_url(self) -> str:
        return self._api_servers.orchestration_api.url

    def start(self) -> None:
        """Serve, and return.  Raises CannotStart."""
        with contextlib.ExitStack() as started, foundation.start_errors():
            started.callback(self._base.db.close)
            started.callback(self._api_servers.api.stop)
            started.callback(self._api_servers.orchestration_api.stop)
            self._base.relay.start()
            started.callback(self._base.relay.stop)
            started.callback(self._base.ring.stop)
            self._base.warn_of_another_ring()
            self._base.ring.start()
            self._api_servers.start()
            started.pop_all()
        self._api_servers.write_clouds()

    def reload(self) -> None:
        """Read certificates again, for new connections."""
        self._api_servers.reload()

    def stop(self, grace_s: float = 0.0) -> None:
        """Refuse new requests; running ones may end within ``grace_s``."""
        give_up_at = monotonic() + grace_s

        def left_s() -> float:
            return max(give_up_at - monotonic(), 0.0)

        with contextlib.ExitStack() as started:
            started.callback(self._base.db.close)
            started.callback(self._base.relay.stop)
            started.callback(self._base.ring.stop)
            started.callback(self.services.rpc.close)
            started.callback(lambda: self._api_servers.orchestration_api.stop(left_s()))
            started.callback(lambda: self._api_servers.api.stop(left_s()))
            started.callback(self._api_servers.begin_stop)
