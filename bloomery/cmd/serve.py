"""``bloomery serve``: APIs, conductor and engine in one process."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from bloomery import conf
from bloomery.cmd import options, process
from bloomery.cmd.service import Service
from bloomery.model.request import IN_LOG
from bloomery.state_dir import CLOUD, StateDir

LOG = logging.getLogger(__name__)

CLIENTS: Final = "python-ironicclient python-openstackclient python-heatclient"
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@click.command()
@options.state_dir
@options.config_file
@options.addresses
@click.option("--verbose", is_flag=True, help="Log what happens, not only what goes wrong.")
def serve(
    state_dir: Path,
    config_files: tuple[str, ...],
    host_ip: str | None,
    port: int | None,
    orchestration_port: int | None,
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
        service.start()
        if settings.api.enable_ssl_api or settings.json_rpc.use_ssl:
            shutdown.on_hangup(service.reload)
        shutdown.allow_grace_of(settings)
        click.echo(next_steps(service, home))
        shutdown.requested.wait()
        click.echo("stopping: waiting for the work that goes on")
        service.stop(shutdown.grace_s(settings), stays_online=shutdown.restarts)


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
    """Prepare the log and the memory of a service's process; return its configuration."""
    log_to_stderr(logging.INFO if verbose else logging.WARNING)
    settings = conf.load(config_files)
    warn_of(conf.unknown(config_files))
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


class LineFormatter(logging.Formatter):
    """Each line names its request and user, if any.

    Control characters are escaped, so that no logged text starts a line or steers a terminal.
    Lines of a traceback are indented.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        request = IN_LOG.get()
        who = "" if request is None else f"[{request.request_id} {request.user or '-'}] "
        record.message = who + record.message
        return _escaped(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802  logging's name
        lines = super().formatException(ei).split("\n")
        return "\n".join(f"    {_escaped(line)}" for line in lines)


def _escaped(text: str) -> str:
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def log_to_stderr(level: int) -> None:
    """Log one line per event to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    logging.getLogger("alembic").setLevel(logging.WARNING)


def next_steps(service: Service, home: StateDir) -> str:
    """Return the first commands for a user."""
    hardware = service.conf.default.enabled_hardware_types
    driver = "fake-hardware" if "fake-hardware" in hardware else hardware[0]
    login = "" if service.conf.default.auth_strategy == "noauth" else " --os-password PASSWORD"
    return "\n".join(
        (
            f"Bloomery answers at {service.url} (state in {home.path})",
            f"In another terminal, after `pip install {CLIENTS}`:",
            f"  export OS_CLIENT_CONFIG_FILE={home.clouds} OS_CLOUD={CLOUD}",
            f"  baremetal{login} driver list",
            f"  baremetal{login} node create --driver {driver} --name node-1",
            f"Stacks are at {service.orchestration_url}:",
            f"  openstack{login} stack create -t TEMPLATE.yaml NAME",
            "Ctrl-C stops it.",
        ),
    )
