"""``bloomery conductor list`` and ``drain``.

Both use only the database, so they work without RPC.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from bloomery import conf, errors
from bloomery.cli import terminal
from bloomery.cli.service import options
from bloomery.conf import Conf
from bloomery.db import conductors, locks, nodes, rows, schema
from bloomery.db.engine import Database
from bloomery.operations import conductors as operations
from bloomery.rpc.ring import Ring
from bloomery.state_dir import StateDir

_POLL_S: Final = 0.5


def _open(state_dir: Path, config_files: Sequence[str]) -> tuple[Conf, Database]:
    settings, home = conf.load(config_files), StateDir(state_dir)
    database = home.existing_database(settings.database)
    schema.require_head(database, state_dir=home.path, config_files=config_files)
    return settings, database


@click.command("list")
@options.state_dir
@options.config_file
def list_conductors(state_dir: Path, config_files: tuple[str, ...]) -> None:
    """Show each conductor with its group, state, last heartbeat and number of nodes.

    The age of the heartbeat compares the clocks of two machines; peers decide by the counter alone.
    """
    from rich import box
    from rich.table import Table

    from bloomery.conductor import process_identity

    settings, db = _open(state_dir, config_files)
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("conductor", "group", "state", "heartbeat", "nodes", "process", "drivers"):
        table.add_column(heading, no_wrap=heading != "drivers", overflow="fold")
    ring = Ring(db, settings)
    query = nodes.Query(columns=("uuid", "driver", "conductor_group"))
    with db.read() as conn:
        node_rows = list(nodes.list_rows(conn, query))
    counts = Counter(
        ring.find_host(driver=driver, group=group or "", uuid=uuid)
        for uuid, driver, group in node_rows
    )
    with db.read() as conn:
        registered = conductors.list_all(conn)
    for each in registered:
        state, age = each.state, "-"
        if each.updated_at is not None:
            age_s = max((rows.now() - each.updated_at).total_seconds(), 0.0)
            age = f"{age_s:.0f} s ago"
            if each.incarnation is not None and age_s > settings.conductor.heartbeat_timeout:
                state = "no heartbeat"
        process = None if each.incarnation is None else process_identity.decoded(each.process)
        table.add_row(
            each.hostname, each.conductor_group or "-", state, age, str(counts[each.hostname]),
            "-" if process is None else str(process), ", ".join(each.drivers),
        )  # fmt: skip
    none = "no conductor has ever started on this database"
    terminal.console().print(table if registered else none)


@click.command()
@click.argument("host")
@click.option("--no-wait", is_flag=True, help="Return as soon as it is ordered.")
@click.option("--force", is_flag=True, help="Drain it also where nobody else serves its nodes.")
@options.state_dir
@options.config_file
def drain(
    host: str, no_wait: bool, force: bool, state_dir: Path, config_files: tuple[str, ...]
) -> None:
    """Let conductor HOST take no new nodes, end its work, and stop.

    It reads the order with its next heartbeat, and takes [DEFAULT]drain_shutdown_timeout at most.
    """
    settings, db = _open(state_dir, config_files)
    if not force:
        operations.require_peers(db, Ring(db, settings), host)
    if not db.transact(lambda conn: conductors.order_drain(conn, host)):
        with db.read() as conn:
            row = conductors.get(conn, host)
        raise errors.Failure(reason=f"cannot drain conductor {host}: it is {row.state}")
    click.echo(f"conductor {host} was told to drain")
    if no_wait:
        return
    # each change of the number of reserved nodes, until the conductor has signed off
    pause, printed = threading.Event(), None
    while True:
        with db.read() as conn:
            row, reserved = conductors.get(conn, host), len(locks.list_of_holder(conn, host))
        if (row.state, reserved) != printed:
            printed = row.state, reserved
            click.echo(f"{row.state}: works on {terminal.amount(reserved, 'node')}")
        if row.incarnation is None:
            return
        pause.wait(_POLL_S)
