"""``bloomery events``: follow events, show the sinks and their positions."""

from __future__ import annotations

from pathlib import Path

import click

from bloomery import conf, errors
from bloomery.cli import cloud, groups, terminal
from bloomery.cli.client import follow_events
from bloomery.cli.service import options
from bloomery.db import event_cursors
from bloomery.db import events as db
from bloomery.db.engine import Database
from bloomery.state_dir import StateDir


@click.group(cls=groups.Group, invoke_without_command=True)
@click.option("--follow", "-f", is_flag=True, help="Print events as they come, until Ctrl-C.")
@click.option("--since", type=int, metavar="ID", help="With --follow: after this number first.")
@click.option("--type", "event_type", metavar="TYPE", help="With --follow: baremetal.node, say.")
@click.option("--node", metavar="NODE", help="With --follow: of this node alone.")
@click.option("--stack", metavar="UUID", help="With --follow: of this stack alone.")
@click.option("--cloud", "name", metavar="NAME", help="Of clouds.yaml.  [default: $OS_CLOUD]")
@click.pass_context
def events(
    ctx: click.Context,
    follow: bool,
    since: int | None,
    event_type: str | None,
    node: str | None,
    stack: str | None,
    name: str | None,
) -> None:
    """Follow events over the API, or show and forget the sinks of events."""
    if ctx.invoked_subcommand is not None:
        return
    if not follow:
        click.echo(ctx.get_help())
        return
    client = cloud.find(name).nodes
    filters = {"type": event_type, "node": node, "stack": stack}
    query = {key: value for key, value in filters.items() if value is not None}
    try:
        for event in follow_events(client, query, since):
            line = f"{event['at']}  {event['event_type']}  {event['object_uuid']}"
            click.echo(terminal.visible(f"{line}  {terminal.brief(event['facts'])}"))
    except KeyboardInterrupt:
        return


@events.command()
@options.state_dir
@options.config_file
def sinks(state_dir: Path, config_files: tuple[str, ...]) -> None:
    """List the sinks of this site: how far each is behind, its process, and since when."""
    with _database(state_dir, config_files).read() as conn:
        last_id = db.last_id(conn)
        cursors = event_cursors.list_all(conn)
    if not cursors:
        click.echo("no sinks: nobody is told of events, and none are kept for anybody", err=True)
    for cursor in cursors:
        moved = f"{cursor.updated_at:%Y-%m-%d %H:%M:%SZ}" if cursor.updated_at else "never"
        holder = cursor.holder or "nobody"
        click.echo(f"{cursor.sink}: {last_id - cursor.last_id} behind {last_id}, "
                   f"carried by {holder}, moved {moved}")  # fmt: skip


@events.command()
@click.argument("sink")
@options.state_dir
@options.config_file
def forget(sink: str, state_dir: Path, config_files: tuple[str, ...]) -> None:
    """Keep no more events for SINK, which is gone for good in all processes of the site.

    A process that still has it starts at the current end when it next starts.
    """
    database = _database(state_dir, config_files)
    if not database.transact(lambda conn: event_cursors.delete(conn, sink)):
        raise errors.SinkNotFound(sink=sink)
    click.echo(f"nothing is kept for {sink} any more")


def _database(state_dir: Path, config_files: tuple[str, ...]) -> Database:
    return StateDir(state_dir).existing_database(conf.load(config_files).database)
