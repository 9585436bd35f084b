"""``bloomery import ironic``: compare an Ironic with the service, and take machines over."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import click

from bloomery.cli import cloud, groups
from bloomery.cli.imports import database, plan, site, terms, writing
from bloomery.cli.imports.plan import LEFT

_NEVER_COMES: Final = (
    "not read: networks of Neutron, images and objects of Swift; history and inventory of a node "
    "come with --take-over"
)


@click.group(name="import", cls=groups.Group)
def imports() -> None:
    """Take the machines of another service over."""


@imports.command()
@click.argument("nodes", nargs=-1, metavar="[NODE...]")
@click.option("--from", "old_name", metavar="CLOUD",
              help="Of clouds.yaml: the Ironic that has the machines.")  # fmt: skip
@click.option("--from-config", "config", metavar="FILE",
              type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="Its ironic.conf: read its database, which has the passwords.")  # fmt: skip
@click.option("--cloud", "name", metavar="CLOUD",
              help="Of clouds.yaml: the service that gets them.  [default: $OS_CLOUD]")  # fmt: skip
@terms.SECRETS
@terms.INSTEAD
@terms.SKIP
@click.option("--take-over", is_flag=True,
              help="Release imported nodes here, and put them into maintenance there.")  # fmt: skip
@terms.DRY_RUN
@groups.AS_JSON
def ironic(
    nodes: tuple[str, ...], old_name: str | None, config: Path | None, name: str | None,
    secrets: Path | None, instead: tuple[str, ...], skip: bool, take_over: bool, dry_run: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Import the nodes and records of an Ironic; --take-over hands nodes over.

    Give --from, --from-config or both: with both, the database is read, and --take-over tells the
    running Ironic. Without --from, --take-over needs that no conductor of the Ironic runs.

    An imported node is in maintenance here until it is taken over: no BMC is asked, and nothing is
    ordered. A second run creates what is missing and changes what has changed there. Nothing is
    written while a node is refused, except with --skip. NODE limits --take-over. Ends with 1 if
    something was refused.
    """
    if nodes and not take_over:
        raise click.UsageError("NODE limits --take-over: give both")
    if not as_json:
        click.echo(_NEVER_COMES)
    if old_name is None and config is None:
        raise click.UsageError("give --from CLOUD, --from-config FILE, or both")
    running = None if old_name is None else site.read(cloud.find_nodes(old_name))
    with contextlib.ExitStack() as stack:
        old: site.OldSite
        if config is not None:
            stored = database.read(stack.enter_context(database.opened(config)), running)
            if take_over and running is None and (living := stored.living()):
                raise click.ClickException(
                    f"the old service still runs, or was killed, on {', '.join(living)}: stop it "
                    "(one that was killed on SQLite: start and stop it) and try again in two "
                    "minutes, or give --from CLOUD as well"
                )
            old = stored
        else:
            assert running is not None
            old = running
        new = site.read(cloud.find_nodes(name))
        rows = plan.make(old, new, terms.of(secrets, instead))
        if take_over:
            rows = list(writing.take_over_rows(rows, nodes))
            work = writing.take_over(old, new, rows)
        else:
            work = writing.write(new.client, rows)
        is_stopped = not dry_run and terms.stops(rows, skip=skip)
        done = terms.echoed(rows if dry_run or is_stopped else work, as_json=as_json)
    if not as_json and not is_stopped and any(row.action == LEFT for row in done):
        click.echo("run it again for what was left out", err=True)
    terms.end(done, is_stopped=is_stopped)
