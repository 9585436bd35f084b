"""What may be asked of stacks, asked without an engine: an endpoint over an SQLite file.

calls = StackCalls(tmp_path)
web = calls.create("web", resources={"a": {"type": "OS::Heat::Value"}})
calls.operations.show_stack(calls.member, web)
calls.rows(STACK_ORDERS)
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from bloomery.conf import Conf
from bloomery.db import resources, stack_orders, stacks, tables, tree_values, upserts
from bloomery.db.engine import Database
from bloomery.db.tables import PROPERTIES_DATA, RESOURCE_DATA, RESOURCES, STACK_ORDERS
from bloomery.model.request import Request
from bloomery.model.stack_views import StackArguments, StackIdentity
from bloomery.model.stacks import Action, Properties, Stack, Status, StoredResource
from bloomery.operations.context import Services
from bloomery.operations.policy_engine import Policies
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.engine.trees import StackTree
from bloomery.orchestration.engine_host.locks import StackLock
from bloomery.orchestration.engine_host.store import RowStore
from bloomery.orchestration.operations import StackOperations
from bloomery.orchestration.orders.inputs import limits_of
from bloomery.orchestration.simulation import SimulatedClock
from tests.kit.stacks import trees

VERSION = "2021-04-16"
VALUE = {"type": "OS::Heat::Value", "properties": {"value": 1}}


def caller(*roles: str, project: str | None = "p1", **more: Any) -> Request:
    who = Request.new(user="ann", project=project)
    return dataclasses.replace(who, roles=roles, **more)


def template(**sections: Any) -> dict[str, Any]:
    return {"heat_template_version": VERSION, **sections}


class StackCalls:
    """``accepted``: roots that engines were woken for."""

    def __init__(
        self,
        folder: Path,
        *,
        db: Database | None = None,
        enforced: bool = False,
        **engine_options: Any,
    ) -> None:
        conf = Conf()
        engine = dataclasses.replace(conf.engine, **engine_options)
        self.db = db or trees.database(folder)
        self.accepted: list[str] = []
        self.services = Services(
            db=self.db,
            rpc=cast(Any, None),
            conf=dataclasses.replace(conf, engine=engine),
            policies=Policies(conf, [folder], enforced=enforced),
            sealer=trees.SEALER,
        )
        self.operations = StackOperations(
            self.services, EngineRuntime(limits=limits_of(self.services.conf)), self.accepted.append
        )
        self.member = caller("member", "reader")

    @classmethod
    def over(cls, other: StackCalls, folder: Path, **engine_options: Any) -> StackCalls:
        """The same database, asked where callers have roles."""
        conf = other.services.conf
        engine = dataclasses.replace(conf.engine, **engine_options)
        services = dataclasses.replace(
            other.services, conf=dataclasses.replace(conf, engine=engine)
        )
        return cls._with(services, other, Policies(conf, [folder], enforced=True))

    @classmethod
    def with_policies(cls, other: StackCalls, policies: Policies) -> StackCalls:
        """The same database under other policies."""
        return cls._with(other.services, other, policies)

    @classmethod
    def _with(cls, services: Services, other: StackCalls, policies: Policies) -> StackCalls:
        calls = cls.__new__(cls)
        calls.db, calls.accepted, calls.member = other.db, [], other.member
        calls.services = dataclasses.replace(services, policies=policies)
        calls.operations = StackOperations(
            calls.services, EngineRuntime(limits=limits_of(services.conf)), calls.accepted.append
        )
        return calls

    def arguments(
        self,
        resources: Any = None,
        outputs: Any = None,
        declared: Any = None,
        **more: Any,
    ) -> StackArguments:
        """``declared``: the parameters of the template; ``more``: fields of the value."""
        sections = {"resources": resources, "outputs": outputs, "parameters": declared}
        given = {name: section for name, section in sections.items() if section is not None}
        return StackArguments(**{"template": template(**given) if given else None} | more)

    def create(
        self, name: object = "web", request: Request | None = None, **more: Any
    ) -> StackIdentity:
        arguments = self.arguments(**{"resources": {"a": VALUE}} | more)
        return self.operations.create_stack(request or self.member, name, arguments)

    # ------------------------------------------------------------------------------------ rows

    def rows(self, table: sa.Table) -> list[sa.Row[Any]]:
        return trees.rows_of(self.db, table)

    def row(self, identity: StackIdentity) -> Stack:
        with self.db.read() as conn:
            row = stacks.find(conn, identity.uuid)
        assert row is not None
        return row

    def change(self, identity: StackIdentity, **columns: Any) -> None:
        """Let the stack be as an engine would have left it; it takes all orders."""
        at = tables.STACKS.c.uuid == identity.uuid

        def write(conn: sa.Connection) -> None:
            conn.execute(sa.update(tables.STACKS).where(at).values(columns))
            conn.execute(sa.delete(STACK_ORDERS))

        self.db.transact(write)

    def finish(self, identity: StackIdentity) -> None:
        """Let what the stack is doing be done."""
        self.change(identity, status="COMPLETE", open=False, graph=None)

    def add_resource(
        self, identity: StackIdentity, name: str, properties: dict[str, Any] | None = None,
        **more: Any,
    ) -> StoredResource:  # fmt: skip
        """Put the row of a resource there, complete unless ``more`` says otherwise."""
        row = self.row(identity)
        values = {
            "uuid": trees.ident(f"{row.uuid} {name}"), "stack_uuid": row.uuid,
            "root_uuid": row.root_uuid, "name": name, "type": "OS::Heat::Value",
            "action": Action.CREATE, "status": Status.COMPLETE, "template_uuid": row.template_uuid,
            "created_at": trees.AT,
        }  # fmt: skip
        hidden = more.pop("hidden_properties", False)
        stored = None
        if properties is not None:
            uuid = trees.ident(f"properties {row.uuid} {name}")
            stored = Properties(
                uuid=uuid, root_uuid=row.root_uuid, data=properties, has_secret=hidden
            )
            values["properties_uuid"] = uuid
        resource = StoredResource(**values | more)
        self.db.transact(lambda conn: _write(conn, resource, stored))
        return resource

    def work(self, identity: StackIdentity, *, patient: bool = True) -> Stack:
        """Let an engine work on the tree until it rests or waits for somebody; return the stack.

        Time jumps to when something is due; where nobody is ``patient`` it stands still.
        """
        root = self.row(identity).root_uuid
        clock, begun = SimulatedClock(), datetime.now(UTC)
        runtime = EngineRuntime(
            clock=clock.now, utc=lambda: begun + timedelta(seconds=clock.now()),
        )  # fmt: skip
        store = RowStore(self.db, trees.SEALER)
        lease = StackLock(self.db, root, "engine").acquire(trees.nobody)
        tree = StackTree.load(store.load(root), runtime)
        while not store.write(root, lease, tree.turn()).released:
            due_at = tree.due_at()
            if due_at is None or (due_at > clock.now() and not patient):
                self._leave(root)
                break
            clock.wait(due_at)
        return self.row(identity)

    def _leave(self, root: str) -> None:
        """Let the lock go, as that of an engine that has died."""
        locks = tables.STACK_LOCKS
        free = sa.update(locks).where(locks.c.root_uuid == root).values(engine_id=None)
        self.db.transact(lambda conn: conn.execute(free))

    def orders(self) -> list[tuple[str, dict[str, Any]]]:
        """The kind and payload of each order that waits."""
        values = [stack_orders.from_row(row, trees.SEALER) for row in self.rows(STACK_ORDERS)]
        return [(str(order.kind), dict(order.payload)) for order in values]


def _write(conn: sa.Connection, resource: StoredResource, stored: Properties | None) -> None:
    row = tree_values.encode_resource(resource, trees.SEALER)
    upsert = upserts.insert_or_update(conn.dialect.name, RESOURCES, tree_values.RESOURCE_ROW)
    conn.execute(upsert, row)
    conn.execute(sa.delete(RESOURCE_DATA).where(RESOURCE_DATA.c.resource_uuid == resource.uuid))
    data = tree_values.encode_data(resource, trees.SEALER)
    if data:
        conn.execute(sa.insert(RESOURCE_DATA), data)
    if stored is not None:
        encoded = tree_values.encode_properties(stored, trees.SEALER)
        columns = tuple(encoded)
        insert = upserts.insert_missing(conn.dialect.name, PROPERTIES_DATA, columns)
        conn.execute(insert, encoded)
    assert resources.find(conn, resource.stack_uuid, resource.name, trees.SEALER) is not None
