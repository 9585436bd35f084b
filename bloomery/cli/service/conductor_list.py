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
from bloomery.model.conductor import Conductor
from bloomery.operations import conductors as operations
from bloomery.rpc.ring import Ring
from bloomery.state_dir import StateDir

_LOOK_S: Final = 0.5


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

    settings, db = _open(state_dir, config_files)
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("conductor", "group", "state", "heartbeat", "nodes", "process", "drivers"):
        table.add_column(heading, no_wrap=heading != "drivers", overflow="fold")
    counts = _nodes_by_host(db, settings)
    with db.read() as conn:
        rows = conductors.list_all(conn)
    for each in rows:
        table.add_row(
            each.hostname, each.conductor_group or "-", _state_by_age(each, settings), _age(each),
            str(counts[each.hostname]), _process(each), ", ".join(each.drivers),
        )  # fmt: skip
    terminal.console().print(table if rows else "no conductor has ever started on this database")


def _state_by_age(conductor: Conductor, settings: Conf) -> str:
    """Return the state, or "no heartbeat" for a conductor silent beyond the time-out."""
    timeout_s = settings.conductor.heartbeat_timeout
    is_silent = conductor.incarnation is not None and (_age_s(conductor) or 0.0) > timeout_s
    return "no heartbeat" if is_silent else conductor.state


def _age(conductor: Conductor) -> str:
    age_s = _age_s(conductor)
    return "-" if age_s is None else f"{age_s:.0f} s ago"


def _age_s(conductor: Conductor) -> float | None:
    if conductor.updated_at is None:
        return None
    return max((rows.now() - conductor.updated_at).total_seconds(), 0.0)


def _process(conductor: Conductor) -> str:
    from bloomery.conductor import process_identity

    process = process_identity.decoded(conductor.process)
    return "-" if process is None or conductor.incarnation is None else str(process)


def _nodes_by_host(db: Database, settings: Conf) -> Counter[str | None]:
    """Count the nodes that the ring gives to each conductor."""
    ring = Ring(db, settings)
    query = nodes.Query(columns=("uuid", "driver", "conductor_group"))
    with db.read() as conn:
        rows = list(nodes.list_rows(conn, query))
    return Counter(
        ring.find_host(driver=driver, group=group or "", uuid=uuid) for uuid, driver, group in rows
    )


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
    if not no_wait:
        _wait_until_gone(db, host)


def _wait_until_gone(db: Database, host: str) -> None:
    """Print each change of the number of reserved nodes until the conductor has signed off."""
    pause, shown = threading.Event(), None
    while True:
        with db.read() as conn:
            row, reserved = conductors.get(conn, host), len(locks.list_of_holder(conn, host))
        state = row.state
        if (state, reserved) != shown:
            shown = (state, reserved)
            click.echo(f"{state}: works on {terminal.amount(reserved, 'node')}")
        if row.incarnation is None:
            return
        pause.wait(_LOOK_S)
