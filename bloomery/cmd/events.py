"""``bloomery events``: who is told of events, and how far each has got."""

from __future__ import annotations

from pathlib import Path

import click

from bloomery import conf, errors
from bloomery.cmd import options
from bloomery.db import event_cursors
from bloomery.db import events as db
from bloomery.db.engine import Database
from bloomery.state_dir import StateDir


@click.group()
def events() -> None:
    """Show the sinks of events, or forget one that is gone."""


@events.command()
@options.state_dir
@options.config_file
def sinks(state_dir: Path, config_files: tuple[str, ...]) -> None:
    """List the sinks of this site: how far each is behind, who carries it, since when."""
    with _database(state_dir, config_files).read() as conn:
        last_id = db.last_id(conn)
        cursors = event_cursors.list_all(conn)
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
    """Keep no events for SINK any more: it is gone for good, on every process of the site.

    A process that still has it begins anew at the present end when it next starts.
    """
    database = _database(state_dir, config_files)
    if not database.transact(lambda conn: event_cursors.delete(conn, sink)):
        raise errors.SinkNotFound(sink=sink)
    click.echo(f"nothing is kept for {sink} any more")


def _database(state_dir: Path, config_files: tuple[str, ...]) -> Database:
    return StateDir(state_dir).existing_database(conf.load(config_files).database)
