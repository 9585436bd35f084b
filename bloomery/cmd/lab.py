"""``bloomery lab``: simulated racks of servers for rehearsals."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import click

from bloomery import errors
from bloomery.cli import groups
from bloomery.lab import models, rack
from bloomery.lab.bmc import Rules


@click.group(cls=groups.Group)
def lab() -> None:
    """Run simulated racks of servers."""


@lab.command()
@click.option("--nodes", type=click.IntRange(1, 10_000), default=8, show_default=True)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8100,
    show_default=True,
    help="Of the first BMC; 0: any free one.",
)
@click.option("--apart", is_flag=True, help="Give each server a BMC and a port of its own.")
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
def up(
    nodes: int,
    port: int,
    apart: bool,
    power_seconds: float,
    answer_seconds: float,
    model: str,
    write: Path | None,
) -> None:
    """Serve simulated Redfish servers on loopback until Ctrl-C, and print how to enrol them."""
    rules = Rules(late_s=answer_seconds)
    built = rack.Rack(
        nodes, port=port, apart=apart, rules=rules, power_s=power_seconds, model=model
    )
    with built:
        try:
            if write is not None:
                _write(built, write)
            tell(built)
            threading.Event().wait()
        except KeyboardInterrupt:
            click.echo("\nthe rack is off")


@lab.command("models")
def list_models() -> None:
    """List the makes of BMC that can be simulated."""
    for model in models.ALL.values():
        click.echo(f"{model.name:17}{model.about}")


def tell(built: rack.Rack) -> None:
    """Print the machines and the commands to enrol one."""
    click.echo(f"{len(built.machines)} servers at {built.address}; user admin, password password\n")
    for machine in built.machines:
        click.echo(f"{machine.name}  {machine.address}  {machine.system_id}  {machine.mac}")
    click.echo("\nEnrol the first one, and deploy it with any URL of an ISO, with:\n")
    click.echo(enrolment(built.machines[0]))
    click.echo(deployment(built.machines[0]))
    click.echo(f"\nWhat happened to it: curl {built.address}/lab/systems/{built.machines[0].uuid}")
    click.echo(
        f"Faults on request:   curl {built.address}/lab/faults\n\nCtrl-C switches the rack off."
    )


def _write(built: rack.Rack, file: Path) -> None:
    """Write a file that ``bloomery enrol`` reads.  Raises CannotStart."""
    try:
        file.write_text(json.dumps({"nodes": [each.node for each in built.machines]}, indent=1))
    except OSError as exc:
        raise errors.CannotStart(
            reason=f"cannot write {file}: {exc.strerror}; choose another --write"
        ) from exc


def enrolment(machine: rack.Machine) -> str:
    """Return the commands that enrol ``machine``."""
    arguments = " \\\n    ".join(
        f"--driver-info {name}={json.dumps(value) if ' ' in value else value}"
        for name, value in machine.driver_info.items()
    )
    return (
        f"baremetal node create --driver redfish --name {machine.name} \\\n    {arguments}\n"
        f"baremetal port create --node $(baremetal node show {machine.name} -f value -c uuid) "
        f"{machine.mac}"
    )


def deployment(machine: rack.Machine) -> str:
    """Return the commands that take the enrolled ``machine`` to active."""
    return (
        f"baremetal node manage {machine.name} --wait\n"
        f"baremetal node provide {machine.name} --wait\n"
        f"baremetal node set {machine.name} --instance-info boot_iso=http://127.0.0.1/any.iso\n"
        f"baremetal node deploy {machine.name} --wait"
    )
