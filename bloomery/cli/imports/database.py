"""The database of an Ironic, read and never written: it has the passwords that the API hides.

with database.opened(Path("/etc/ironic/ironic.conf")) as conn:
    old = database.read(conn, running=None)
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click
import sqlalchemy as sa
from oslo_config import cfg

from bloomery import errors, parsing
from bloomery.cli.imports.site import NOUNS, Site, history_entry

Json = dict[str, Any]

_DRIVERS: Final = {
    "mariadb": "mysql+pymysql", "mysql": "mysql+pymysql", "postgresql": "postgresql+psycopg",
}  # fmt: skip
_READ_ONLY: Final = {
    "mysql": "START TRANSACTION READ ONLY",
    "postgresql": "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
}
_SILENT: Final = timedelta(minutes=2)  # a conductor that is alive beats each 10 s
_TABLES: Final = {name: name.replace(" ", "_") + "s" for name in NOUNS} | {
    "chassis": "chassis", "node": "nodes",
}  # fmt: skip
_STEPS: Final = {  # of a noun: the table, and the columns of a step
    "deploy template": ("deploy_template_steps", ("interface", "step", "args", "priority")),
    "runbook": ("runbook_steps", ("interface", "step", "args", "order")),
}
_JSON: Final = frozenset({
    "actions", "args", "candidate_nodes", "conditions", "driver_info", "extra", "instance_info",
    "inventory_data", "local_link_connection", "network_data", "plugin_data", "properties",
    "raid_config", "target_raid_config", "traits",
})  # fmt: skip
_FLAGS: Final = frozenset({  # small numbers in MariaDB
    "automated_clean", "disable_power_off", "disable_ramdisk", "is_smartnic", "maintenance",
    "online", "protected", "public", "pxe_enabled", "retired", "sensitive",
    "standalone_ports_supported",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSite:
    """The rows of an Ironic's database; ``running``: its service, if that still answers."""

    conn: sa.Connection
    nodes: Mapping[str, Json]
    records: Mapping[str, Mapping[str, Json]]
    running: Site | None

    def let_go(self, uuid: str) -> Json:
        """Without a service, nothing works on the node."""
        return self.nodes[uuid] if self.running is None else self.running.let_go(uuid)

    def release(self, uuid: str, reason: str) -> None:
        if self.running is not None:
            self.running.release(uuid, reason)

    def past(self, uuid: str) -> Json:
        number = self.nodes[uuid]["id"]
        history = [
            history_entry(entry | {"created_at": entry["created_at"].isoformat()})
            for entry in _rows(self.conn, "node_history", node_id=number)
        ]
        inspected = None
        for stored in _rows(self.conn, "node_inventory", node_id=number):  # the newest is the last
            inspected = {
                "inventory": stored["inventory_data"] or {},
                "plugin_data": stored["plugin_data"] or {},
            }
        return {"history": history, "inspected": inspected}

    def living(self) -> list[str]:
        """Return the conductors of the old service that may be alive.

        Ironic sends no heartbeats to SQLite: a conductor there lives until a stop takes it offline.
        """
        since = datetime.now(UTC).replace(tzinfo=None) - _SILENT
        beats = self.conn.engine.dialect.name != "sqlite"
        return [
            conductor["hostname"]
            for conductor in _rows(self.conn, "conductors")
            if conductor["online"] and (not beats or (conductor["updated_at"] or since) > since)
        ]


@contextlib.contextmanager
def opened(config: Path) -> Iterator[sa.Connection]:
    """Open what ``[database]connection`` of an ironic.conf names.

    Errors do not repeat the URL: it holds a password.
    """
    options = cfg.ConfigOpts()
    options.register_opts([cfg.StrOpt("connection", secret=True)], group="database")
    try:
        options(args=[], default_config_files=[str(config)])
        text = options.database.connection
        url = None if text is None else sa.make_url(text)
    except (cfg.Error, sa.exc.ArgumentError) as exc:
        raise click.ClickException(f"cannot read {config}: {type(exc).__name__}") from None
    if url is None:
        raise click.ClickException(f"{config} has no [database]connection")
    backend = url.get_backend_name()
    url = url.set(drivername=_DRIVERS.get(backend, backend))
    arguments: Json = {}
    try:
        if backend == "sqlite":  # which would make a file that is not there
            file = Path(url.database or "").absolute().as_uri()
            arguments["creator"] = lambda: sqlite3.connect(f"{file}?mode=ro", uri=True)
        engine = sa.create_engine(url, poolclass=sa.pool.NullPool, **arguments)
        with engine.connect() as conn:
            if statement := _READ_ONLY.get(url.get_backend_name()):
                conn.exec_driver_sql(statement)
            yield conn
    except ValueError as exc:
        raise click.ClickException(
            f"cannot read a value in the database that {config} names: {exc}"
        ) from None
    except ImportError as exc:
        extra = url.get_backend_name()
        raise click.ClickException(
            f"the driver of {url.drivername} is not installed ({exc.name}): "
            f"pip install 'bloomery[{extra}]'"
        ) from None
    except sa.exc.NoSuchTableError as exc:
        raise click.ClickException(
            f"the database that {config} names has no table {exc}: it is not Ironic's"
        ) from None
    except sa.exc.DBAPIError as exc:
        raise click.ClickException(
            f"cannot read the database that {config} names: {errors.brief(exc.orig or exc)}"
        ) from None


def read(conn: sa.Connection, running: Site | None) -> StoredSite:
    """Read all nodes and records; raises NoSuchTableError for what is no database of Ironic."""
    stored = {name: list(_rows(conn, table)) for name, table in _TABLES.items()}
    uuids = {name: {row["id"]: row["uuid"] for row in rows} for name, rows in stored.items()}
    traits = _grouped(conn, "node_traits", "node_id")
    for name, rows in stored.items():
        for row in rows:
            for noun in ("node", "chassis", "portgroup", "allocation"):
                if f"{noun}_id" in row:
                    row[f"{noun}_uuid"] = uuids[noun].get(row[f"{noun}_id"])
            if name == "node":
                row["traits"] = [each["trait"] for each in traits[row["id"]]]
    for name, (table, columns) in _STEPS.items():
        steps = _grouped(conn, table, f"{_TABLES[name].removesuffix('s')}_id")
        for row in stored[name]:
            row["steps"] = [{n: step[n] for n in columns} for step in steps[row["id"]]]
    by_uuid = {name: {row["uuid"]: row for row in rows} for name, rows in stored.items()}
    return StoredSite(conn=conn, nodes=by_uuid.pop("node"), records=by_uuid, running=running)


def _grouped(conn: sa.Connection, table: str, parent: str) -> Mapping[int, list[Json]]:
    """Return the rows of a table by the number of their parent."""
    groups: dict[int, list[Json]] = defaultdict(list)
    for row in _rows(conn, table):
        groups[row[parent]].append(row)
    return groups


def _rows(conn: sa.Connection, name: str, **where: Any) -> Iterator[Json]:
    """Yield the rows of a table in the order in which they were written.

    There are none where an older Ironic does not know the noun.
    """
    try:
        table = sa.Table(name, conn.info.setdefault("tables", sa.MetaData()), autoload_with=conn)
    except sa.exc.NoSuchTableError:
        if name == _TABLES["node"]:
            raise
        return
    query = sa.select(table).filter_by(**where).order_by(*table.primary_key.columns)
    for stored in conn.execute(query).mappings():
        row = dict(stored)
        for column, value in stored.items():
            if value is not None and column in _JSON:
                row[column] = parsing.load_json(value)
            elif value is not None and column in _FLAGS:
                row[column] = bool(value)
        yield row
