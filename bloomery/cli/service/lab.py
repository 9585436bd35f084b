"""``bloomery lab``: simulated racks of servers for rehearsals."""

from __future__ import annotations

import ipaddress
import json
import resource
import tempfile
import threading
from pathlib import Path
from typing import Final

import click
import yaml
from click.core import ParameterSource

from bloomery import errors
from bloomery.cli import groups
from bloomery.lab import models, rack, scenario, wire
from bloomery.lab.agents import Profile
from bloomery.lab.scenario import Group, Scenario
from bloomery.lab.simulation import Simulation
from bloomery.orchestration.template import parse

EXAMPLE: Final = Path(scenario.__file__).with_name("example.yaml")
_OF_ONE_GROUP: Final = ("nodes", "apart", "power_seconds", "answer_seconds", "model")
_IDLE_S: Final = 300.0
_MOST_LINES: Final = 100  # machines that are printed
_SWITCHES: Final = 2


@click.group(cls=groups.Group)
def lab() -> None:
    """Run simulated racks of servers."""


@lab.command()
@click.option("--nodes", type=click.IntRange(1, scenario.MOST), default=8, show_default=True)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8100,
    show_default=True,
    help="Of the first BMC; 0: any free one.",
)
@click.option("--apart", is_flag=True, help="Give each server a BMC and a port of its own.")
@click.option(
    "--first-address",
    metavar="IP",
    help="Give each server a BMC at an address of its own, from this one of 127.0.0.0/8 on.",
)
@click.option(
    "--power-seconds",
    type=click.FloatRange(0),
    default=1.0,
    show_default=True,
    help="How long a server takes to switch on or off.",
)
@click.option(
    "--answer-seconds",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="How long a BMC takes to answer a request.",
)
@click.option(
    "--model",
    type=click.Choice(list(models.ALL)),
    default=models.GENERIC.name,
    show_default=True,
    help="Make of the BMCs; see `bloomery lab models`. All but generic stand apart.",
)
@click.option(
    "--write",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the machines to FILE, for bloomery enrol.",
)
@click.option(
    "--switches",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Simulate two switches, with the servers at their ports; write their access to FILE, for "
    "[ironic_networking]switch_config_file.",
)
@click.option(
    "--consoles",
    is_flag=True,
    help="Give each Redfish server a serial line at a port of its own, for the console interface "
    "console-server.",
)
@click.option(
    "--scenario",
    "file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Simulate what FILE describes; see `bloomery lab example`.",
)
@click.option(
    "--api",
    metavar="URL",
    help="Address of the API that emulated agents call, in place of those in FILE.",
)
@click.pass_context
def up(
    ctx: click.Context,
    nodes: int,
    port: int,
    apart: bool,
    first_address: str | None,
    power_seconds: float,
    answer_seconds: float,
    model: str,
    write: Path | None,
    switches: Path | None,
    consoles: bool,
    file: Path | None,
    api: str | None,
) -> None:
    """Serve simulated servers on loopback until Ctrl-C, and print how to enrol them."""
    if first_address is not None:
        try:
            is_loopback = ipaddress.IPv4Address(first_address).is_loopback
        except ValueError:
            is_loopback = False
        if not is_loopback:
            raise click.UsageError(
                f"cannot serve at {first_address}: write an address such as 127.1.0.1"
            )
        apart = True
    if file is None:
        agent = None if api is None else Profile(api=api)
        group = Group(
            name="sim", count=nodes, apart=apart, power_s=power_seconds, answer_s=answer_seconds,
            model=model, idle_s=_IDLE_S, agent=agent,
        )  # fmt: skip
        site = Scenario(groups=(group,))
    else:
        for option in _OF_ONE_GROUP:  # a scenario has keys for these
            if ctx.get_parameter_source(option) is not ParameterSource.DEFAULT:
                name = option.replace("_", "-")
                raise click.UsageError(
                    f"cannot use --{name} with --scenario: write it into the file"
                )
        site = read(file, api)
    # each BMC and each agent has a port
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with (
        tempfile.TemporaryDirectory(prefix="bloomery-lab-") as folder,
        Simulation(
            site,
            folder=Path(folder),
            port=port,
            first=first_address,
            switches=0 if switches is None else _SWITCHES,
            consoles=consoles,
        ) as simulation,
    ):
        try:
            for path, option, text in (
                (write, "--write", json.dumps({"nodes": simulation.nodes()}, indent=1)),
                (switches, "--switches", simulation.switch_file()),
            ):
                try:
                    if path is not None:
                        path.write_text(text)
                except OSError as exc:
                    raise errors.CannotStart(
                        reason=f"cannot write {path}: {exc.strerror}; choose another {option}"
                    ) from exc
            echo_rack(simulation.rack)
            for switch in simulation.switches:
                address = simulation.rack.address_of(switch)
                click.echo(f"Ports of switch {switch.name}: curl {address}/lab/switch")
            threading.Event().wait()
        except KeyboardInterrupt:
            click.echo("\nthe rack is off")


