"""``bloomery serve`` and ``bloomery conductor``: the roles that work on nodes."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Final

import click

from bloomery.cli import groups
from bloomery.cli.service import options
from bloomery.cli.service.conductor_list import drain, list_conductors
from bloomery.cmd import process
from bloomery.cmd.conductor import ConductorProcess
from bloomery.cmd.service import Service
from bloomery.state_dir import CLOUD, StateDir

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
    settings = options.listening_on(loaded, host_ip, port, orchestration_port)
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
