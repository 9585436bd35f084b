"""Stacks of machines in rows, with machines in memory that survive engines.

site = make_site(trees.database(tmp_path))
site.create(template({"web": {...}}))
Engine(site.db, site.runtime()).run(site.root)
"""

from __future__ import annotations

import copy
import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bloomery.db import nodes, rows
from bloomery.db.engine import Database
from bloomery.db.tables import NODES
from bloomery.model import node as model
from bloomery.model.node import Node
from bloomery.model.stacks import Template
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.orders.software import RowSoftware
from bloomery.orchestration.resources.children import OtherStack
from tests.kit.stacks import trees
from tests.kit.stacks.memory_machines import MemoryMachines
from tests.kit.stacks.memory_webhooks import MemoryWebhooks
from tests.kit.stacks.row_engines import Clients

TAKES_S = {"manage": 5, "inspect": 40, "provide": 70, "active": 100, "rebuild": 100, "deleted": 45}
_KEPT = (
    "nodes", "records", "vifs", "orders", "_moves", "_failures", "flows", "firmware", "catalogue",
)  # fmt: skip


def template(resources: Mapping[str, Any], name: str = "t") -> Template:
    document = {"heat_template_version": "2021-04-16", "resources": dict(resources)}
    return trees.template(name, template=document)


@dataclass
class MemoryStack:
    """The one stack of another tree, at rest; ``value`` is that of each of its outputs."""

    value: str

    def read(self, ident: str, names: Sequence[str] | None) -> OtherStack:
        outputs = dict.fromkeys(names or ["value"], self.value)
        return OtherStack(
            uuid=ident, name=ident, state="UPDATE_COMPLETE", is_at_rest=True, outputs=outputs
        )


@dataclass
class Site(Clients):
    """Clients, the machines that their stacks are of, and a stack whose outputs they read."""

    machines: MemoryMachines = field(default_factory=MemoryMachines)
    webhooks: MemoryWebhooks = field(default_factory=MemoryWebhooks)
    other: MemoryStack = field(default_factory=lambda: MemoryStack("a"))

    def runtime(self) -> EngineRuntime:
        runtime = Clients.runtime(self)
        machines = self.machines.of_stack
        return dataclasses.replace(
            runtime, machines=machines, webhooks=self.webhooks,
            stacks=lambda _runtime, _stack: self.other,
            software=lambda project: RowSoftware(self.db, trees.SEALER, project),
        )  # fmt: skip


def make_site(db: Database, kind: type[MemoryMachines] = MemoryMachines, pool: int = 2) -> Site:
    """A site with ``pool`` nodes of the class "pool" that are available."""
    site = Site(db)
    site.machines = kind(utc=lambda: site.now_s, takes_s=TAKES_S)
    for number in range(1, pool + 1):
        site.machines.add_node(name=f"p{number}", resource_class="pool")
    return site


def write_nodes(site: Site, **more: Any) -> None:
    """Put the nodes in memory into rows, as a conductor would have left them; anew each time."""
    known = {each.name for each in dataclasses.fields(Node)}
    blank = dataclasses.asdict(Node(uuid="", driver="fake-hardware"))
    for values in site.machines.nodes.values():
        node = blank | {name: value for name, value in values.items() if name in known} | more
        node |= {"created_at": rows.now(), "provision_updated_at": None, "allocation_uuid": None}
        columns = {name: node[name] for name in model.COLUMNS if name != "id"}
        encoded = rows.encode(columns, model.OBJECTS)

        def write(conn: sa.Connection, encoded: dict[str, Any] = encoded) -> None:
            conn.execute(sa.delete(NODES).where(NODES.c.uuid == encoded["uuid"]))
            nodes.insert(conn, encoded)

        site.db.transact(write)


def copied(start: Site, path: Path) -> Site:
    """The same site in another file, with machines of its own."""
    with start.db.read() as conn:
        conn.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(start.db.url.database or "", path)
    site = make_site(Database(f"sqlite:///{path}"), pool=0)
    site.root, site.now_s = start.root, start.now_s
    site.webhooks, site.other = copy.deepcopy(start.webhooks), copy.deepcopy(start.other)
    for name in _KEPT:
        setattr(site.machines, name, copy.deepcopy(getattr(start.machines, name)))
    return site
