"""``bloomery audit``: check or export the files of [audit]file."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import click

from bloomery import audit as trails
from bloomery import conf, errors
from bloomery.cli import groups, terminal
from bloomery.cli.service import options
from bloomery.db import settings as db
from bloomery.state_dir import StateDir, default_path

FILES: Final = click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
_COLUMNS: Final = (
    "at", "user", "user_name", "project", "address", "method", "path", "target", "nodes", "fields",
    "status", "request_id", "number", "hash",
)  # fmt: skip

T = TypeVar("T")


@click.group(cls=groups.Group)
def audit() -> None:
    """Check or export the record of all orders.  FILE: the files of one record, oldest first."""


@audit.command()
@FILES
@click.option("--hash", "kept_hash", metavar="HASH", help="Of a record, kept elsewhere before.")
@click.option("--since", metavar="HASH", help="Of the last record that was removed on purpose.")
@click.option(
    "--state-dir", type=click.Path(path_type=Path),
    help="Compare the first record with those that the service's database knows.",
)  # fmt: skip
@options.config_file
def verify(
    files: Sequence[Path],
    kept_hash: str | None,
    since: str | None,
    state_dir: Path | None,
    config_files: tuple[str, ...],
) -> None:
    """Name each record that was changed, moved or removed; exit with 1 if there is any.

    Keep the printed hash in another place: with --hash, a record that was made anew is found.
    """
    anchors: list[str] = []
    if state_dir is not None or config_files:
        settings = conf.load(config_files)
        home = StateDir(state_dir or default_path())
        with home.existing_database(settings.database).read() as conn:
            anchors = db.list_audit_anchors(conn)
    chain = _read(lambda: trails.check(files, kept_hash, since=since, anchors=anchors))
    for fault in chain.faults:
        terminal.echo(fault, err=True)
    count = chain.last - chain.first + 1 if chain.last else 0
    span = f", {chain.first} to {chain.last}" if count else ""
    click.echo(f"{terminal.amount(count, 'record')}{span}; hash {chain.hash}")
    raise SystemExit(bool(chain.faults))


@audit.command()
@FILES
@groups.AS_JSON
def export(files: Sequence[Path], as_json: bool) -> None:
    """Print each order with its caller and the status of its answer, as CSV."""
    orders = _read(lambda: trails.orders(files))
    if as_json:
        click.echo(json.dumps(orders, indent=2))
        return
    table = csv.writer(sys.stdout)
    table.writerow(_COLUMNS)
    table.writerows(
        [terminal.csv_cell(order.get(column)) for column in _COLUMNS] for order in orders
    )


def _read(work: Callable[[], T]) -> T:
    try:
        return work()
    except OSError as exc:
        raise errors.CannotStart(
            reason=f"cannot read {exc.filename}: {exc.strerror}; name the files of [audit]file"
        ) from exc
