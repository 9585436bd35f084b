"""``bloomery db``: bring the schema up, say which one it is, copy the database while in use."""

from __future__ import annotations

from pathlib import Path

import click

from bloomery import conf
from bloomery.cmd import options
from bloomery.db import schema
from bloomery.state_dir import StateDir


@click.group()
def db() -> None:
    """Upgrade, check or back up the database."""


@db.command()
@options.state_dir
@options.config_file
def upgrade(state_dir: Path, config_files: tuple[str, ...]) -> None:
    """Bring the schema to the one that this release needs; an SQLite file is backed up first."""
    settings = conf.load(config_files).database
    home = StateDir(state_dir)
    if home.sqlite_file(settings) is None:
        database = home.existing_database(settings)
        schema.upgrade(database)
        click.echo(f"the schema is {schema.HEAD}")
        return
    with home:
        backup = schema.prepare(home.open_database(settings))
    if backup:
        click.echo(f"the database as it was is kept in {backup}")
    click.echo(f"the schema is {schema.HEAD}")


@db.command()
@options.state_dir
@options.config_file
def check(state_dir: Path, config_files: tuple[str, ...]) -> None:
    """Succeed if the schema is the one that this release needs."""
    home = StateDir(state_dir)
    database = home.existing_database(conf.load(config_files).database)
    schema.require_head(database, state_dir=home.path)
    click.echo(f"the schema is {schema.HEAD}, as this release needs")


@db.command()
@options.state_dir
@options.config_file
def version(state_dir: Path, config_files: tuple[str, ...]) -> None:
    """Print the schema that is there and the one that this release needs."""
    database = StateDir(state_dir).existing_database(conf.load(config_files).database)
    click.echo(f"found {schema.revision_of(database) or 'none'}, needed {schema.HEAD}")


@db.command()
@click.argument("file", type=click.Path(path_type=Path))
@options.state_dir
@options.config_file
def backup(file: Path, state_dir: Path, config_files: tuple[str, ...]) -> None:
    """Copy the database to FILE, also while the service runs; FILE must not exist."""
    home = StateDir(state_dir)
    home.existing_database(conf.load(config_files).database).backup(file)
    click.echo(f"wrote {file}")
    click.echo(f"keep a copy of {home.key} apart from it: nothing else can read its secrets")
