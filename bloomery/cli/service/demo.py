"""``bloomery demo``: simulated servers from enrolled to running."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from bloomery import conf, errors
from bloomery.cli.client import Client
from bloomery.cli.fleet import Fleet, Machine, create
from bloomery.cli.service.demo_life import DemoLife, image_of
from bloomery.cli.service.roles import CLIENTS
from bloomery.cli.stacks import StackRun
from bloomery.cmd import log, process
from bloomery.cmd.service import Service
from bloomery.lab import rack
from bloomery.state_dir import CLOUD, StateDir

NODES = 8
DEPLOYED = 3
_CLASS = "bm.demo"
_PROJECT = "admin"
_STACK = "servers"
_STOPS_WITHIN_S = 75.0
_POWER_S = 1.2  # how long a simulated server takes to switch


@click.command()
@click.option("--once", is_flag=True, help="Exit after the job; non-zero if it failed.")
@click.option("--port", type=click.IntRange(0, 65535), default=6385, show_default=True)
def demo(once: bool, port: int) -> None:
    """Enrol simulated servers, deploy some of them, and keep serving."""
    log.to_stderr(logging.WARNING)
    shutdown = process.Shutdown().listen()
    shutdown.allow_grace(_STOPS_WITHIN_S)
    with (
        rack.Rack(NODES, apart=True, power_s=_POWER_S) as servers,
        tempfile.TemporaryDirectory(prefix="bloomery-demo-") as folder,
        StateDir(Path(folder)) as home,
        _service(home, port) as service,
    ):
        click.echo(f"Pages: {service.url}/ui/")
        deployed = _job(service, servers)
        if once:
            return
        life = DemoLife(Client(service.url), servers, shutdown.requested.wait)
        click.echo("two deployments fail; one of them is repaired")
        click.echo(_next_commands(service, home, deployed, *life.show_failures(_name)))
        while life.take_turn():
            pass
        click.echo("stopping")


@contextlib.contextmanager
def _service(home: StateDir, port: int) -> Iterator[Service]:
    """Run the service on the usual port, or on any other if that one is taken."""
    settings = conf.Conf(api=dataclasses.replace(conf.Conf().api, port=port))
    try:
        service = Service(settings, home)
    except errors.CannotStart:
        click.echo(f"cannot serve on port {port}: trying any free one", err=True)
        settings = dataclasses.replace(settings, api=dataclasses.replace(settings.api, port=0))
        service = Service(settings, home)
    with service:
        yield service


def _job(service: Service, servers: rack.Rack) -> str:
    """Take every node to available and some to active; return one of those."""
    began = time.monotonic()
    machines = [_enrolled(number, machine) for number, machine in enumerate(servers.machines, 1)]
    client = Client(service.url)
    fleet = Fleet(client, [machine.name for machine in machines])
    click.echo(f"{service.url}: enrolling {NODES} servers, each with a Redfish BMC on loopback")
    for machine in machines:
        create(client, machine)
    click.echo("manage: does each BMC answer?")
    fleet.take("manage", "manageable")
    click.echo("provide: clean them")
    fleet.take("provide", "available")
    click.echo(f"a stack deploys {DEPLOYED} of them, one after the other, each from its CD drive")
    stack = StackRun(Client(f"{service.orchestration_url}/v1/{_PROJECT}"), _STACK)
    stack.create({"template": _template(image_of(servers))})
    stack.watch("CREATE_COMPLETE")
    outputs = sorted(
        (each["output_key"], each["output_value"]) for each in stack.document()["outputs"]
    )
    for name, value in outputs:
        click.echo(f"{name} runs on {value}")
    click.echo(f"done in {time.monotonic() - began:.1f} s")
    return str(outputs[0][1])


def _template(image: str) -> dict[str, Any]:
    """Return a template of servers, each an allocation and an instance, one after another."""
    resources: dict[str, Any] = {}
    for number in range(1, DEPLOYED + 1):
        slot, server = f"slot-{number}", f"server-{number}"
        resources[slot] = {
            "type": "OS::Ironic::Allocation",
            "properties": {"resource_class": _CLASS},
            "depends_on": [f"server-{number - 1}"] if number > 1 else [],
        }
        resources[server] = {
            "type": "OS::Ironic::Instance",
            "properties": {
                "name": server,
                "allocation": {"get_resource": slot},
                "image": {"boot_iso": image},
            },
        }
    outputs = {
        name: {"value": {"get_attr": [name, "node_name"]}}
        for name in resources if name.startswith("server")
    }  # fmt: skip
    return {"heat_template_version": "2021-04-16", "resources": resources, "outputs": outputs}


def _enrolled(number: int, server: rack.Machine) -> Machine:
    """Return a server of the rack as the API's client enrols it."""
    return Machine(
        name=_name(number),
        driver="redfish",
        driver_info=server.driver_info,
        ports=[{"address": server.mac}],
        properties={"rack": "rack-1"},
        more={"resource_class": _CLASS},
    )


def _name(number: int) -> str:
    return f"rack-1-u{number}"


def _next_commands(service: Service, home: StateDir, node: str, repaired: str, failed: str) -> str:
    """Return the addresses and some commands to try; ``node``: a deployed one."""
    return "\n".join(
        (
            "",
            f"Look at the rack: {service.url}/ui/",
            f"  {failed} could not be deployed: its page says why; deploy or undeploy it there",
            f"  {repaired} failed, too, and was repaired: see its timeline",
            f"The API is at {service.url}. In another terminal, after `pip install {CLIENTS}`:",
            f"  export OS_CLIENT_CONFIG_FILE={home.clouds} OS_CLOUD={CLOUD}",
            "  baremetal node list",
            f"  baremetal node show {node} --fields provision_state power_state instance_info",
            f"  baremetal node history list {node}",
            f"  baremetal node power off {node}",
            f"Stacks are at {service.orchestration_url}:",
            f"  openstack stack resource list {_STACK}",
            f"  openstack stack delete {_STACK}",
            "Ctrl-C stops everything and removes its state.",
        ),
    )
