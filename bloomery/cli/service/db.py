"""``bloomery db``: upgrade, check, back up or copy the database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click
import rich.console
import rich.table

from bloomery import conf, errors, state_dir
from bloomery.cli import groups
from bloomery.cli.service import options
from bloomery.db import copying, engine, schema
from bloomery.state_dir import StateDir


@click.group(cls=groups.Group)
def db() -> None:
    """Upgrade, check, back up or copy the database."""


@db.command()
@options.state_dir
@options.config_file
def upgrade(state_dir: Path, config_files: tuple[str, ...]) -> None:
    """Upgrade the schema to that of this release; an SQLite file is backed up first."""
    settings = conf.load(config_files).database
    home = StateDir(state_dir)
    if home.sqlite_file(settings) is None:
        database = home.existing_database(settings)
        schema.upgrade(database)
        click.echo(f"the schema is {schema.revision_of(database)}")
        return
    with home:
        database = home.open_database(settings)
        backup = schema.prepare(database)
        revision = schema.revision_of(database)
    if backup:
        click.echo(f"the database as it was is kept in {backup}")
    click.echo(f"the schema is {revision}")


@db.command()
@options.state_dir
@options.config_file
def check(state_dir: Path, config_files: tuple[str, ...]) -> None:
    """Succeed if this release can use the schema."""
    home = StateDir(state_dir)
    database = home.existing_database(conf.load(config_files).database)
    schema.require_head(database, state_dir=home.path, config_files=config_files)
    revision = schema.revision_of(database)
    use = "as this release needs" if revision == schema.HEAD else "which this release can use"
    click.echo(f"the schema is {revision}, {use}")


@db.command()
@options.state_dir
@options.config_file
def version(state_dir: Path, config_files: tuple[str, ...]) -> None:
    """Print the current schema and that of this release."""
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


@db.command()
@click.option("--from", "source", required=True, metavar="URL", envvar="BLOOMERY_COPY_FROM")
@click.option("--to", "target", required=True, metavar="URL", envvar="BLOOMERY_COPY_TO")
def copy(source: str, target: str) -> None:
    """Copy all rows to an empty database, of a server or a file, and verify the copy.

    URLs are those of [database]connection, sqlite:////PATH for a file. Pass a URL with a password
    in BLOOMERY_COPY_FROM or BLOOMERY_COPY_TO: every user of the machine can read arguments.
    """
    console = rich.console.Console()
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(_opened(source, must_exist=True))
        new = stack.enter_context(_opened(target))
        if schema.revision_of(new) is None:
            schema.upgrade(new)
        with console.status("copying") as status:
            report = copying.copy(
                old, new, on_table=lambda each: status.update(f"{each.table}: {each.rows} rows")
            )
        table = rich.table.Table("table", rich.table.Column("rows", justify="right"), "checksum")
        for each in report:
            if each.rows:
                table.add_row(each.table, str(each.rows), each.checksum)
        total = str(sum(each.rows for each in report))
        table.add_row("all", total, "equal in both", style="bold")
        console.print(table)
        click.echo(f"{schema.masked_url(new)} has what {schema.masked_url(old)} has")


@contextlib.contextmanager
def _opened(url: str, *, must_exist: bool = False) -> Iterator[engine.Database]:
    """Open a database; a file is locked against services."""
    path = state_dir.sqlite_file(url)
    if must_exist and path is not None and not path.is_file():
        raise errors.CannotStart(reason=f"cannot find the database {path}: name a file that is one")
    with contextlib.ExitStack() as stack:
        if path is not None:
            stack.enter_context(state_dir.locked(path))
        database = engine.Database(url)
        stack.callback(database.close)
        yield database
