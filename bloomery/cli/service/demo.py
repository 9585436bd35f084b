"""``bloomery demo``: simulated servers from enrolled to running.

The rack is kept living, so that its pages have something to show.  One deployment fails and waits
for somebody who looks why; one fails and is repaired; one machine is deployed and undeployed in
turn.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click

from bloomery import conf, errors
from bloomery.cli.client import ApiError, Client
from bloomery.cli.fleet import Fleet, Machine, create
from bloomery.cli.service.roles import CLIENTS
from bloomery.cli.stacks import StackRun
from bloomery.cmd import log, process
from bloomery.cmd.service import Service
from bloomery.lab import rack, wire
from bloomery.state_dir import CLOUD, StateDir

NODES = 8
DEPLOYED = 3
_CLASS = "bm.demo"
_PROJECT = "admin"
_STACK = "servers"
_STOPS_WITHIN_S = 75.0
_POWER_S = 1.2  # how long a simulated server takes to switch
_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.5
_FIRST_CONSOLE: Final = 10000
_CONSOLE_PORTS: Final = 1000  # of which some may be taken
_CONSOLES: Final = ("fake", "no-console", "console-server")
_TURN_S: Final = 20.0  # between two orders to the machine that comes and goes
_REFUSAL: Final = {"error": {"code": "Base.1.0.GeneralError", "message": "the virtual drive is "
                             "locked by another session"}}  # fmt: skip


@click.command()
@click.option("--once", is_flag=True, help="Exit after the job; non-zero if it failed.")
@click.option("--port", type=click.IntRange(0, 65535), default=6385, show_default=True)
def demo(once: bool, port: int) -> None:
    """Enrol simulated servers, deploy some of them, and keep serving."""
    log.to_stderr(logging.WARNING)
    shutdown = process.Shutdown().listen()
    shutdown.allow_grace(_STOPS_WITHIN_S)
    with (
        rack.Rack(NODES, apart=True, power_s=_POWER_S, consoles=True) as servers,
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
        repaired, failed = life.show_failures(_name)
        lines = (
            f"Look at the rack: {service.url}/ui/",
            f"  {failed} could not be deployed: its page says why; deploy or undeploy it there",
            f"  {repaired} failed, too, and was repaired: see its timeline",
            f"The API is at {service.url}. In another terminal, after `pip install {CLIENTS}`:",
            f"  export OS_CLIENT_CONFIG_FILE={home.clouds} OS_CLOUD={CLOUD}",
            "  baremetal node list",
            f"  baremetal node show {deployed} --fields provision_state power_state instance_info",
            f"  baremetal node history list {deployed}",
            f"  bloomery node console {deployed}",
            f"  baremetal node power off {deployed}",
            f"Stacks are at {service.orchestration_url}:",
            f"  openstack stack resource list {_STACK}",
            f"  openstack stack delete {_STACK}",
            "Ctrl-C stops everything and removes its state.",
        )
        click.echo("\n".join(("", *lines)))
        while life.wait_and_order():
            pass
        click.echo("stopping")


@contextlib.contextmanager
def _service(home: StateDir, port: int) -> Iterator[Service]:
    """Run the service on the usual port, or on any other if that one is taken."""
    plain, first, records = conf.Conf(), _FIRST_CONSOLE, home.path / "consoles"
    records.mkdir()
    settings = conf.Conf(
        api=dataclasses.replace(plain.api, port=port),
        default=dataclasses.replace(plain.default, enabled_console_interfaces=_CONSOLES),
        console=dataclasses.replace(
            plain.console,
            port_range=f"{first}:{first + _CONSOLE_PORTS}",
            allow_local=True,
            record_dir=str(records),  # so that a console shows the boot before it was opened
        ),
        redfish=dataclasses.replace(  # these BMCs show a new version at once
            plain.redfish, firmware_update_validation_interval=1
        ),
    )
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
    click.echo("enable their serial consoles")
    for machine in machines:
        if "console_interface" in machine.more:
            client.put(f"/v1/nodes/{machine.name}/states/console", {"enabled": True})
    while any(client.get(f"/v1/nodes/{each.name}")["reservation"] for each in machines):
        time.sleep(_POLL_S)
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
    console = {"console_interface": "console-server"} if server.console else {}
    return Machine(
        name=_name(number),
        driver="redfish",
        driver_info=server.driver_info,
        ports=[{"address": server.mac}],
        properties={"rack": "rack-1", "slot": number},
        more={"resource_class": _CLASS} | console,
    )


def _name(number: int) -> str:
    return f"rack-1-u{number}"


def image_of(servers: rack.Rack) -> str:
    """Return the URL of the ISO that the rack hands out."""
    return f"{servers.address}{wire.ISO}"


class DemoLife:
    """``pause(seconds)`` waits and returns whether to stop."""

    def __init__(self, client: Client, servers: rack.Rack, pause: Callable[[float], bool]) -> None:
        self._client, self._pause = client, pause
        self._image = image_of(servers)
        self._bmcs = {machine.name: machine.bmc for machine in servers.machines}
        self._spare: list[str] = []

    def show_failures(self, names: Callable[[int], str]) -> list[str]:
        """Let two deployments fail and repair the first; return the names of both.

        ``names``: the node of each machine of the rack, by its number.
        """
        idle = [
            (names(number), bmc) for number, bmc in enumerate(self._bmcs.values(), 1)
            if self._state(names(number)) == "available"
        ]  # fmt: skip
        failing, self._spare = idle[-2:], [name for name, _ in idle[:1]]
        for name, bmc in failing:
            bmc.faults.add(kind="status", status=400, body=_REFUSAL, method="POST",
                           path="VirtualMedia.InsertMedia")  # fmt: skip
            self._deploy(name)
        for name, _ in failing:
            self._wait_for(name, "deploy failed")
        repaired = failing[0][0]
        self._order(repaired, "deleted")
        self._wait_for(repaired, "available")
        return [name for name, _ in failing]

    def wait_and_order(self) -> bool:
        """Wait, then deploy or undeploy the spare machine; return whether to go on."""
        if self._pause(_TURN_S):
            return False
        for name in self._spare:
            try:
                state = self._state(name)
                if state == "available":
                    self._deploy(name)
                elif state in ("active", "deploy failed"):
                    self._order(name, "deleted")
            except ApiError:
                continue  # somebody uses the machine otherwise
        return True

    def _deploy(self, name: str) -> None:
        info = [{"op": "add", "path": "/instance_info/boot_iso", "value": self._image}]
        self._client.patch(f"/v1/nodes/{name}", info)
        self._order(name, "active")

    def _order(self, name: str, target: str) -> None:
        self._client.put(f"/v1/nodes/{name}/states/provision", {"target": target})

    def _state(self, name: str) -> Any:
        return self._client.get(f"/v1/nodes/{name}?fields=provision_state")["provision_state"]

    def _wait_for(self, name: str, state: str) -> None:
        give_up_at = time.monotonic() + _PATIENCE_S
        while self._state(name) != state:
            if self._pause(_POLL_S) or time.monotonic() > give_up_at:
                raise errors.Conflict(reason=f"cannot show {name} in {state}: it does not come")
