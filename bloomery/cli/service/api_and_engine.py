"""``bloomery api`` and ``bloomery engine``: the roles that import nothing of a conductor."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from bloomery import conf
from bloomery.cli.service import options
from bloomery.cmd import foundation, process, workers
from bloomery.cmd.api import ApiProcess
from bloomery.cmd.engine import EngineProcess
from bloomery.state_dir import StateDir

_AFTER_GRACE_S: Final = 20.0  # for an engine's relay and database


@click.command()
@options.state_dir
@options.config_file
@options.addresses
@click.option(
    "--workers", "count", type=click.IntRange(1, 64), default=1, show_default=True,
    help="How many processes share the ports.",
)  # fmt: skip
@click.option("--verbose", is_flag=True, help="Log what happens, not only what goes wrong.")
def api(
    state_dir: Path,
    config_files: tuple[str, ...],
    host_ip: str | None,
    port: int | None,
    orchestration_port: int | None,
    count: int,
    verbose: bool,
) -> None:
    """Run both APIs in processes of their own, on the database of a server.

    Nodes need bloomery conductor, stacks need bloomery engine.
    """
    is_alone = count == 1
    loaded = process.begin(config_files, verbose=verbose, has_traces=is_alone)
    settings = options.listening_on(loaded, host_ip, port, orchestration_port)
    with process.ends_here():
        home = StateDir(state_dir, role="api")
        serve_apis = functools.partial(_serve_apis, settings, home, config_files)
        if is_alone:
            shutdown = process.Shutdown().listen()
            home.take()
            serve_apis(shutdown)
        else:
            home.take()
            foundation.require_several(home, settings, "bloomery api")
            workers.Parent(count, settings, home, serve_apis).run()


def _serve_apis(
    settings: conf.Conf,
    home: StateDir,
    config_files: Sequence[str],
    shutdown: process.Shutdown,
    link: workers.Link | None = None,
) -> None:
    """Serve until the shutdown is requested; ``link``: to the parent of several workers."""
    apis = ApiProcess(settings, home, config_files, shares_ports=link is not None)
    on_hangup = apis.reload if settings.api.enable_ssl_api else None
    apis.start(lambda: shutdown.allow_grace_of(settings, on_hangup))
    if link is None:
        click.echo(workers.greeting(apis.url, apis.orchestration_url, home))
    else:
        link.tell_ready(shutdown)
    shutdown.requested.wait()
    if link is None:
        click.echo("stopping: waiting for the requests that go on")
    apis.stop(settings.conductor.graceful_shutdown_timeout)


@click.command()
@options.state_dir
@options.config_file
@click.option("--verbose", is_flag=True, help="Log what happens, not only what goes wrong.")
def engine(state_dir: Path, config_files: tuple[str, ...], verbose: bool) -> None:
    """Run an engine of stacks, beside other processes on the database of a server.

    With SQLite only one process serves at a time: bloomery serve includes an engine.
    """
    settings = process.begin(config_files, verbose=verbose)
    shutdown = process.Shutdown().listen()
    with process.ends_here():
        home = StateDir(state_dir)
        home.take()
        alone = EngineProcess(settings, home, config_files)
        grace_s = settings.conductor.graceful_shutdown_timeout
        alone.start(lambda: shutdown.allow_grace(grace_s + _AFTER_GRACE_S))
        click.echo(f"engine {alone.engine_id} works on stacks (state in {home.path})")
        shutdown.requested.wait()
        click.echo("stopping: waiting for the turns that run")
        alone.stop(grace_s)
