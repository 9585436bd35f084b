"""Trees of stacks made by hand: an empty database, and values that differ where a test says."""

from __future__ import annotations

import dataclasses
import shutil
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from cryptography.fernet import Fernet

from bloomery.db import revisions, stack_locks, stack_orders, tables, trees
from bloomery.db.engine import Database
from bloomery.model.request import Request
from bloomery.model.stacks import (
    Action,
    Event,
    Order,
    OrderKind,
    Properties,
    Stack,
    Status,
    StoredResource,
    Template,
    Turn,
)
from bloomery.secrets import Sealer
from tests.kit.servers import databases

SEALER = Sealer(Fernet.generate_key())
AT = datetime(2026, 11, 22, 8, 30, 0, 123456, tzinfo=UTC)
STACK_TYPE = "OS::Heat::Stack"


def database(folder: Path) -> Database:
    """An empty database with all tables."""
    path = shutil.copy(databases.empty_file(), folder / "rows.sqlite")
    return Database(f"sqlite:///{path}", foreign_writer_timeout_s=0.05)


def ident(name: str) -> str:
    """The UUID of what a test calls ``name``."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def template(name: str = "template", **more: Any) -> Template:
    return Template(uuid=ident(name), **{"template": {"heat_template_version": "rocky"}} | more)


def stack(name: str = "web", **more: Any) -> Stack:
    values: dict[str, Any] = {
        "uuid": ident(name), "root_uuid": ident(name), "name": name, "project": "p1",
        "template_uuid": ident("template"), "action": "CREATE", "status": "IN_PROGRESS",
        "reason": "Stack CREATE started", "created_at": AT,
    }  # fmt: skip
    return Stack(**values | more)


def resource(name: str = "server", **more: Any) -> StoredResource:
    values: dict[str, Any] = {
        "uuid": ident(f"resource {name}"), "stack_uuid": ident("web"), "root_uuid": ident("web"),
        "name": name, "type": "OS::Heat::Value", "action": Action.CREATE,
        "status": Status.IN_PROGRESS, "template_uuid": ident("template"), "created_at": AT,
    }  # fmt: skip
    return StoredResource(**values | more)


def properties(name: str = "properties", **more: Any) -> Properties:
    return Properties(uuid=ident(name), root_uuid=ident("web"), **{"data": {"value": 1}} | more)


def event(status: str = "COMPLETE", **more: Any) -> Event:
    """An event of the stack ``web`` itself."""
    values: dict[str, Any] = {
        "uuid": str(uuid.uuid4()), "stack_uuid": ident("web"), "root_uuid": ident("web"),
        "created_at": AT, "action": "CREATE", "status": status, "name": "web",
        "type": STACK_TYPE, "physical_id": ident("web"),
    }  # fmt: skip
    return Event(**values | more)


def order(kind: OrderKind = OrderKind.CREATE, **more: Any) -> Order:
    return Order(**{"root_uuid": ident("web"), "stack_uuid": ident("web"), "kind": kind} | more)


def accept(db: Database, new: Order, *stacks: Stack, templates: tuple[Template, ...] = ()) -> int:
    """Accept an order as a request does: with new stacks, or the new state of those in rows."""
    turn = trees.encode(Turn(stacks=stacks, templates=templates), SEALER, traversals={})

    def work(conn: sa.Connection) -> int:
        stack_locks.hold(conn, new.root_uuid)
        trees.insert_templates(conn, turn.templates, turn.files)
        for row in turn.stacks:
            at = tables.STACKS.c.uuid == row["uuid"]
            if not conn.execute(sa.update(tables.STACKS).where(at).values(row)).rowcount:
                trees.insert_stacks(conn, [row], turn.tags.get(row["uuid"], ()))
        for stack in stacks:
            revisions.accept(conn, new.kind, stack, request=Request.new(user="ann"))
        return stack_orders.insert(conn, SEALER, new)

    return db.transact(work)


def as_written(turn: Turn) -> Turn:
    """A turn with its resources as they are now: the engine goes on with its own."""
    return dataclasses.replace(turn, resources=[each.copy() for each in turn.resources])


def rows_of(db: Database, table: sa.Table) -> list[sa.Row[Any]]:
    """Every row of a table."""
    with db.read() as conn:
        return list(conn.execute(sa.select(table)).all())


def nobody(_engine_id: str) -> bool:
    """Other engines are all dead."""
    return False


def everybody(_engine_id: str) -> bool:
    """Other engines all live."""
    return True


IsLive = Callable[[str], bool]
