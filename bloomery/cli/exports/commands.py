"""``bloomery export ironic``: hand machines of the service to an Ironic."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from bloomery.cli import cloud, groups
from bloomery.cli.exports import handover
from bloomery.cli.imports import site, terms

_NEVER_GOES: Final = (
    "not written, since Ironic takes none of it: history, inventory and erasures of nodes, stacks"
)


@click.group(name="export", cls=groups.Group)
def exports() -> None:
    """Hand machines to another service."""


@exports.command()
@click.argument("nodes", nargs=-1, metavar="[NODE...]")
@click.option("--to", "new_name", required=True, metavar="CLOUD",
              help="Of clouds.yaml: the Ironic that gets the machines.")  # fmt: skip
@click.option("--cloud", "name", metavar="CLOUD",
              help="Of clouds.yaml: the service that has them.  [default: $OS_CLOUD]")  # fmt: skip
@terms.SECRETS
@terms.INSTEAD
@terms.SKIP
@terms.DRY_RUN
@groups.AS_JSON
def ironic(
    nodes: tuple[str, ...], new_name: str, name: str | None, secrets: Path | None,
    instead: tuple[str, ...], skip: bool, dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Hand nodes and their records to a running Ironic: those of NODE, else all.

    Each node goes into maintenance here and stays so. The Ironic creates the node, unless the node
    came from there, and adopts an active machine: nothing is booted or cleaned. A second run goes
    on where the first was cut off. Nothing is written while a node is refused, except with --skip.
    Ends with 1 if something was refused.
    """
    if not as_json:
        click.echo(_NEVER_GOES)
    ours, theirs = site.read(cloud.find_nodes(name)), site.read(cloud.find_nodes(new_name))
    moves = handover.make(ours, theirs, terms.of(secrets, instead), nodes)
    rows = [move.row for move in moves]
    is_stopped = not dry_run and terms.stops(rows, skip=skip)
    work = rows if dry_run or is_stopped else handover.carry_out(ours, theirs, moves)
    done = terms.echoed(work, as_json=as_json)
    terms.end(done, is_stopped=is_stopped)
