"""``bloomery demo``: the main job, to be watched: simulated servers from enrolled to running."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click

from bloomery import conf, errors
from bloomery.cli.client import Client
from bloomery.cli.fleet import Fleet, Machine
from bloomery.cmd.serve import log_to_stderr, until_told
from bloomery.cmd.serving import Service
from bloomery.home import CLOUD, Home

NODES = 8
DEPLOYED = 3
_DELAYS = {"deploy.deploy": 1.5, "vendor.log_passthrough": 0.7, "deploy.prepare": 0.4}


@click.command()
@click.option("--once", is_flag=True, help="Exit after the job; non-zero if it failed.")
@click.option("--port", type=click.IntRange(0, 65535), default=6385, show_default=True)
def demo(once: bool, port: int) -> None:
    """Enrol simulated servers, deploy some of them, and keep serving."""
    log_to_stderr(logging.WARNING)
    stop = until_told()
    with (
        tempfile.TemporaryDirectory(prefix="bloomery-demo-") as folder,
        Home(Path(folder)) as home,
        _service(home, port) as service,
    ):
        _job(service)
        if once:
            return
        click.echo(_told(service, home))
        stop.wait()
        click.echo("stopping")


@contextlib.contextmanager
def _service(home: Home, port: int) -> Iterator[Service]:
    """The service on the usual port, or on any other if that one is taken."""
    settings = conf.Conf(api=dataclasses.replace(conf.Conf().api, port=port))
    try:
        service = Service(settings, home)
    except errors.CannotStart as exc:
        click.echo(f"{exc}; taking another port", err=True)
        settings = dataclasses.replace(settings, api=dataclasses.replace(settings.api, port=0))
        service = Service(settings, home)
    with service:
        yield service


def _job(service: Service) -> None:
    """Take every node to available and some of them to active, live."""
    began = time.monotonic()
    machines = _machines()
    fleet = Fleet(Client(service.url), machines)
    click.echo(f"{service.url}: enrolling {NODES} simulated servers")
    fleet.enrol()
    click.echo("manage: does each BMC answer?")
    fleet.take("manage", "manageable")
    click.echo("provide: clean them")
    fleet.take("provide", "available")
    click.echo(f"deploy {DEPLOYED} of them")
    fleet.take("active", "active", [machine.name for machine in machines[:DEPLOYED]])
    click.echo(f"done in {time.monotonic() - began:.1f} s")


def _machines() -> list[Machine]:
    return [
        Machine(
            name=f"rack-1-u{number}",
            driver="fake-hardware",
            driver_info={"fake": {"delay": _DELAYS}},
            addresses=[f"52:54:00:00:01:{number:02x}"],
            properties={"cpu_arch": "x86_64", "memory_mb": 65536, "local_gb": 480, "cpus": 16},
            more={"resource_class": "bm.demo"},
        )
        for number in range(1, NODES + 1)
    ]


def _told(service: Service, home: Home) -> str:
    """Where it is, and five commands to try."""
    return "\n".join(
        (
            "",
            f"The API is at {service.url}. In another terminal:",
            f"  export OS_CLIENT_CONFIG_FILE={home.clouds} OS_CLOUD={CLOUD}",
            "  baremetal node list",
            "  baremetal node show rack-1-u1 --fields provision_state power_state instance_info",
            "  baremetal node history list rack-1-u1",
            "  baremetal node power off rack-1-u1",
            "  baremetal node undeploy rack-1-u1",
            "Ctrl-C stops everything and removes its state.",
        ),
    )
