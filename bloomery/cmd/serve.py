"""``bloomery serve``: APIs, conductor and engine in one process."""

from __future__ import annotations

import dataclasses
import logging
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from bloomery import conf, tracing
from bloomery.cmd import log, options, process
from bloomery.cmd.service import Service
from bloomery.state_dir import CLOUD, StateDir

LOG = logging.getLogger(__name__)

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
    loaded = begin(config_files, verbose=verbose)
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


def begin(config_files: Sequence[str], *, verbose: bool) -> conf.Conf:
    """Prepare log, traces and memory of a service's process; return its configuration."""
    settings = conf.load(config_files)
    level = logging.INFO if verbose else logging.WARNING
    log.to_stderr(level, use_json=settings.default.use_json)
    warn_of(conf.unknown(config_files))
    tracing.begin(settings.tracing)
    process.give_large_blocks_back()
    process.collect_garbage_seldom()
    return settings


def warn_of(options: list[str]) -> None:
    """Log the options of the files that have no effect, as they may be misspelt."""
    if options:
        LOG.warning(
            "no effect: %s; `bloomery config sample` prints every option that has one",
            ", ".join(options),
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
