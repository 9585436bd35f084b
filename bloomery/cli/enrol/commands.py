"""``bloomery enrol FILE...``: check the files, compare them with the service, create nodes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from bloomery.cli import cloud, groups, terminal
from bloomery.cli.enrol import machines, service
from bloomery.cli.enrol.machines import Entry
from bloomery.cli.enrol.records import Json
from bloomery.cli.enrol.service import Order


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...",
                type=click.Path(exists=True, dir_okay=False, path_type=Path))  # fmt: skip
@click.option("--driver", default="redfish", show_default=True, help="Of rows without a driver.")
@click.option("--dry-run", is_flag=True, help="Check and compare; change nothing.")
@click.option("--cloud", "name", metavar="NAME", help="Of clouds.yaml.  [default: $OS_CLOUD]")
@groups.AS_JSON
def enrol(
    files: tuple[Path, ...], driver: str, dry_run: bool, name: str | None, as_json: bool
) -> None:
    """Create nodes and ports from CSV, YAML, JSON, instackenv.json and BareMetalHosts.

    Nothing is created while a row has a fault. A second run creates only what is missing. Ends with
    0 if every machine is enrolled, with 1 if a row has a fault or is refused.
    """
    client = cloud.find(name).nodes
    entries = machines.read(files, driver)
    if not entries:
        raise click.ClickException("the files have no machines")
    inventory = service.Inventory.load(client)
    orders = [service.plan(entry, inventory) for entry in entries]
    faulty = [order for order in orders if order.faults]
    if faulty or dry_run:
        results = [_result(each, each.action, each.faults) for each in orders]
    else:
        results = []
        for order, action, error in service.write(client, orders, inventory):
            results.append(_result(order, action, (error,) if error else ()))
            if not as_json:
                _echo(results[-1])
    if as_json:
        click.echo(json.dumps(results, indent=2))
    else:
        _summarize(results, is_written=not (faulty or dry_run))
    if any(result["errors"] for result in results):
        raise SystemExit(1)


def _result(order: Order, action: str, errors: Sequence[str]) -> Json:
    entry: Entry = order.entry
    return {
        "place": entry.place, "name": entry.machine.name, "driver": entry.machine.driver,
        "bmc": entry.bmc, "macs": entry.macs, "action": action, "errors": list(errors),
        "left_out": list(entry.left_out), "hints": list(order.hints),
    }  # fmt: skip


def _summarize(results: Sequence[Json], *, is_written: bool) -> None:
    """Print hints and counts; and first each result, unless they were printed while written."""
    for result in () if is_written else results:
        _echo(result)
    for hint in dict.fromkeys(hint for result in results for hint in result["hints"]):
        terminal.echo(f"hint: {hint}", err=True)
    actions = [result["action"] for result in results]
    click.echo(terminal.tally("machine", actions))
    if "refused" in actions and not is_written:
        click.echo("nothing was created; correct the rows, and run it again", err=True)
    elif "refused" in actions:
        click.echo("correct the refused rows, and run it again", err=True)


def _echo(result: Json) -> None:
    terminal.echo(f"{result['name'] or '-'}: {result['action']}")
    for error in result["errors"]:
        terminal.echo(f"{result['place']}: {error}", err=True)
    if result["left_out"]:
        left_out = ", ".join(result["left_out"])
        terminal.echo(f"{result['place']}: left out: {left_out}", err=True)