def read(file: Path, api: str | None = None) -> Scenario:
    """Return the scenario of a YAML file; ``api`` replaces its agents' API.  Raises CannotStart."""
    try:
        text = file.read_bytes()
        document = parse.document(text, what="the scenario")
    except (errors.TemplateUnreadable, errors.RequestLimitExceeded, OSError) as exc:
        raise errors.CannotStart(reason=f"cannot read {file}: {exc}") from exc
    _refuse_doubles(file, yaml.compose(text, yaml.SafeLoader))
    return scenario.of(document, file.name, api)


def _refuse_doubles(file: Path, node: yaml.Node | None) -> None:
    """Raise CannotStart for a key that one map has twice."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_doubles(file, item)
    elif isinstance(node, yaml.MappingNode):
        names = [key.value for key, _ in node.value]
        for number, (key, value) in enumerate(node.value):
            if key.value in names[:number]:
                line = key.start_mark.line + 1
                raise errors.CannotStart(
                    reason=f"cannot read {file}: line {line}: {key.value} stands there twice; "
                    "remove one of them"
                )
            _refuse_doubles(file, value)


@lab.command()
def example() -> None:
    """Print a scenario file with a comment for each key."""
    click.echo(EXAMPLE.read_text(), nl=False)


@lab.command("models")
def list_models() -> None:
    """List the makes of BMC that can be simulated."""
    for model in models.ALL.values():
        click.echo(f"{model.name:17}{model.about}")


def echo_rack(servers: rack.Rack) -> None:
    """Print the machines and the commands to enrol one."""
    machines, address = servers.machines, servers.address
    click.echo(f"{len(machines)} servers at {address}; user admin, password password\n")
    for machine in machines[:_MOST_LINES]:
        click.echo(f"{machine.name}  {machine.address}  {machine.system_id}  {machine.mac}")
    if (more := len(machines) - _MOST_LINES) > 0:
        click.echo(f"and {more} more; --write FILE names all")
    click.echo(f"\nWhat happens: {address}/lab")
    if machines:
        click.echo("\nEnrol the first one, and deploy it with any URL of an ISO, with:\n")
        click.echo(enrolment(machines[0]))
        click.echo(deployment(machines[0]))
        click.echo(f"\nWhat happened to it: curl {address}/lab/systems/{machines[0].uuid}")
        click.echo(f"Faults on request:   curl {address}/lab/faults")
    click.echo("\nCtrl-C switches the rack off.")


def enrolment(machine: rack.Machine) -> str:
    """Return the commands that enrol ``machine``."""
    arguments = " \\\n    ".join(
        f"--driver-info {name}={json.dumps(value) if ' ' in value else value}"
        for name, value in machine.driver_info.items()
    )
    console = " --console-interface console-server" if machine.console else ""
    return (
        f"baremetal node create --driver redfish --name {machine.name}{console} \\\n"
        f"    {arguments}\n"
        f"baremetal port create --node $(baremetal node show {machine.name} -f value -c uuid) "
        f"{machine.mac}"
    )


def deployment(machine: rack.Machine) -> str:
    """Return the commands that take the enrolled ``machine`` to active."""
    return (
        f"baremetal node manage {machine.name} --wait\n"
        f"baremetal node provide {machine.name} --wait\n"
        f"baremetal node set {machine.name} --instance-info boot_iso={machine.address}{wire.ISO}\n"
        f"baremetal node deploy {machine.name} --wait"
    )
