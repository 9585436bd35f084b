"""``bloomery serve``, ``api``, ``conductor`` and ``engine``: the service, whole or in roles."""

from __future__ import annotations

import dataclasses
import functools
import logging
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from bloomery import conf
from bloomery.cli import groups
from bloomery.cli.service import options
from bloomery.cli.service.conductor_list import drain, list_conductors
from bloomery.cmd import foundation, process, workers
from bloomery.cmd.api import ApiProcess
from bloomery.cmd.conductor import ConductorProcess
from bloomery.cmd.engine import EngineProcess
from bloomery.cmd.service import Service
from bloomery.state_dir import CLOUD, StateDir

LOG = logging.getLogger(__name__)

_AFTER_GRACE_S: Final = 20.0  # for an engine's relay and database
CLIENTS: Final = "python-ironicclient python-openstackclient python-heatclient"


@click.command()
@options.state_dir
@options.config_file
@options.addresses
@click.option("--open", "opens", is_flag=True, help="Open the pages in a browser.")
@click.option("--verbose", is_flag=True, help="Log what happens, not only what goes wrong.")
def serve(
    state_dir: Path,
    config_files: tuple[str, ...],
    host_ip: str | None,
    port: int | None,
    orchestration_port: int | None,
    opens: bool,
    verbose: bool,
) -> None:
    """Run APIs, conductor and engine in one process."""
    loaded = process.begin(config_files, verbose=verbose)
    settings = listening_on(loaded, host_ip, port, orchestration_port)
    shutdown = process.Shutdown().listen().hear_conductor_signals()
    with process.ends_here():
        home = StateDir(state_dir)
        home.take()  # the kernel releases it when the process ends
        service = Service(
            settings, home, config_files,
            on_superseded=process.end_superseded, on_drain=shutdown.drain,
        )  # fmt: skip
        process.before_end(service.conductor.runtime.lease.revoke)
        has_tls = settings.api.enable_ssl_api or settings.json_rpc.use_ssl
        service.start(
            lambda: shutdown.allow_grace_of(settings, service.reload if has_tls else None)
        )
        click.echo(next_steps(service, home))
        if opens:
            webbrowser.open(f"{service.url}/ui/")
        shutdown.requested.wait()
        click.echo("stopping: waiting for the work that goes on")
        service.stop(
            shutdown.grace_s(settings), stays_online=shutdown.restarts, drains=shutdown.drains
        )


def listening_on(
    settings: conf.Conf,
    host_ip: str | None,
    port: int | None,
    orchestration_port: int | None = None,
) -> conf.Conf:
    """Return the settings with the addresses of the command line, if any."""
    values: dict[str, Any] = {"host_ip": host_ip, "port": port}
    addresses = {name: value for name, value in values.items() if value is not None}
    orchestration = settings.orchestration
    if orchestration_port is not None:
        orchestration = dataclasses.replace(orchestration, port=orchestration_port)
    return dataclasses.replace(
        settings, api=dataclasses.replace(settings.api, **addresses), orchestration=orchestration
    )


def next_steps(service: Service, home: StateDir) -> str:
    """Return the first commands for a user."""
    hardware = service.conf.default.enabled_hardware_types
    driver = "fake-hardware" if "fake-hardware" in hardware else hardware[0]
    login = "  read -rs OS_PASSWORD && export OS_PASSWORD  # that of the login; not shown"
    logins = [] if service.conf.default.auth_strategy == "noauth" else [login]
    return "\n".join(
        (
            f"Bloomery answers at {service.url} (state in {home.path})",
            f"Its pages are at {service.url}/ui/",
            f"In another terminal, after `pip install {CLIENTS}`:",
            f"  export OS_CLIENT_CONFIG_FILE={home.clouds} OS_CLOUD={CLOUD}",
            *logins,
            "  baremetal driver list",
            f"  baremetal node create --driver {driver} --name node-1",
            f"Stacks are at {service.orchestration_url}:",
            "  openstack stack create -t TEMPLATE.yaml NAME",
            "Ctrl-C stops it.",
        ),
    )


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
    settings = listening_on(loaded, host_ip, port, orchestration_port)
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


@click.group(cls=groups.Group, invoke_without_command=True)
@options.state_dir
@options.config_file
@click.option("--verbose", is_flag=True, help="Log what happens, not only what goes wrong.")
@click.pass_context
def conductor(
    ctx: click.Context, state_dir: Path, config_files: tuple[str, ...], verbose: bool
) -> None:
    """Run a conductor in a process of its own, on the database of a server."""
    if ctx.invoked_subcommand is not None:
        return
    settings = process.begin(config_files, verbose=verbose)
    shutdown = process.Shutdown().listen().hear_conductor_signals()
    with process.ends_here():
        home = StateDir(state_dir, role="conductor")
        home.take()
        alone = ConductorProcess(
            settings, home, config_files,
            on_superseded=process.end_superseded, on_drain=shutdown.drain,
        )  # fmt: skip
        process.before_end(alone.service.runtime.lease.revoke)
        alone.start(lambda: shutdown.allow_grace_of(settings, alone.reload))
        click.echo(f"conductor {alone.host} serves (state in {home.path})")
        shutdown.requested.wait()
        click.echo("stopping: waiting for the work that goes on")
        alone.stop(
            shutdown.grace_s(settings), stays_online=shutdown.restarts, drains=shutdown.drains
        )


conductor.add_command(list_conductors)
conductor.add_command(drain)


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
